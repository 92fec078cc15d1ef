/** Where one is, kept in the address' fragment: the server serves one page, and a permalink is an ordinary link. */
import { useSyncExternalStore } from "react";

export type Place =
  | { name: "home" }
  | { name: "everyone" }
  | { name: "tag"; tag: string }
  | { name: "person"; id: string }
  | { name: "notifications" }
  | { name: "reactions" }
  | { name: "chat" }
  | { name: "browse" }
  | { name: "topic"; id: string; at: string | null }
  | CallsPlace
  | MailPlace;

export type CallsPlace =
  | { name: "calls" }
  | { name: "newCallJob" }
  | { name: "callJob"; id: string }
  | { name: "callRules" };
export type MailPlace = { name: "mail" } | { name: "mailDomains" } | { name: "bounceRates" };

/** Places with nothing but a name. */
const PLAIN = [
  "everyone",
  "notifications",
  "reactions",
  "browse",
  "chat",
  "calls",
  "newCallJob",
  "callRules",
  "mail",
  "mailDomains",
  "bounceRates",
] as const;

const TIMESTAMP = /^\d+\.\d{6}$/;

export function parsePlace(fragment: string): Place {
  const [name, id = "", at = ""] = fragment
    .replace(/^#?\/?/, "")
    .split("/")
    .map(decoded);
  if (name === "topic" && id) return { name, id, at: TIMESTAMP.test(at) ? at : null };
  if (name === "person" && id) return { name, id };
  if (name === "tag" && id) return { name, tag: id };
  if (name === "callJob" && id) return { name, id };
  const plain = PLAIN.find((each) => each === name);
  return plain ? { name: plain } : { name: "home" };
}

export function addressOf(place: Place): string {
  const parts: string[] = [place.name];
  if ("id" in place) parts.push(place.id);
  if ("tag" in place) parts.push(place.tag);
  if ("at" in place && place.at) parts.push(place.at);
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function go(place: Place): void {
  location.hash = addressOf(place);
}

function watch(listener: () => void): () => void {
  addEventListener("hashchange", listener);
  return () => removeEventListener("hashchange", listener);
}

let known = { fragment: "", place: parsePlace("") };

function here(): Place {
  if (location.hash !== known.fragment) known = { fragment: location.hash, place: parsePlace(location.hash) };
  return known.place;
}

export function usePlace(): Place {
  return useSyncExternalStore(watch, here);
}
