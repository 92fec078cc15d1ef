"""Personal data: the registry of all collections, and the erasure of people (docs/privacy.md)."""
