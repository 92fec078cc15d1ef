/**
 * Monaco's web workers, as files of this build. GraphiQL's own `setup-workers/vite` does the same, but breaks the
 * development server (graphiql#4038).
 */
import EditorWorker from "monaco-editor/esm/vs/editor/editor.worker.js?worker";
import JsonWorker from "monaco-editor/esm/vs/language/json/json.worker.js?worker";
import GraphQLWorker from "monaco-graphql/esm/graphql.worker.js?worker";

const WORKERS: Record<string, new () => Worker> = { json: JsonWorker, graphql: GraphQLWorker };

Object.assign(globalThis, {
  MonacoEnvironment: {
    getWorker: (_id: string, label: string): Worker => new (WORKERS[label] ?? EditorWorker)(),
  },
});
