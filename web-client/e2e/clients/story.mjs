/**
 * The scenario that every client runs: a query, a mutation, a subscription, and a resume after its socket is
 * terminated.
 *
 * A client is {run(document, variables) -> data, listen(document, variables) -> Listening, cut()}, where Listening is
 * {next() -> event, stop()}. Standard input: {url, token}. Prints one line of JSON.
 */
import { readFileSync } from "node:fs";

export const VIEWER = "query Viewer { viewer { id handle } }";
export const REFUSED = 'query Refused { topic(id: "nowhere") { id } }';
const FOUND = 'mutation Found { createCommunity(input: {name: "Hills"}) { id } }';
const OPEN = 'mutation Open($id: ID!) { createTopic(input: {communityId: $id, title: "Watch"}) { id } }';
const POST =
  "mutation Post($id: ID!, $text: String!) { postMessage(input: {topicId: $id, text: $text}) { timestamp } }";
const LISTEN = `subscription Listen($id: ID!, $since: Cursor) {
  topicEvents(topicId: $id, since: $since) {
    __typename
    ... on StreamReady { cursor resumed }
    ... on MessagePosted { cursor message { text timestamp } }
  }
}`;

export const order = JSON.parse(readFileSync(0, "utf8"));

/** A queue of events, taken one at a time. */
export class Inbox {
  #waiting = [];
  #taker;

  put(event) {
    if (this.#taker) this.#taker(event);
    else this.#waiting.push(event);
    this.#taker = undefined;
  }

  next() {
    if (this.#waiting.length > 0) return Promise.resolve(this.#waiting.shift());
    return new Promise((resolve) => {
      this.#taker = resolve;
    });
  }
}

export async function runScenario(client) {
  const { viewer } = await client.run(VIEWER, {});
  const community = (await client.run(FOUND, {})).createCommunity.id;
  const topic = (await client.run(OPEN, { id: community })).createTopic.id;
  const post = async (text) => (await client.run(POST, { id: topic, text })).postMessage.timestamp;

  const first = client.listen(LISTEN, { id: topic });
  const ready = await first.next();
  const posted = [await post("one")];
  const seen = await first.next();
  await client.cut();
  first.stop();

  posted.push(await post("two"), await post("three"));
  const second = client.listen(LISTEN, { id: topic, since: seen.cursor });
  const resumed = await second.next();
  const missed = [await second.next(), await second.next()];
  posted.push(await post("four"));
  const live = await second.next();
  second.stop();

  console.log(
    JSON.stringify({ viewer, ready, seen, resumed, missed, live, posted, refusal: await client.refusal() }),
  );
  process.exit(0);
}
