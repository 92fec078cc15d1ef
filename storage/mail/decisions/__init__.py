"""Decisions of operators about mail: the policy of an organization, blocks by hand, and the record of changes."""
