"""Accounts of people who sign in here, without an identity provider: passwords, links, invitations and limits."""
