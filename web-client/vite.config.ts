/** Builds two pages, the web client and GraphiQL, into dist/; in development passes everything else on to the product. */
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// The Host header stays the browser's, so that the product sees its own origin and accepts the WebSocket.
const product = { target: "http://127.0.0.1:8000", changeOrigin: false };

export default defineConfig({
  plugins: [react(), tailwindcss()],
  test: { include: ["src/**/*.test.ts"], environment: "node" },
  worker: { format: "es" },
  // CommonJS that Monaco's GraphQL worker imports: the development server finds it only when it is listed.
  optimizeDeps: {
    include: ["monaco-graphql > picomatch-browser", "monaco-graphql > graphql-language-service > nullthrows"],
  },
  server: {
    proxy: {
      "/graphql": { ...product, ws: true },
      "/readyz": product,
      "/demo": product,
      "/images": product,
      "/stamps": product,
    },
  },
  build: {
    // Monaco, prettier and the GraphQL worker are large by nature, and are loaded by GraphiQL only.
    chunkSizeWarningLimit: 4000,
    rolldownOptions: {
      input: ["index.html", "graphiql.html"],
      // "use no memo" in GraphiQL's files speaks to React's compiler, which does not run here.
      onLog: (level, log, report) => log.code === "MODULE_LEVEL_DIRECTIVE" || report(level, log),
    },
  },
});
