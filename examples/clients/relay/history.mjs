/**
 * Prints all messages of a topic, the newest first, with a connection of Relay that grows page by page.
 *
 *     npx relay-compiler && NOROSHI_TOKEN=... NOROSHI_TOPIC=... node history.mjs [messages per page]
 */
import relay from "relay-runtime";
import { WebSocket } from "ws";
import HISTORY from "./__generated__/operationsHistory_topic.graphql.js";
import HISTORY_PAGE from "./__generated__/operationsHistoryQuery.graphql.js";
import { createEnvironment } from "./environment.mjs";

const { fetchQuery, getSingularSelector } = relay;
const { NOROSHI_URL = "http://127.0.0.1:8000", NOROSHI_TOKEN, NOROSHI_TOPIC } = process.env;
const environment = createEnvironment(NOROSHI_URL, `Bearer ${NOROSHI_TOKEN}`, { webSocketImpl: WebSocket });
const variables = { id: NOROSHI_TOPIC, first: Number(process.argv[2] ?? 20), after: null };

/** Loads the next page into the store, and returns the connection with all pages. */
async function loadPage() {
  const { node } = await fetchQuery(environment, HISTORY_PAGE, variables).toPromise();
  return environment.lookup(getSingularSelector(HISTORY, node)).data.messages;
}

let printed = 0;
let page;
do {
  page = await loadPage();
  for (const { node } of page.edges.slice(printed)) console.log(`${node.author.handle}: ${node.text}`);
  printed = page.edges.length;
  variables.after = page.pageInfo.endCursor;
} while (page.pageInfo.hasNextPage);
