"""Threads: the replies to a message, on a timeline of their own."""
