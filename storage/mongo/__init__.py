"""The interface to MongoDB: the client, transactions and errors. Other packages import these names from here."""

from storage.mongo.cancellation import backport_wait_for
from storage.mongo.client import (
    DEFAULT_DRIVER,
    Collection,
    Driver,
    Mongo,
    Update,
    Write,
    connect,
    older_than,
)
from storage.mongo.errors import DUPLICATE_KEY, is_duplicate, unavailable
from storage.mongo.reads import Document, Sort
from storage.mongo.transactions import APP_NAME, MAJORITY, TRANSACTION_DEADLINE_S, Session

backport_wait_for()

__all__ = [
    "APP_NAME",
    "DEFAULT_DRIVER",
    "DUPLICATE_KEY",
    "MAJORITY",
    "TRANSACTION_DEADLINE_S",
    "Collection",
    "Document",
    "Driver",
    "Mongo",
    "Session",
    "Sort",
    "Update",
    "Write",
    "connect",
    "is_duplicate",
    "older_than",
    "unavailable",
]
