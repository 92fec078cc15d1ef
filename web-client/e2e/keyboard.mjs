/**
 * Drives a page by keyboard alone. An element gets the focus only by Tab, as for a person without a pointer, and the
 * focus must be visible on it.
 */

/** More than the number of elements that can have the focus on any screen. */
const TABS_MAX = 150;

/** Presses Tab until the element has the focus, backwards with `{ back: true }`. Throws: Error. */
export async function tabTo(page, locator, { back = false } = {}) {
  await locator.waitFor();
  let element = await locator.elementHandle();
  for (let presses = 0; presses <= TABS_MAX; presses++) {
    if (!(await isElsewhere(element))) {
      if (await hasVisibleFocus(page, locator)) return;
      element = await locator.elementHandle();
    }
    await page.keyboard.press(back ? "Shift+Tab" : "Tab");
  }
  throw new Error(`Tab does not reach ${locator}; the focus is on ${await focusedText(page)}.`);
}

/** Moves the focus to the element, and presses a key on it. */
export async function press(page, locator, key = "Enter", options = {}) {
  await tabTo(page, locator, options);
  await page.keyboard.press(key);
}

/** Moves the focus to a text field, and types. */
export async function type(page, locator, text) {
  await tabTo(page, locator);
  await page.keyboard.type(text);
}

/** Moves the focus to a text field, and types in place of its text. */
export async function replaceText(page, locator, text) {
  await press(page, locator, "Control+A");
  await page.keyboard.type(text);
}

/** Moves the focus to a select element, and chooses the option by typing its text. */
export async function choose(page, locator, text) {
  await tabTo(page, locator);
  await page.keyboard.type(text);
  const chosen = await locator.evaluate((select) => select.selectedOptions[0]?.text);
  if (chosen !== text) throw new Error(`Typing ${text} chooses ${chosen}.`);
}

/** Presses one of the buttons or links of a message, which Tab reaches from the message. */
export async function actOnMessage(page, text, role, name) {
  const message = await focusMessage(page, text);
  await press(page, message.getByRole(role, { name }));
}

/** Moves the focus to a message, and returns it. Tab goes to one message of the timeline, arrows to the others. */
export async function focusMessage(page, text) {
  const message = page.locator("[data-message]").filter({ hasText: text });
  await message.waitFor();
  await tabTo(page, page.getByRole("textbox", { name: /^Message to/ }));
  await tabTo(page, page.locator('[data-message][tabindex="0"]'), { back: true });
  while (!(await hasFocus(message))) await focusPreviousMessage(page);
  return message;
}

/** Presses the up arrow on a message, and waits until the message before it has the focus. Throws: Error. */
async function focusPreviousMessage(page) {
  const id = await page.evaluate(() => document.activeElement.dataset.message);
  await page.keyboard.press("ArrowUp");
  await page.waitForFunction((id) => document.activeElement.dataset.message !== id, id);
}

/** Waits until the focus is on the element, such as on the opener of a dialog that was closed. Throws: Error. */
export async function expectFocus(page, locator) {
  for (let attempt = 0; attempt < 50; attempt++) {
    if (await hasVisibleFocus(page, locator)) return;
    await page.waitForTimeout(20);
  }
  throw new Error(`The focus is on ${await focusedText(page)}, not on ${locator}.`);
}

/**
 * Returns whether the element is in the page and the focus is not on it. This is cheaper than to find the element by
 * its role and name again after each Tab.
 */
function isElsewhere(element) {
  return element.evaluate((each) => each.isConnected && each !== document.activeElement);
}

function hasFocus(locator) {
  return locator.evaluate((element) => element === document.activeElement);
}

/**
 * Returns whether the element has the focus. Throws an Error if it has, and neither a ring nor the colour of the border of
 * its field shows it.
 */
async function hasVisibleFocus(page, locator) {
  const focus = await locator.evaluate((element) => {
    if (element !== document.activeElement) return "elsewhere";
    const ring = (each) => {
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(each);
      return (outlineStyle !== "none" && outlineWidth !== "0px") || boxShadow !== "none";
    };
    const isVisible =
      element.matches(":focus-visible") &&
      (ring(element) || element.closest(".focus-within\\:border-accent"));
    return isVisible ? "visible" : "invisible";
  });
  if (focus === "invisible") throw new Error(`The focus on ${await focusedText(page)} is not visible.`);
  return focus === "visible";
}

function focusedText(page) {
  return page.evaluate(() => document.activeElement?.outerHTML.slice(0, 200) ?? "nothing");
}
