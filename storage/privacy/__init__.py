"""Personal data: the registry of all collections, and the export and the erasure of a person (docs/privacy.md)."""
