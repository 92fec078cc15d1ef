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
  | { name: "topic"; id: string; at: string | null };

const TIMESTAMP = /^\d+\.\d{6}$/;

export function parsePlace(fragment: string): Place {
  const [name, id = "", at = ""] = fragment
    .replace(/^#?\/?/, "")
    .split("/")
    .map(decoded);
  if (name === "topic" && id) return { name, id, at: TIMESTAMP.test(at) ? at : null };
  if (name === "person" && id) return { name, id };
  if (name === "tag" && id) return { name, tag: id };
  if (name === "everyone" || name === "notifications" || name === "reactions" || name === "browse")
    return { name };
  return name === "chat" ? { name } : { name: "home" };
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
