/** Apollo Client: queries and mutations over HTTP, subscriptions over graphql-ws. */
import { ApolloClient, ApolloLink, gql, HttpLink, InMemoryCache } from "@apollo/client";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { OperationTypeNode } from "graphql";
import { createClient } from "graphql-ws";
import { WebSocket } from "ws";
import { EventQueue, FAILING_QUERY, input, runScenario } from "./scenario.mjs";

const authorization = `Bearer ${input.token}`;
const socketClient = createClient({
  url: `${input.url.replace("http", "ws")}/graphql`,
  webSocketImpl: WebSocket,
  connectionParams: { authorization },
  retryAttempts: 0,
});
const client = new ApolloClient({
  cache: new InMemoryCache(),
  defaultOptions: { query: { fetchPolicy: "no-cache" }, mutate: { fetchPolicy: "no-cache" } },
  link: ApolloLink.split(
    ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
    new GraphQLWsLink(socketClient),
    new HttpLink({ uri: `${input.url}/graphql`, headers: { authorization } }),
  ),
});

async function run(document, variables) {
  const parsed = gql(document);
  const { data } = document.startsWith("mutation")
    ? await client.mutate({ mutation: parsed, variables })
    : await client.query({ query: parsed, variables });
  return data;
}

await runScenario({
  run,

  subscribeToTopic(document, variables) {
    const events = new EventQueue();
    const subscription = client
      .subscribe({ query: gql(document), variables, fetchPolicy: "no-cache" })
      .subscribe({ next: ({ data }) => data && events.put(data.topicEvents), error: () => {} });
    return { next: () => events.next(), stop: () => subscription.unsubscribe() };
  },

  disconnect: () => socketClient.terminate(),

  errorCode: () => run(FAILING_QUERY, {}).catch((error) => error.errors[0].extensions.code),
});
