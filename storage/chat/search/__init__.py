"""Search of messages (docs/search.md)."""
