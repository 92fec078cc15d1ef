/**
 * The current place, stored in the URL's fragment. So the server needs to serve only one page, and a permalink is an
 * ordinary link.
 */
import { useSyncExternalStore } from "react";
import { isDay, type View } from "../publishing/days";

/**
 * `post` is the id of the open post, or "new" while a post is being written; null if neither. Where `view` or `day` is
 * null, the screen chooses it.
 */
export interface PublishingPlace {
  name: "publishing";
  view: View | null;
  day: string | null;
  post: string | null;
}

export type Place =
  | { name: "home" }
  | { name: "everyone" }
  | { name: "tag"; tag: string }
  | { name: "person"; id: string }
  | { name: "notifications" }
  | { name: "reactions" }
  | { name: "chat" }
  | { name: "browse" }
  | { name: "myData" }
  | { name: "topic"; id: string; at: string | null }
  | CommunityPlace
  | AdminPlace
  | CallsPlace
  | MailPlace
  | PublishingPlace;

const COMMUNITY_TABS = ["members", "bans", "requests", "settings"] as const;

/** `person` is the id of the only member to show; null for all members. */
export interface CommunityPlace {
  name: "community";
  id: string;
  tab: (typeof COMMUNITY_TABS)[number];
  person: string | null;
}

/** `actor` and `target` are ids of users; null if the log is not filtered by them. */
export interface AuditPlace {
  name: "adminAudit";
  actor: string | null;
  target: string | null;
}
export type AdminPlace =
  | { name: "admin" }
  | AuditPlace
  | { name: "adminInvitations" }
  | { name: "adminKeys" };

export type CallsPlace =
  | { name: "calls" }
  | { name: "newCallJob" }
  | { name: "callJob"; id: string }
  | { name: "callRules" };
export type MailPlace = { name: "mail" } | { name: "mailDomains" } | { name: "bounceRates" };

/** Places without parameters. */
const PLACES_WITHOUT_PARAMETERS = [
  "everyone",
  "notifications",
  "reactions",
  "browse",
  "myData",
  "chat",
  "admin",
  "adminInvitations",
  "adminKeys",
  "calls",
  "newCallJob",
  "callRules",
  "mail",
  "mailDomains",
  "bounceRates",
] as const;

const TIMESTAMP = /^\d+\.\d{6}$/;

/** Parses a URL fragment. Unknown places become the home screen, invalid parameters null. */
export function parsePlace(fragment: string): Place {
  const [name, first = "", second = "", third = ""] = fragment
    .replace(/^#?\/?/, "")
    .split("/")
    .map(decodePart);
  if (name === "topic" && first) return { name, id: first, at: TIMESTAMP.test(second) ? second : null };
  if (name === "community" && first) {
    const tab = COMMUNITY_TABS.find((each) => each === second) ?? "members";
    return { name, id: first, tab, person: third || null };
  }
  if (name === "person" && first) return { name, id: first };
  if (name === "tag" && first) return { name, tag: first };
  if (name === "publishing") return publishingPlace(first, second, third);
  if (name === "adminAudit") return { name, actor: first || null, target: second || null };
  if (name === "callJob" && first) return { name, id: first };
  const placeName = PLACES_WITHOUT_PARAMETERS.find((each) => each === name);
  return placeName ? { name: placeName } : { name: "home" };
}

const VIEWS: readonly string[] = ["month", "week", "list"] satisfies View[];

function publishingPlace(view: string, day: string, post: string): PublishingPlace {
  const knownView = VIEWS.includes(view) ? (view as View) : null;
  return { name: "publishing", view: knownView, day: isDay(day) ? day : null, post: post || null };
}

export function hrefOf(place: Place): string {
  const parts: string[] = [place.name];
  if ("id" in place) parts.push(place.id);
  if ("tag" in place) parts.push(place.tag);
  if ("at" in place && place.at) parts.push(place.at);
  if ("tab" in place) parts.push(place.tab, place.person ?? "");
  if ("actor" in place) parts.push(place.actor ?? "", place.target ?? "");
  if ("view" in place) parts.push(place.view ?? "calendar", place.day ?? "today", place.post ?? "");
  return `#/${parts.map(encodeURIComponent).join("/").replace(/\/+$/, "")}`;
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function navigate(place: Place): void {
  location.hash = hrefOf(place);
}

function subscribe(listener: () => void): () => void {
  addEventListener("hashchange", listener);
  return () => removeEventListener("hashchange", listener);
}

let cachedPlace = { fragment: "", place: parsePlace("") };

function currentPlace(): Place {
  if (location.hash !== cachedPlace.fragment)
    cachedPlace = { fragment: location.hash, place: parsePlace(location.hash) };
  return cachedPlace.place;
}

export function usePlace(): Place {
  return useSyncExternalStore(subscribe, currentPlace);
}
