/** The API of one signed-in user: the clients, and the connection of their subscriptions. */
import { createContext, useContext } from "react";
import type { AnyVariables, Client, CombinedError, SubscriptionForwarder, TypedDocumentNode } from "urql";
import { requestHeaders } from "../session/identity";
import { type Clients, createClients } from "./clients";
import { connect, type ServerConnection, subscribeWithResume } from "./connection";

export interface Api extends Clients {
  connection: ServerConnection;
}

/** Creates the clients and their connection. Calls `onTokenRejected` when the server rejects the token. */
export function createApi(token: string, onTokenRejected: () => void): Api {
  const connection = connect(token, onTokenRejected);
  const forwardSubscription = resumableSubscriptions(connection);
  return { ...createClients({ headers: requestHeaders(token), forwardSubscription }), connection };
}

function resumableSubscriptions({ socket }: ServerConnection): SubscriptionForwarder {
  return ({ query = "", variables }) => ({
    subscribe: (sink) => ({
      unsubscribe: subscribeWithResume(
        socket,
        { query, variables: { ...(variables as object) } },
        sink as never,
      ),
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

/** Sends a query or mutation and returns its data. A query bypasses the cache. Throws: CombinedError. */
export async function request<Data, Variables extends AnyVariables>(
  client: Client,
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
): Promise<Data> {
  const isMutation = document.definitions.some(
    (definition) => "operation" in definition && definition.operation === "mutation",
  );
  const result = isMutation
    ? await client.mutation(document, variables).toPromise()
    : await client.query(document, variables, { requestPolicy: "network-only" }).toPromise();
  if (result.error) throw result.error;
  return result.data as Data;
}

/** Subscribes, and passes each event's data to `onData`. Returns a function that ends the subscription. */
export function subscribe<Data, Variables extends AnyVariables>(
  client: Client,
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
  onData: (data: Data) => void,
  onError: (error: CombinedError) => void = () => {},
): () => void {
  const { unsubscribe } = client.subscription(document, variables).subscribe(({ data, error }) => {
    if (error) onError(error);
    else if (data) onData(data);
  });
  return unsubscribe;
}
