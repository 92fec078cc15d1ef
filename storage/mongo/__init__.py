"""MongoDB: one client whose facts are read and written at majority, transactions, and the database's clock."""

from storage.mongo.client import (
    APP_NAME,
    DUPLICATE_KEY,
    MAJORITY,
    Collection,
    Document,
    Driver,
    Mongo,
    Session,
    Update,
    Write,
    connect,
    is_duplicate,
    older_than,
    unavailable,
)

__all__ = [
    "APP_NAME",
    "DUPLICATE_KEY",
    "MAJORITY",
    "Collection",
    "Document",
    "Driver",
    "Mongo",
    "Session",
    "Update",
    "Write",
    "connect",
    "is_duplicate",
    "older_than",
    "unavailable",
]
