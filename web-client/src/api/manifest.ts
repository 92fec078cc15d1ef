/**
 * The manifest of trusted documents: exactly the texts that this client sends, by their SHA-256. The build writes it
 * beside the client (../../trusted-documents.ts), and the server trusts these texts (docs/interfaces.md).
 */
import { createRequest, type OperationType, type TypedDocumentNode } from "urql";
import { type Clients, createClients } from "./clients";
import { sentDocuments } from "./graphql";

/** Loads modules, such as "/src/chat/operations.ts", and returns the manifest of the documents in all loaded ones. */
export async function manifestOf(modules: readonly string[]): Promise<Record<string, string>> {
  for (const module of modules) await import(/* @vite-ignore */ module);
  const texts = new Set((await Promise.all([...sentDocuments].map(textsOf))).flat());
  const entries = await Promise.all([...texts].map(async (text) => [await sha256(text), text] as const));
  return Object.fromEntries(entries.sort(([id], [otherId]) => (id < otherId ? -1 : 1)));
}

/** Returns the texts of a document as the two clients send it; an empty list for a document of fragments alone. */
async function textsOf(document: TypedDocumentNode | string): Promise<string[]> {
  if (typeof document === "string") return [document];
  const operation = document.definitions.find((definition) => "operation" in definition);
  if (operation === undefined) return [];
  const kind = operation.operation as OperationType;
  return [await textSent("cached", kind, document), await textSent("direct", kind, document)];
}

/** Lets a client send an operation without variables. Returns its text, which gets no answer. */
function textSent(
  name: Exclude<keyof Clients, "changes">,
  kind: OperationType,
  document: TypedDocumentNode,
): Promise<string> {
  return new Promise((resolve) => {
    const clients = createClients({
      headers: {},
      fetch: (_url, request) => {
        resolve(JSON.parse(request?.body as string).query);
        return new Promise(() => {});
      },
      forwardSubscription: ({ query = "" }) => ({
        subscribe: () => {
          resolve(query);
          return { unsubscribe: () => {} };
        },
      }),
    });
    const client = clients[name];
    const request = createRequest(document, {});
    // Mutations with this policy write no optimistic results, for which the cache would need variables.
    const operation = client.createRequestOperation(kind, request, { requestPolicy: "network-only" });
    client.executeRequestOperation(operation).subscribe(() => {});
  });
}

async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
