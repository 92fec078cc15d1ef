"""GraphQL types and root fields of the bounce address book."""
