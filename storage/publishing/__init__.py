"""Scheduled posts, their publications and connected accounts: records, reads, and the changes of the state machine."""
