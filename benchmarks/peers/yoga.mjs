/** GraphQL Yoga on node:http, with its plugin for the JIT: `node yoga.mjs web --fd=SOCKET_FD`. */
import { createServer } from "node:http";
import { useGraphQlJit } from "@envelop/graphql-jit";
import { createSchema, createYoga } from "graphql-yoga";
import { requestContext, resolvers, schema, serve } from "./timeline.mjs";

const yoga = createYoga({
  schema: createSchema({ typeDefs: schema, resolvers }),
  context: ({ request }) => requestContext(request.headers.get("authorization")),
  plugins: [useGraphQlJit()],
  healthCheckEndpoint: "/readyz",
  graphiql: false,
  landingPage: false,
});
serve(createServer(yoga));
