"""Use cases of administrators: users, roles, invitations, service keys, retention, erasures and the audit log."""
