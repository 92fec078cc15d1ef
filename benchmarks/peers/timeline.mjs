/** A timeline over the product's MongoDB: its schema, and the reads that both Node servers share. */
import DataLoader from "dataloader";
import { createVerifier } from "fast-jwt";
import { GraphQLError, GraphQLScalarType } from "graphql";
import { Long, MongoClient } from "mongodb";

const NOW = "now";
const MAX_TIMESTAMP = Long.fromString("9999999999999999");

const secret = process.env.NOROSHI_AUTH_SECRET;
const verifyToken = createVerifier({ key: secret, algorithms: ["HS256"], cache: true });
const client = await MongoClient.connect(process.env.MONGODB_URI, { readConcernLevel: "majority" });
const database = client.db(process.env.NOROSHI_DATABASE);
const [topics, memberships, blocks, messages, users, reactions] = [
  "topics",
  "memberships",
  "blocks",
  "messages",
  "users",
  "reactions",
].map((name) => database.collection(name));

export const schema = `
  scalar Timestamp
  type Query { messages(topicId: ID!, latest: Timestamp!, limit: Int!): Page! }
  type Page { items: [Message!]! hasOlder: Boolean! hasNewer: Boolean! }
  type Message { id: ID! timestamp: Timestamp! text: String! author: User! reactions: [Reaction!]! }
  type User { id: ID! handle: String! name: String! }
  type Reaction { emoji: String! count: Int! reacted: Boolean! }
`;

export const resolvers = {
  Timestamp: new GraphQLScalarType({
    name: "Timestamp",
    description: 'Microseconds since the Unix epoch as "seconds.micros".',
    serialize: formatTimestamp,
    parseValue: parseTimestamp,
  }),
  Query: {
    messages: (_, { topicId, latest, limit }, { viewer }) => readPage(viewer, topicId, latest, limit),
  },
  Message: {
    id: ({ _id }) => `${_id.t}-${_id.ts}`,
    timestamp: ({ _id }) => _id.ts,
    author: ({ author }, _, { authors }) => authors.load(author),
    reactions: (message, _, { viewerEmojis }) => readReactions(message, viewerEmojis),
  },
  User: { id: ({ _id }) => _id.id },
};

/** Returns the context of a request: its viewer and data loaders. */
export function requestContext(authorization) {
  const viewer = verifyToken(authorization.slice("Bearer ".length));
  return {
    viewer,
    authors: new DataLoader((ids) => loadAuthors(viewer, ids)),
    viewerEmojis: new DataLoader((documents) => loadViewerEmojis(viewer, documents)),
  };
}

/** Serves on the socket that the option `--fd` names. */
export function serve(server) {
  server.listen({ fd: Number(process.argv.at(-1).slice("--fd=".length)) });
}

function formatTimestamp(micros) {
  const digits = String(micros).padStart(7, "0");
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

function parseTimestamp(text) {
  if (text === NOW) return NOW;
  if (!/^\d{1,10}\.\d{6}$/.test(text)) throw new GraphQLError(`Expected a timestamp or "now", got ${text}.`);
  return Number(text.replace(".", ""));
}

async function readPage(viewer, topicId, latest, limit) {
  const topic = await topics.findOne({ _id: topicId, org: viewer.org });
  if (!topic) throw new GraphQLError("There is no such topic.");
  const [membership, blocked] = await Promise.all([
    memberships.findOne({ community: topic.community, user: viewer.sub }),
    blocks.find({ org: viewer.org, user: viewer.sub }).toArray(),
  ]);
  if (!membership) throw new GraphQLError("Only members read a topic.");
  const visible = blocked.length ? { author: { $nin: blocked.map((block) => block.blocked) } } : {};
  const high = { t: topicId, ts: latest === NOW ? MAX_TIMESTAMP : Long.fromNumber(latest) };
  const inRange = { _id: { $gte: { t: topicId, ts: Long.ZERO }, $lte: high }, ...visible };
  const items = await messages
    .find(inRange)
    .sort({ _id: -1 })
    .limit(limit + 1)
    .toArray();
  const hasOlder = items.length > limit;
  if (hasOlder) items.pop();
  return { items, hasOlder, hasNewer: latest !== NOW && (await hasNewer(topic, items, high, visible)) };
}

/** Returns whether a visible message follows the page. The topic's end tells it unless the viewer blocks authors. */
async function hasNewer(topic, items, high, visible) {
  if (!visible.author && items.length) return topic.last > items[0]._id.ts;
  const newer = { _id: { $gt: high, $lte: { t: topic._id, ts: MAX_TIMESTAMP } }, ...visible };
  return (await messages.findOne(newer)) !== null;
}

async function readReactions(message, viewerEmojis) {
  if (!message.reactions) return [];
  const own = await viewerEmojis.load(message);
  return message.reactions.map(({ emoji, count }) => ({ emoji, count, reacted: own.has(emoji) }));
}

/** Returns users in the order of the ids. */
async function loadAuthors(viewer, ids) {
  const found = await users.find({ _id: { $in: ids.map((id) => ({ org: viewer.org, id })) } }).toArray();
  const byId = new Map(found.map((user) => [user._id.id, user]));
  return ids.map((id) => byId.get(id));
}

/** Returns the viewer's emojis on each of these messages of one topic. */
async function loadViewerEmojis(viewer, documents) {
  const emojis = new Map(documents.map(({ _id }) => [_id.ts, new Set()]));
  const timestamps = { $in: [...emojis.keys()].map((ts) => Long.fromNumber(ts)) };
  const own = reactions.find({ "_id.t": documents[0]._id.t, "_id.ts": timestamps, "_id.u": viewer.sub });
  for (const { _id } of await own.toArray()) emojis.get(_id.ts).add(_id.e);
  return documents.map(({ _id }) => emojis.get(_id.ts));
}
