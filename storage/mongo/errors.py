"""Classification of PyMongo's errors: duplicate keys, unknown outcomes and outages."""

from pymongo.errors import BulkWriteError, ConnectionFailure, OperationFailure, PyMongoError, WriteConcernError

from storage.errors import Unavailable

DUPLICATE_KEY = 11000

NOT_PRIMARY = frozenset({91, 189, 10058, 10107, 11600, 11602, 13435, 13436})
"""Codes of a member that is not primary or shuts down, by the specification of server discovery and monitoring.

PyMongo turns such an answer into a ConnectionFailure. Within the errors of a bulk write it does not.
"""


def is_duplicate(error: PyMongoError) -> bool:
    """Returns whether a unique index refused the write."""
    if isinstance(error, BulkWriteError):
        return any(each["code"] == DUPLICATE_KEY for each in error.details.get("writeErrors", ()))
    return isinstance(error, OperationFailure) and error.code == DUPLICATE_KEY


def is_outcome_unknown(error: PyMongoError) -> bool:
    """Returns whether the transaction may have been committed: it timed out, or its commit was not answered."""
    return error.timeout or error.has_error_label("UnknownTransactionCommitResult")


def unavailable(error: BaseException) -> Unavailable | None:
    """Returns the error to raise to the client if MongoDB did not answer, and None for every other error.

    An election that interrupts a write's wait for the majority is no answer either: it may undo the write.
    """
    is_late = isinstance(error, PyMongoError) and error.timeout
    if isinstance(error, ConnectionFailure | WriteConcernError) or is_late or _is_interrupted(error):
        return Unavailable("The database does not answer. Try again.")
    return None


def _is_interrupted(error: BaseException) -> bool:
    """Returns whether an election interrupted a bulk write, whose other errors are duplicates at most."""
    if not isinstance(error, BulkWriteError):
        return False
    codes = {each["code"] for each in error.details.get("writeErrors", ())} - {DUPLICATE_KEY}
    return codes <= NOT_PRIMARY and bool(codes or error.details.get("writeConcernErrors"))
