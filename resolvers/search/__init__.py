"""Search of messages, posts, topics and people (docs/search.md)."""
