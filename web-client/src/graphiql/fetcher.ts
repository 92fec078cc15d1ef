/**
 * Sends GraphiQL's operations to /graphql of this origin: subscriptions over graphql-transport-ws, queries and
 * mutations by POST. Each operation sends the current content of the header editor.
 */
import type { Fetcher, FetcherParams, Observable } from "@graphiql/toolkit";
import {
  type ExecutionResult,
  GraphQLError,
  getOperationAST,
  type OperationDefinitionNode,
  parse,
} from "graphql";
import { createClient, type Sink } from "graphql-ws";

const GRAPHQL_PATH = "/graphql";

type RequestHeaders = Record<string, string>;

/** Executes an operation. GraphiQL calls this function for every operation and for introspection. */
export const fetcher: Fetcher = (params, options) => {
  const operation = chosenOperation(params);
  const request = { ...params, operationName: operation?.name?.value };
  const headers = options?.headers ?? {};
  return operation?.operation === "subscription" ? subscribe(request, headers) : post(request, headers);
};

/**
 * Returns the chosen operation; undefined for a document with a syntax error, which the server reports. For 100 ms
 * after a change of the document, GraphiQL may still name an operation of the old document. Then the document's only
 * operation is chosen.
 */
function chosenOperation({ query, operationName }: FetcherParams): OperationDefinitionNode | undefined {
  try {
    const document = parse(query);
    return getOperationAST(document, operationName) ?? getOperationAST(document) ?? undefined;
  } catch {
    return undefined;
  }
}

async function post(request: FetcherParams, headers: RequestHeaders): Promise<ExecutionResult> {
  try {
    const response = await fetch(GRAPHQL_PATH, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/graphql-response+json, application/json;q=0.9",
        // With this header, the server accepts the cookie of a session. A token in the header editor takes precedence.
        "noroshi-client": "graphiql",
        ...headers,
      },
      body: JSON.stringify(request),
    });
    return await parseResult(response);
  } catch (error) {
    return failedResult(`Could not reach the server: ${error instanceof Error ? error.message : error}`);
  }
}

async function parseResult(response: Response): Promise<ExecutionResult> {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    return failedResult(`HTTP ${response.status} ${response.statusText}: ${text.slice(0, 500)}`);
  }
}

/** Opens a connection for each subscription, because the headers may differ and a socket signs in once. */
function subscribe(request: FetcherParams, headers: RequestHeaders): Observable<ExecutionResult> {
  const authorization = new Headers(headers).get("authorization");
  const client = createClient({
    url: location.origin.replace(/^http/, "ws") + GRAPHQL_PATH,
    connectionParams: authorization === null ? {} : { authorization },
  });
  return {
    subscribe: (sink) => ({
      unsubscribe: client.subscribe(request, withReadableErrors(sink as Sink<ExecutionResult>)),
    }),
  };
}

/** Returns the sink with close events converted to messages. */
const withReadableErrors = ({ next, error, complete }: Sink<ExecutionResult>): Sink<ExecutionResult> => ({
  next,
  error: (reason) => error(reason instanceof CloseEvent ? closeMessage(reason) : reason),
  complete,
});

const closeMessage = ({ code, reason }: CloseEvent) => ({ message: `Closed with ${code} ${reason}`.trim() });

const failedResult = (message: string): ExecutionResult => ({ errors: [new GraphQLError(message)] });
