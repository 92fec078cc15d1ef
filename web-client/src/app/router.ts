/**
 * The current route: a screen and what it shows, stored in the URL's fragment. The server therefore serves only one
 * page, and a permalink is an ordinary link.
 */
import { useSyncExternalStore } from "react";
import { type CalendarView, isDay } from "../publishing/calendar/days";
import { SEARCH_KINDS, type SearchKind } from "../search/matches";

/**
 * `post` is the id of the open post, or "new" while a post is being written; null if neither. Where `view` or `day` is
 * null, the screen chooses it.
 */
export interface PublishingRoute {
  name: "publishing";
  view: CalendarView | null;
  day: string | null;
  post: string | null;
}

export type Route =
  | { name: "home" }
  | { name: "everyone" }
  | { name: "tag"; tag: string }
  | { name: "person"; id: string }
  | { name: "post"; id: string }
  | { name: "notifications" }
  | { name: "reactions" }
  | { name: "notificationSettings" }
  | { name: "chat" }
  | { name: "browse" }
  | { name: "threads" }
  | { name: "myData" }
  | TopicRoute
  | SearchRoute
  | CommunityRoute
  | AdminRoute
  | CallsRoute
  | MailRoute
  | PublishingRoute;

/**
 * A topic. `thread` is the id of the message whose thread is open, and `reply` the timestamp of the reply to show. Both
 * are absent if no thread is open.
 */
export interface TopicRoute {
  name: "topic";
  id: string;
  at: string | null;
  thread?: string;
  reply?: string | null;
}

/** The search screen. `query` is empty before the first search. */
export interface SearchRoute {
  name: "search";
  kind: SearchKind;
  query: string;
}

const COMMUNITY_TABS = ["members", "bans", "requests", "reports", "settings"] as const;

/** `person` is the id of the only member to show; null for all members. */
export interface CommunityRoute {
  name: "community";
  id: string;
  tab: (typeof COMMUNITY_TABS)[number];
  person: string | null;
}

/** `actor` and `target` are ids of users; null if the log is not filtered by them. */
export interface AuditRoute {
  name: "adminAudit";
  actor: string | null;
  target: string | null;
}
/** `webhook` is the id of the open webhook; null if the list is open. */
export interface WebhooksRoute {
  name: "adminWebhooks";
  webhook: string | null;
}
export type AdminRoute =
  | { name: "admin" }
  | AuditRoute
  | { name: "adminErasures" }
  | { name: "adminHeld" }
  | { name: "adminInvitations" }
  | { name: "adminKeys" }
  | { name: "adminReports" }
  | { name: "adminSettings" }
  | { name: "adminStamps" }
  | WebhooksRoute;

export type CallsRoute =
  | { name: "calls" }
  | { name: "newCallJob" }
  | { name: "callJob"; id: string }
  | { name: "callRules" };
export type MailRoute =
  | { name: "mail" }
  | { name: "mailDomains" }
  | { name: "mailPolicy" }
  | { name: "bounceRates" };

const ROUTES_WITHOUT_PARAMETERS = [
  "everyone",
  "notifications",
  "reactions",
  "notificationSettings",
  "browse",
  "threads",
  "myData",
  "chat",
  "admin",
  "adminErasures",
  "adminHeld",
  "adminInvitations",
  "adminKeys",
  "adminReports",
  "adminSettings",
  "adminStamps",
  "calls",
  "newCallJob",
  "callRules",
  "mail",
  "mailDomains",
  "mailPolicy",
  "bounceRates",
] as const;

const TIMESTAMP = /^\d+\.\d{6}$/;

/** Parses a URL fragment. Unknown routes become the home screen, unknown tabs "members", other invalid values null. */
export function parseRoute(fragment: string): Route {
  const [name, first = "", second = "", third = "", fourth = ""] = fragment
    .replace(/^#?\/?/, "")
    .split("/")
    .map(decodePart);
  if (name === "topic" && first) {
    const topic = { name, id: first, at: timestampOrNull(second) } as const;
    return third ? { ...topic, thread: third, reply: timestampOrNull(fourth) } : topic;
  }
  if (name === "community" && first) {
    const tab = COMMUNITY_TABS.find((each) => each === second) ?? "members";
    return { name, id: first, tab, person: third || null };
  }
  if ((name === "person" || name === "post") && first) return { name, id: first };
  if (name === "tag" && first) return { name, tag: first };
  if (name === "search") {
    const kind = SEARCH_KINDS.find((each) => each === first) ?? "messages";
    return { name, kind, query: second };
  }
  if (name === "publishing") return publishingRoute(first, second, third);
  if (name === "adminAudit") return { name, actor: first || null, target: second || null };
  if (name === "adminWebhooks") return { name, webhook: first || null };
  if (name === "callJob" && first) return { name, id: first };
  const knownName = ROUTES_WITHOUT_PARAMETERS.find((each) => each === name);
  return knownName ? { name: knownName } : { name: "home" };
}

const timestampOrNull = (text: string) => (TIMESTAMP.test(text) ? text : null);

const CALENDAR_VIEWS: readonly string[] = ["month", "week", "list"] satisfies CalendarView[];

function publishingRoute(view: string, day: string, post: string): PublishingRoute {
  const knownView = CALENDAR_VIEWS.includes(view) ? (view as CalendarView) : null;
  return { name: "publishing", view: knownView, day: isDay(day) ? day : null, post: post || null };
}

export function hrefOf(route: Route): string {
  const parts: string[] = [route.name];
  if ("id" in route) parts.push(route.id);
  if ("tag" in route) parts.push(route.tag);
  if (route.name === "topic" && (route.at || route.thread)) parts.push(route.at ?? "latest");
  if (route.name === "topic" && route.thread) parts.push(route.thread, route.reply ?? "");
  if ("query" in route) parts.push(route.kind, route.query);
  if ("tab" in route) parts.push(route.tab, route.person ?? "");
  if ("actor" in route) parts.push(route.actor ?? "", route.target ?? "");
  if ("webhook" in route) parts.push(route.webhook ?? "");
  if ("view" in route) parts.push(route.view ?? "calendar", route.day ?? "today", route.post ?? "");
  return `#/${parts.map(encodeURIComponent).join("/").replace(/\/+$/, "")}`;
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function navigate(route: Route): void {
  location.hash = hrefOf(route);
}

function subscribe(listener: () => void): () => void {
  addEventListener("hashchange", listener);
  return () => removeEventListener("hashchange", listener);
}

let cachedRoute = { fragment: "", route: parseRoute("") };

export function currentRoute(): Route {
  if (location.hash !== cachedRoute.fragment)
    cachedRoute = { fragment: location.hash, route: parseRoute(location.hash) };
  return cachedRoute.route;
}

export function useRoute(): Route {
  return useSyncExternalStore(subscribe, currentRoute);
}
