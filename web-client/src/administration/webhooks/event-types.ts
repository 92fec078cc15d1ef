/** The types of events that webhooks send, by area, with the scope that a service key needs to read them. */
import type { Translate } from "../../ui/preferences";

export const EVENT_AREAS = [
  {
    area: "messages",
    scope: "chat:read",
    types: [
      "MessagePosted",
      "MessageEdited",
      "MessageDeleted",
      "ReactionsChanged",
      "ThreadChanged",
      "MessagePinned",
      "MessageUnpinned",
    ],
  },
  {
    area: "communities",
    scope: "chat:read",
    types: ["TopicCreated", "TopicChanged", "TopicActivity", "CommunityChanged"],
  },
  { area: "posts", scope: "feed:read", types: ["PostArrived", "PostRemoved"] },
  {
    area: "calls",
    scope: "jobs:read",
    types: [
      "CallJobChanged",
      "CallTaskChanged",
      "CallLimitsChanged",
      "PublicationChanged",
      "PublicationReported",
    ],
  },
] as const;

type EventType = (typeof EVENT_AREAS)[number]["types"][number];

/** The type of the message that says that events were lost. It belongs to no event that could be sent again. */
export const GAP_TYPE = "StreamReady";
const OTHER_TYPES = ["WebhookTest", GAP_TYPE] as const;
type NamedType = EventType | (typeof OTHER_TYPES)[number];
const NAMED_TYPES: readonly NamedType[] = [...EVENT_AREAS.flatMap(({ types }) => types), ...OTHER_TYPES];

/** Returns the types that a key with these scopes may read. */
export function readableTypes(scopes: readonly string[]): EventType[] {
  return EVENT_AREAS.filter(({ scope }) => scopes.includes(scope)).flatMap(({ types }) => types);
}

/** Returns those of the types that a key with these scopes may read, and those that this client does not know. */
export function withoutUnreadable(types: readonly string[], scopes: readonly string[]): string[] {
  const known: readonly string[] = NAMED_TYPES;
  const readable: readonly string[] = readableTypes(scopes);
  return types.filter((type) => readable.includes(type) || !known.includes(type));
}

/** Returns what a type means in the viewer's language; the server's name for an unknown type. */
export function eventTypeName(type: string, t: Translate): string {
  const named = NAMED_TYPES.find((each) => each === type);
  return named ? t(`webhooks.type.${named}`) : type;
}
