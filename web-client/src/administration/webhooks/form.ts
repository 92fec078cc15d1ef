/** What an administrator types about a webhook, and why the server refused a part of it. */
import { rejectionOf } from "../../publishing/posts/rejections";
import type { Webhook } from "./operations";

export interface WebhookForm {
  name: string;
  url: string;
  format: Webhook["format"];
  keyId: string | null;
  eventTypes: readonly string[];
  communityIds: readonly string[];
  /** Ids of topics, and of call jobs and scheduled posts, one on each line. */
  topicIds: string;
  jobIds: string;
}

export function formOf(webhook: Webhook | null): WebhookForm {
  return {
    name: webhook?.name ?? "",
    url: webhook?.url ?? "",
    format: webhook?.format ?? "EVENT",
    keyId: webhook?.account.id ?? null,
    eventTypes: webhook?.eventTypes ?? [],
    communityIds: webhook?.communityIds ?? [],
    topicIds: webhook?.topicIds.join("\n") ?? "",
    jobIds: webhook?.jobIds.join("\n") ?? "",
  };
}

export const FORMATS = ["EVENT", "SLACK", "DISCORD"] as const satisfies readonly Webhook["format"][];

/** Returns the ids of a text with one id on each line, each once. */
export function idsOf(text: string): string[] {
  return [...new Set(text.split(/\s+/).filter(Boolean))];
}

export const WEBHOOK_FIELDS = [
  "name",
  "url",
  "serviceKeyId",
  "eventTypes",
  "communityIds",
  "topicIds",
  "jobIds",
] as const;
export type WebhookField = (typeof WEBHOOK_FIELDS)[number];

/** Why the server refused a field. `item` is the refused item of a list, as it was sent; null for the whole field. */
export interface FieldRefusal {
  field: WebhookField;
  item: string | null;
  expected: string;
}

/** What was sent of the fields that are lists. */
export type SentLists = Partial<Record<WebhookField, readonly string[]>>;

/** Returns the refusal of a field such as `eventTypes[2]`; null if the error is about no field of the form. */
export function refusalOf(error: unknown, sent: SentLists): FieldRefusal | null {
  const rejection = rejectionOf(error);
  const [, name, index] = /^(\w+)(?:\[(\d+)\])?$/.exec(rejection?.field ?? "") ?? [];
  const field = WEBHOOK_FIELDS.find((each) => each === name);
  if (!rejection || !field) return null;
  return { field, item: sent[field]?.[Number(index ?? -1)] ?? null, expected: rejection.expected };
}
