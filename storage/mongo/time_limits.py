"""Time limits of MongoDB commands. Every read of a collection carries `maxTimeMS` (ADR 57)."""

from typing import TYPE_CHECKING, Any

from pymongo.asynchronous.collection import AsyncCollection

COMMAND_TIMEOUT_S = 10.0
"""How long a client waits for the answer to one command."""

MAX_TIME_MS = 9_000
"""After this time, MongoDB ends a read. The answer then arrives before the client gives up and repeats the read."""

if TYPE_CHECKING:
    _Collection = AsyncCollection[Any]
else:
    _Collection = object


class TimeLimitedReads(_Collection):
    """Adds `maxTimeMS` to the reads of a driver's collection class, unless the caller sets it.

    The limit of a find or an aggregation covers all batches of its cursor. It counts MongoDB's time, not the time
    between two batches.
    """

    def find(self, *args: Any, **options: Any) -> Any:
        """Returns a cursor of the matching documents."""
        return super().find(*args, **{"max_time_ms": MAX_TIME_MS} | options)

    def find_one(self, *args: Any, **options: Any) -> Any:
        """Returns the first matching document, or None."""
        return super().find_one(*args, **{"max_time_ms": MAX_TIME_MS} | options)

    def aggregate(self, *args: Any, **options: Any) -> Any:
        """Runs a pipeline. Returns a cursor of its results."""
        return super().aggregate(*args, **{"maxTimeMS": MAX_TIME_MS} | options)

    def count_documents(self, *args: Any, **options: Any) -> Any:
        """Returns the number of matching documents."""
        return super().count_documents(*args, **{"maxTimeMS": MAX_TIME_MS} | options)

    def estimated_document_count(self, *args: Any, **options: Any) -> Any:
        """Returns the number of documents, from the collection's metadata."""
        return super().estimated_document_count(*args, **{"maxTimeMS": MAX_TIME_MS} | options)

    def distinct(self, *args: Any, **options: Any) -> Any:
        """Returns the distinct values of a field."""
        return super().distinct(*args, **{"maxTimeMS": MAX_TIME_MS} | options)


def time_limited(collection_class: type) -> Any:
    """Returns a subclass of a driver's collection class, whose reads have a time limit."""
    return type(collection_class.__name__, (TimeLimitedReads, collection_class), {})
