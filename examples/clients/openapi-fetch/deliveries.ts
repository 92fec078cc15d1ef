/**
 * Asks whether the server is ready, signs in with a password, and records a delivery with a service key.
 *
 *     npx openapi-typescript http://127.0.0.1:8000/openapi.json -o noroshi.d.ts
 *     NOROSHI_ADDRESS=... NOROSHI_PASSWORD=... NOROSHI_KEY=... npx tsx deliveries.ts
 */
import createClient from "openapi-fetch";
import type { components, paths } from "./noroshi";

const { NOROSHI_URL = "http://127.0.0.1:8000", NOROSHI_KEY } = process.env;
const { NOROSHI_ADDRESS: address = "", NOROSHI_PASSWORD = "" } = process.env;
const client = createClient<paths>({ baseUrl: NOROSHI_URL });

const { data: readiness } = await client.GET("/readyz");
console.log(`The server is ${readiness?.status}.`);

for (const password of ["a wrong one", NOROSHI_PASSWORD]) {
  const { data, error } = await client.POST("/sign-in/password", {
    params: { header: { "Noroshi-Client": "example" } },
    body: { address, password },
  });
  console.log(data ? `Signed in as ${data.userId}.` : error.errors[0]?.extensions.code);
}

const delivery: components["schemas"]["DeliveryEvent"] = {
  eventId: crypto.randomUUID(),
  address: "ann@example.org",
  at: new Date().toISOString(),
  kind: "DELIVERY",
  smtpCode: 250,
};
const { data: recorded } = await client.POST("/ingest/deliveries", {
  headers: { authorization: `Bearer ${NOROSHI_KEY}`, "content-type": "application/x-ndjson" },
  body: `${JSON.stringify(delivery)}\n`,
  bodySerializer: (lines) => lines,
});
console.log(`Recorded ${recorded?.accepted}.`);
