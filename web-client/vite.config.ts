/**
 * Builds two pages into dist/, the web client and GraphiQL, and the manifest of the client's documents. The development
 * server forwards requests for the API, accounts, sign-in and files to Noroshi's server.
 */
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { trustedDocuments } from "./trusted-documents.ts";

// Keeps the browser's Host header. It then matches the Origin header, so that Noroshi's server accepts the WebSocket.
const product = { target: "http://127.0.0.1:8000", changeOrigin: false };

const PRODUCT_PATHS = [
  "/readyz",
  "/demo",
  "/accounts",
  "/sign-in",
  "/sign-out",
  "/images",
  "/stamps",
  "/uploads",
  "/files",
  "/exports",
  "/audit.ndjson",
];

/** Leaves out what the emoji picker does not need, such as the variants in skin tones: three quarters of the data. */
const smallEmojiData: Plugin = {
  name: "small-emoji-data",
  enforce: "pre",
  transform(json, id) {
    if (!/emojibase-data\/\w+\/compact\.json$/.test(id)) return null;
    const emojis = JSON.parse(json) as Record<string, unknown>[];
    return JSON.stringify(emojis.map(({ unicode, label, tags, group }) => ({ unicode, label, tags, group })));
  },
};

export default defineConfig({
  plugins: [react(), tailwindcss(), smallEmojiData, trustedDocuments()],
  test: { include: ["src/**/*.test.ts"], environment: "node", setupFiles: ["src/i18n/load-all.ts"] },
  worker: { format: "es" },
  // CommonJS modules that Monaco's GraphQL worker imports. The development server converts them only if they are
  // listed.
  optimizeDeps: {
    include: ["monaco-graphql > picomatch-browser", "monaco-graphql > graphql-language-service > nullthrows"],
  },
  server: {
    proxy: {
      "/graphql": { ...product, ws: true },
      ...Object.fromEntries(PRODUCT_PATHS.map((path) => [path, product])),
    },
  },
  build: {
    // All browsers that docs/web-client.md names know it. Others load the modules a little later.
    modulePreload: { polyfill: false },
    // Monaco, prettier and the GraphQL worker are large. Only GraphiQL loads them.
    chunkSizeWarningLimit: 4000,
    rolldownOptions: {
      input: ["index.html", "graphiql.html"],
      // Ignores "use no memo" in GraphiQL's files, a directive for React's compiler, which is not used here.
      onLog: (level, log, report) => log.code === "MODULE_LEVEL_DIRECTIVE" || report(level, log),
    },
  },
});
