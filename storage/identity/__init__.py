"""Users of organizations, their roles, blocks and follows."""
