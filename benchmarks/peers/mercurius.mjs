/**
 * Mercurius on Fastify, with its JIT: `node mercurius.mjs web --fd=SOCKET_FD`.
 *
 * It uses DataLoader, since mercurius's own loaders turn each message into a string and take a third more time.
 */
import Fastify from "fastify";
import mercurius from "mercurius";
import { requestContext, resolvers, schema, serve } from "./timeline.mjs";

const app = Fastify();
app.register(mercurius, {
  schema,
  resolvers,
  jit: 1,
  context: ({ headers }) => requestContext(headers.authorization),
});
app.get("/readyz", async () => "");
await app.ready();
serve(app.server);
