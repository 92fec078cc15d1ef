"""The table of contents: GraphQL types and their bindings; no logic and no I/O."""
