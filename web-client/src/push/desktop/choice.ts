/** Whose notifications this browser shows while no tab of that person is visible. It is one person's choice at most. */
import type { ViewerUser } from "../../session/viewer";
import { createValue } from "../../ui/value";

const KEY = "noroshi.desktop-notifications";
const NOBODY = "nobody";

/** The person's key; null if nobody has chosen in this browser yet. */
export const desktopOwner = createValue(localStorage.getItem(KEY));
addEventListener("storage", ({ key, newValue }) => key === KEY && desktopOwner.set(newValue));

/** Returns the text that stands for a person in the browser's storage and in the names of locks. */
export const ownerKey = ({ organizationId, id }: ViewerUser): string =>
  `${encodeURIComponent(organizationId)}/${encodeURIComponent(id)}`;

export function turnDesktopOn(viewer: ViewerUser): void {
  store(ownerKey(viewer));
}

export function turnDesktopOff(): void {
  store(NOBODY);
}

function store(key: string): void {
  localStorage.setItem(KEY, key);
  desktopOwner.set(key);
}
