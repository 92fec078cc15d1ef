import { expect, test } from "vitest";
import { createUserStorage, DRAFT } from "./user-storage";

/** Returns a Storage in memory. */
function memory(): Storage {
  const items = new Map<string, string>();
  return {
    get length() {
      return items.size;
    },
    key: (index) => [...items.keys()][index] ?? null,
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, value) => void items.set(key, value),
    removeItem: (key) => void items.delete(key),
    clear: () => items.clear(),
  };
}

test("a user reads what they typed, and no other user does", () => {
  const browser = memory();
  const ann = createUserStorage(browser, "acme/ann");
  ann.set(`${DRAFT}topic`, "for my eyes only");
  expect(createUserStorage(browser, "acme/ann").get(`${DRAFT}topic`)).toBe("for my eyes only");
  for (const other of ["acme/ben", "acme/an", "umbrella/ann"])
    expect(createUserStorage(browser, other).get(`${DRAFT}topic`)).toBeNull();
});

test("a sign-out removes all that the user typed, and nothing else", () => {
  const browser = memory();
  browser.setItem("noroshi.theme", "dark");
  const [ann, ben] = [createUserStorage(browser, "acme/ann"), createUserStorage(browser, "acme/ben")];
  ann.set(`${DRAFT}topic`, "one");
  ben.set(`${DRAFT}topic`, "two");
  ann.clear();
  expect(ann.names("")).toEqual([]);
  expect(ben.get(`${DRAFT}topic`)).toBe("two");
  expect(browser.getItem("noroshi.theme")).toBe("dark");
});

test("entries end after 14 days, also when only another user opens the client", () => {
  const browser = memory();
  let time = 1_000;
  createUserStorage(browser, "acme/ann", () => time).set(`${DRAFT}topic`, "old");
  time += 15 * 86_400_000;
  createUserStorage(browser, "acme/ben", () => time);
  expect(browser.length).toBe(0);
});

test("above the limit, the oldest drafts are removed, and an older message stays", () => {
  let time = 0;
  const ann = createUserStorage(memory(), "acme/ann", () => ++time);
  ann.set("message 1", "waits");
  for (let n = 0; n < 60; n++) ann.set(`${DRAFT}${n}`, "text");
  expect(ann.names(DRAFT)).toHaveLength(50);
  expect(ann.get(`${DRAFT}9`)).toBeNull();
  expect(ann.get("message 1")).toBe("waits");
});

test("unreadable and oversized entries are not kept, and a full storage is no error", () => {
  const browser = memory();
  browser.setItem("noroshi.typed.acme/ann draft t", "{");
  const ann = createUserStorage(browser, "acme/ann");
  expect(ann.names("")).toEqual([]);
  ann.set(`${DRAFT}t`, "x".repeat(200_000));
  expect(ann.get(`${DRAFT}t`)).toBeNull();
  browser.setItem = () => {
    throw new DOMException("full", "QuotaExceededError");
  };
  expect(() => ann.set(`${DRAFT}t`, "text")).not.toThrow();
});
