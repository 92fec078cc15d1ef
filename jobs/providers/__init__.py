"""The world outside: one protocol a kind, one class a provider."""
