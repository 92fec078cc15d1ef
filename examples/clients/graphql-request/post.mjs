/**
 * Posts a message to a topic. graphql-request has queries and mutations; subscriptions need graphql-ws.
 *
 *     NOROSHI_TOKEN=... NOROSHI_TOPIC=... node post.mjs "text to post"
 */
import { ClientError, GraphQLClient } from "graphql-request";

const POST = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { author { handle } text } }";

const { NOROSHI_URL = "http://127.0.0.1:8000", NOROSHI_TOKEN, NOROSHI_TOPIC } = process.env;
const client = new GraphQLClient(`${NOROSHI_URL}/graphql`, {
  headers: { authorization: `Bearer ${NOROSHI_TOKEN}` },
});
try {
  const { postMessage } = await client.request(POST, {
    input: { topicId: NOROSHI_TOPIC, text: process.argv[2] },
  });
  console.log(`${postMessage.author.handle}: ${postMessage.text}`);
} catch (error) {
  if (!(error instanceof ClientError)) throw error;
  const [{ message, extensions }] = error.response.errors;
  console.error(`${extensions.code}: ${message}`);
  process.exitCode = 1;
}
