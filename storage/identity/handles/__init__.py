"""Handles of users: suggested for new users, changed by their users, and reserved after that."""
