/** Writes dist/trusted-documents.json: the documents that the built client sends (src/api/manifest.ts). */
import { createRunnableDevEnvironment, type EnvironmentOptions, type Plugin, resolveConfig } from "vite";

const TAG = "/src/api/graphql.ts";
const MANIFEST = "/src/api/manifest.ts";

/** The file holds the documents of all modules of the client that import the tag. */
export function trustedDocuments(): Plugin {
  let root = "";
  return {
    name: "trusted-documents",
    apply: "build",
    configResolved(config) {
      root = config.root;
    },
    async generateBundle() {
      const importsTag = (id: string) => this.getModuleInfo(id)?.importedIds.includes(root + TAG);
      const modules = [...this.getModuleIds()].filter(importsTag).map((id) => id.slice(root.length));
      if (modules.length === 0) throw new Error(`No module imports ${TAG}.`);
      const source = `${JSON.stringify(await manifestOf(modules, root), null, 1)}\n`;
      this.emitFile({ type: "asset", fileName: "trusted-documents.json", source });
    },
  };
}

/** Loads modules outside of the browser, and returns the manifest of their documents. */
async function manifestOf(modules: string[], root: string): Promise<Record<string, string>> {
  const documents: EnvironmentOptions = {
    consumer: "server",
    dev: { moduleRunnerTransform: true },
    // Node would load another copy of @urql/core for urql than for the cache.
    resolve: { noExternal: ["urql"] },
  };
  const config = await resolveConfig(
    { configFile: false, root, logLevel: "error", environments: { documents } },
    "serve",
  );
  const environment = createRunnableDevEnvironment("documents", config, {
    hot: false,
    runnerOptions: { hmr: { logger: false } },
  });
  await environment.init();
  try {
    const module = await environment.runner.import<typeof import("./src/api/manifest")>(MANIFEST);
    return await module.manifestOf(modules);
  } finally {
    await environment.close();
  }
}
