"""GraphQL types, and the bindings of their fields to resolvers. No logic and no I/O."""
