/**
 * Prints the newest messages of a topic. The types of variables and results are generated from the schema.
 *
 *     npx graphql-codegen && NOROSHI_TOKEN=... NOROSHI_TOPIC=... npx tsx messages.ts
 */
import { GraphQLClient } from "graphql-request";
import { graphql } from "./generated";

const MESSAGES = graphql(`
  query Messages($topicId: ID!, $latest: Timestamp!) {
    messages(topicId: $topicId, latest: $latest, limit: 10) {
      items { timestamp text editedAt author { handle } }
      hasOlder
    }
  }
`);

const { NOROSHI_URL = "http://127.0.0.1:8000", NOROSHI_TOKEN, NOROSHI_TOPIC = "" } = process.env;
const client = new GraphQLClient(`${NOROSHI_URL}/graphql`, {
  headers: { authorization: `Bearer ${NOROSHI_TOKEN}` },
});
const { messages } = await client.request(MESSAGES, { topicId: NOROSHI_TOPIC, latest: "now" });
for (const { timestamp, author, text } of messages.items) {
  const sentAt: Date = new Date(Number.parseFloat(timestamp) * 1000);
  console.log(`${sentAt.toISOString()} ${author.handle}: ${text}`);
}
