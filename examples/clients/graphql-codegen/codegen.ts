import type { CodegenConfig } from "@graphql-codegen/cli";

const config: CodegenConfig = {
  schema: "../../../schema/schema.graphql",
  documents: ["messages.ts"],
  generates: { "./generated/": { preset: "client" } },
  config: {
    // An error for a scalar without a type. Otherwise its values would be `unknown`.
    strictScalars: true,
    scalars: {
      Cursor: "string",
      DateTime: "string",
      LocalDateTime: "string",
      Timestamp: "string",
    },
    useTypeImports: true,
  },
};

export default config;
