/** Relay's environment: queries and mutations over HTTP, subscriptions over a socket that resumes. */
import relay from "relay-runtime";
import { createResumingClient } from "../graphql-ws/resume.mjs";

const { Environment, Network, Observable, RecordSource, Store } = relay;

/** Creates the environment. `options` go to graphql-ws. */
export function createEnvironment(url, authorization, options) {
  const socket = createResumingClient({
    url: `${url.replace("http", "ws")}/graphql`,
    connectionParams: () => ({ authorization }),
    ...options,
  });

  async function fetchResult({ text }, variables) {
    const headers = { authorization, "content-type": "application/json" };
    const body = JSON.stringify({ query: text, variables });
    return (await fetch(`${url}/graphql`, { method: "POST", headers, body })).json();
  }

  function subscribe({ text }, variables) {
    return Observable.create((sink) => socket.subscribe({ query: text, variables }, sink));
  }

  const network = Network.create(fetchResult, subscribe);
  return new Environment({ network, store: new Store(new RecordSource()) });
}
