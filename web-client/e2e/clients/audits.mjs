/**
 * Runs the audits of graphql-http (GraphQL over HTTP) against a server and prints one line of JSON.
 *
 * Standard input: {url}. The line: {total, failed: [{id, name, status, reason}]}.
 */
import { readFileSync } from "node:fs";
import { auditServer } from "graphql-http";

const { url } = JSON.parse(readFileSync(0, "utf8"));

const results = await auditServer({ url: `${url}/graphql` });
const failed = results
  .filter((result) => result.status !== "ok")
  .map(({ id, name, status, reason }) => ({ id, name, status, reason }));
console.log(JSON.stringify({ total: results.length, failed }));
