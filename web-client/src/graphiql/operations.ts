/** The operations of GraphiQL's prepared tabs, in order. tests/e2e/test_graphiql.py validates them with the schema. */
import addressBook from "./operations/address-book.graphql?raw";
import launchCalls from "./operations/launch-calls.graphql?raw";
import liveTopic from "./operations/live-topic.graphql?raw";
import pageForward from "./operations/page-forward.graphql?raw";
import postMessage from "./operations/post-message.graphql?raw";
import react from "./operations/react.graphql?raw";
import readTimeline from "./operations/read-timeline.graphql?raw";
import schedulePost from "./operations/schedule-post.graphql?raw";
import whoAmI from "./operations/who-am-i.graphql?raw";
import whoReacted from "./operations/who-reacted.graphql?raw";

const toJson = (values: Record<string, unknown>): string => JSON.stringify(values, null, 2);

// Phone numbers that the British regulator Ofcom reserves for fiction.
const PHONE_NUMBERS_CSV = "phone_number,name\n+447700900001,Ann\n+447700900002,Ben\n+447700900003,Cleo\n";

const fromNow = (ms: number): string => new Date(Date.now() + ms).toISOString();
const DAY_MS = 86_400_000;

export const OPERATIONS = [
  { query: whoAmI },
  { query: readTimeline, variables: toJson({ topicId: "", limit: 20 }) },
  { query: pageForward, variables: toJson({ topicId: "", oldest: "0.000000", limit: 20 }) },
  {
    query: postMessage,
    variables: toJson({ topicId: "", text: "Hello from GraphiQL", idempotencyKey: "hello-1" }),
  },
  { query: liveTopic, variables: toJson({ topicId: "" }) },
  { query: react, variables: toJson({ messageId: "", emoji: "🔥" }) },
  { query: whoReacted, variables: toJson({ topicId: "", timestamp: "0.000000" }) },
  {
    query: schedulePost,
    variables: toJson({
      input: { text: "Published by itself", toHomeFeed: true, dueAt: fromNow(60_000), timeZone: "UTC" },
    }),
  },
  {
    query: addressBook,
    variables: toJson({
      addresses: ["ann@example.org", "bob@example.org"],
      domain: null,
      from: fromNow(-13 * DAY_MS),
      to: fromNow(0),
    }),
  },
  {
    query: launchCalls,
    variables: toJson({
      input: {
        name: "Try",
        scenario: "Hello {name}",
        csv: PHONE_NUMBERS_CSV,
        maxAttempts: 2,
        retryDelayS: 60,
      },
    }),
  },
];
