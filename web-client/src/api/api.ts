/**
 * How the client talks with the server, for one signed-in user: `cached` for people and places, `direct` for timelines,
 * whose windows hold what they show and no more.
 */
import { createContext, useContext } from "react";
import {
  type AnyVariables,
  Client,
  type CombinedError,
  type Exchange,
  fetchExchange,
  subscriptionExchange,
  type TypedDocumentNode,
} from "urql";
import { createCache } from "./cache";
import { type Connection, connect, resuming } from "./connection";

export interface Api {
  cached: Client;
  direct: Client;
  connection: Connection;
}

/** Opens the connection; `refused` is called when the server no longer takes the token. */
export function createApi(token: string, refused: () => void): Api {
  const connection = connect(token, refused);
  const client = (exchanges: Exchange[]) =>
    new Client({
      url: "/graphql",
      preferGetMethod: false,
      fetchOptions: { headers: { authorization: `Bearer ${token}` } },
      exchanges: [...exchanges, fetchExchange, subscriptions(connection)],
    });
  return { cached: client([createCache()]), direct: client([]), connection };
}

function subscriptions({ socket }: Connection): Exchange {
  return subscriptionExchange({
    forwardSubscription: ({ query = "", variables }) => ({
      subscribe: (sink) => ({
        unsubscribe: resuming(socket, { query, variables: { ...(variables as object) } }, sink as never),
      }),
    }),
  });
}

const ApiContext = createContext<Api | null>(null);
export const ApiProvider = ApiContext.Provider;

export function useApi(): Api {
  const api = useContext(ApiContext);
  if (api === null) throw new Error("There is no ApiProvider above this component.");
  return api;
}

/** What a query or mutation gave. Raises: CombinedError. */
export async function ask<Data, Variables extends AnyVariables>(
  client: Client,
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
): Promise<Data> {
  const mutates = document.definitions.some((part) => "operation" in part && part.operation === "mutation");
  const result = mutates
    ? await client.mutation(document, variables).toPromise()
    : await client.query(document, variables, { requestPolicy: "network-only" }).toPromise();
  if (result.error) throw result.error;
  return result.data as Data;
}

/** Listens until the returned function is called. */
export function listen<Data, Variables extends AnyVariables>(
  client: Client,
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
  heard: (data: Data) => void,
  failed: (error: CombinedError) => void = () => {},
): () => void {
  const { unsubscribe } = client.subscription(document, variables).subscribe(({ data, error }) => {
    if (error) failed(error);
    else if (data) heard(data);
  });
  return unsubscribe;
}
