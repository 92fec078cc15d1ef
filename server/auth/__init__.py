"""Authentication: tokens, their verification, and the sessions of their users."""
