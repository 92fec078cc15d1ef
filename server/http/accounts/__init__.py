"""Routes of local accounts: signing in with a password, getting an account, and choosing another password."""

from server.http.accounts.routes import account_routes, invitation_routes

__all__ = ["account_routes", "invitation_routes"]
