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
    due_filter,
    literals,
    older_than,
    seconds_from_now,
)
from storage.mongo.errors import DUPLICATE_KEY, is_duplicate, unavailable
from storage.mongo.reads import Document, SortOrder
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
    "SortOrder",
    "Update",
    "Write",
    "connect",
    "due_filter",
    "is_duplicate",
    "literals",
    "older_than",
    "seconds_from_now",
    "unavailable",
]
