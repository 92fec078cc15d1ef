"""Users of organizations: accounts, sessions, roles, service keys, blocks, mutes and follows. Also the audit log."""
