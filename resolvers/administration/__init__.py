"""Use cases of administrators: users, roles and the audit log."""
