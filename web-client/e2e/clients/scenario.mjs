/**
 * The scenario that every client runs: a query, mutations, a subscription, and a resumed subscription after a
 * disconnect.
 *
 * A client is an object with these functions:
 * - run(document, variables) -> data
 * - subscribeToTopic(document, variables) -> {next() -> event, stop()}
 * - disconnect(), which terminates the socket
 * - errorCode() -> the `extensions.code` of the error of FAILING_QUERY
 *
 * Standard input: {url, token}. Prints a report as one line of JSON.
 */
import { readFileSync } from "node:fs";

export const VIEWER = "query Viewer { viewer { id handle } }";
export const FAILING_QUERY = 'query UnknownTopic { topic(id: "nowhere") { id } }';
const CREATE_COMMUNITY = 'mutation CreateCommunity { createCommunity(input: {name: "Hills"}) { id } }';
const CREATE_TOPIC =
  'mutation CreateTopic($id: ID!) { createTopic(input: {communityId: $id, title: "Watch"}) { id } }';
const POST_MESSAGE =
  "mutation PostMessage($id: ID!, $text: String!) { postMessage(input: {topicId: $id, text: $text}) { timestamp } }";
const TOPIC_EVENTS = `subscription TopicEvents($id: ID!, $since: Cursor) {
  topicEvents(topicId: $id, since: $since) {
    __typename
    ... on StreamReady { cursor resumed }
    ... on MessagePosted { cursor message { text timestamp } }
  }
}`;

export const input = JSON.parse(readFileSync(0, "utf8"));

/** A queue of events for one consumer, which may wait for the next event. */
export class EventQueue {
  #events = [];
  #resolveNext;

  put(event) {
    if (this.#resolveNext) this.#resolveNext(event);
    else this.#events.push(event);
    this.#resolveNext = undefined;
  }

  next() {
    if (this.#events.length > 0) return Promise.resolve(this.#events.shift());
    return new Promise((resolve) => {
      this.#resolveNext = resolve;
    });
  }
}

/** Runs the scenario with a client, prints the report, and ends the process. */
export async function runScenario(client) {
  const { viewer } = await client.run(VIEWER, {});
  const community = (await client.run(CREATE_COMMUNITY, {})).createCommunity.id;
  const topic = (await client.run(CREATE_TOPIC, { id: community })).createTopic.id;
  const post = async (text) => (await client.run(POST_MESSAGE, { id: topic, text })).postMessage.timestamp;

  const subscription = client.subscribeToTopic(TOPIC_EVENTS, { id: topic });
  const ready = await subscription.next();
  const timestamps = [await post("one")];
  const first = await subscription.next();
  await client.disconnect();
  subscription.stop();

  timestamps.push(await post("two"), await post("three"));
  const resumedSubscription = client.subscribeToTopic(TOPIC_EVENTS, { id: topic, since: first.cursor });
  const resumed = await resumedSubscription.next();
  const missed = [await resumedSubscription.next(), await resumedSubscription.next()];
  timestamps.push(await post("four"));
  const live = await resumedSubscription.next();
  resumedSubscription.stop();

  console.log(
    JSON.stringify({
      viewer,
      ready,
      first,
      resumed,
      missed,
      live,
      timestamps,
      errorCode: await client.errorCode(),
    }),
  );
  process.exit(0);
}
