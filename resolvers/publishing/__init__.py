"""Scheduled posts, their publications and connected accounts, as a client uses them."""
