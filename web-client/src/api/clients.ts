/** The GraphQL clients of one user, and the exchanges that operations pass on their way to the server. */
import { Client, type Exchange, fetchExchange, type SubscriptionForwarder, subscriptionExchange } from "urql";
import type { ObservableValue } from "../ui/value";
import { createCache } from "./cache";
import { collectTextChanges, type TextChanges } from "./text-changes";

/**
 * `cached` keeps communities, topics and users in a normalised cache. `direct` caches nothing: it is for timelines, which
 * keep their own items.
 */
export interface Clients {
  cached: Client;
  direct: Client;
  /** The edits and deletions that either client has received. */
  changes: ObservableValue<TextChanges>;
}

/** How operations reach the server. */
export interface Network {
  headers: Record<string, string>;
  forwardSubscription: SubscriptionForwarder;
  /** Sends queries and mutations; by default the browser's own function. */
  fetch?: typeof fetch;
}

export function createClients({ headers, forwardSubscription, fetch }: Network): Clients {
  const { changes, exchange } = collectTextChanges();
  const network = [fetchExchange, subscriptionExchange({ forwardSubscription })];
  const createClient = (exchanges: Exchange[]) =>
    new Client({
      url: "/graphql",
      preferGetMethod: false,
      fetchOptions: { headers },
      fetch,
      exchanges: [...exchanges, exchange, ...network],
    });
  return { cached: createClient([createCache()]), direct: createClient([]), changes };
}
