/** The types of each interface and union of the schema, as `InMemoryCache` takes them. Needs no token. */
const QUERY = "{ __schema { types { name possibleTypes { name } } } }";

/** Returns an object such as `{ TopicEvent: ["StreamReady", "MessagePosted", ...], ... }`. */
export async function fetchPossibleTypes(url) {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ query: QUERY }) });
  const { types } = (await response.json()).data.__schema;
  const abstractTypes = types.filter(({ possibleTypes }) => possibleTypes);
  return Object.fromEntries(
    abstractTypes.map(({ name, possibleTypes }) => [name, possibleTypes.map((type) => type.name)]),
  );
}
