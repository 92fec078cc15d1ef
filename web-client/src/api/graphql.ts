/** The typed `graphql` tag: every operation is checked against the exported schema by tsc. */
import { initGraphQLTada } from "gql.tada";
import type { introspection } from "./schema";

export const graphql = initGraphQLTada<{
  introspection: introspection;
  disableMasking: true;
  scalars: { Timestamp: string; Cursor: string; DateTime: string; LocalDateTime: string };
}>();

export type { FragmentOf, ResultOf, VariablesOf } from "gql.tada";
