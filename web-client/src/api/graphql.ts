/**
 * The typed `graphql` tag: every operation is checked against the exported schema by tsc. The build loads each module
 * that imports this one, to write the manifest of trusted documents (manifest.ts). Therefore these modules must not use
 * the browser while they are loaded.
 */
import { initGraphQLTada } from "gql.tada";
import type { TypedDocumentNode } from "urql";
import type { introspection } from "./schema";

const tada = initGraphQLTada<{
  introspection: introspection;
  disableMasking: true;
  scalars: { Timestamp: string; Cursor: string; DateTime: string; LocalDateTime: string };
}>();
const make = tada as unknown as (text: string, fragments?: readonly TypedDocumentNode[]) => TypedDocumentNode;

/** The documents of all loaded modules, and the texts that are sent as they stand. Empty in browsers. */
export const sentDocuments = new Set<TypedDocumentNode | string>();

/** Adds a document or a text to the manifest, and returns it. */
export function sent<Document extends TypedDocumentNode | string>(document: Document): Document {
  if (import.meta.env.SSR) sentDocuments.add(document);
  return document;
}

/** Returns the document of a text that is put together at run time, and that tsc therefore does not check. */
export const untyped: typeof make = (text, fragments) => sent(make(text, fragments));

export const graphql = (import.meta.env.SSR ? Object.assign(untyped, tada) : tada) as typeof tada;

export type { FragmentOf, ResultOf, VariablesOf } from "gql.tada";
