/** The start page: one of its two languages, the server's state, and the sign-in link's token on its way to GraphiQL. */
import { tokenInFragment } from "../token";
import { askState, type State, TEXT } from "./state";

const ASK_EVERY_MS = 5_000;

const LANGUAGES = ["en", "ja"] as const;
type Language = (typeof LANGUAGES)[number];

/** Shows one language; without this script both are there, each marked as what it is. */
function speak(language: Language): void {
  document.documentElement.lang = language;
  for (const button of document.querySelectorAll<HTMLButtonElement>(".languages button")) {
    button.setAttribute("aria-pressed", String(button.value === language));
  }
}

function offerLanguages(): void {
  document.querySelector(".languages")?.addEventListener("click", ({ target }) => {
    if (target instanceof HTMLButtonElement) speak(target.value as Language);
  });
  speak(navigator.language.startsWith("ja") ? "ja" : "en");
}

/** Only a change is written: a screen reader says it once. */
function show(state: State): void {
  const place = document.querySelector<HTMLElement>(".state");
  if (place === null || place.dataset.state === state) return;
  place.dataset.state = state;
  for (const language of LANGUAGES) {
    const text = place.querySelector(`[data-state-text=${language}]`);
    if (text) text.textContent = TEXT[state][language];
  }
}

async function watchState(): Promise<void> {
  if (!document.hidden) show(await askState());
  setTimeout(watchState, ASK_EVERY_MS);
}

function keepToken(): void {
  const fragment = tokenInFragment() === null ? "" : location.hash;
  for (const link of document.querySelectorAll<HTMLAnchorElement>("a[data-keeps-token]"))
    link.hash = fragment;
}

offerLanguages();
keepToken();
addEventListener("hashchange", keepToken);
void watchState();
