/**
 * Builds two pages into dist/: the web client and GraphiQL. The development server forwards API requests to the
 * product.
 */
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// Keeps the browser's Host header. It then matches the Origin header, so that the product accepts the WebSocket.
const product = { target: "http://127.0.0.1:8000", changeOrigin: false };

export default defineConfig({
  plugins: [react(), tailwindcss()],
  test: { include: ["src/**/*.test.ts"], environment: "node" },
  worker: { format: "es" },
  // CommonJS modules that Monaco's GraphQL worker imports. The development server converts them only if they are
  // listed.
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
    // Monaco, prettier and the GraphQL worker are large. Only GraphiQL loads them.
    chunkSizeWarningLimit: 4000,
    rolldownOptions: {
      input: ["index.html", "graphiql.html"],
      // Ignores "use no memo" in GraphiQL's files, a directive for React's compiler, which is not used here.
      onLog: (level, log, report) => log.code === "MODULE_LEVEL_DIRECTIVE" || report(level, log),
    },
  },
});
