"""Service keys: their format, their scopes, and the store that creates, rotates, revokes and recognizes them."""
