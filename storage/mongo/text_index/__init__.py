"""Text indexes on MongoDB: terms of texts, parsed queries, and reads of the newest matches (ADR 64)."""
