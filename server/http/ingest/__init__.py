"""Routes that record delivery events: of own programs, of log shippers, and of mail providers (docs/mail.md)."""

from server.http.ingest.routes import ingest_routes

__all__ = ["ingest_routes"]
