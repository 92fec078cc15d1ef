"""Limits on the memory that connections use: for data that clients have not read, and for request bodies."""
