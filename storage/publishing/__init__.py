"""Scheduled posts, their publications and connected accounts: documents, records, stores, and the state machine."""
