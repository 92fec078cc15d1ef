"""Classification of PyMongo's errors."""

import pytest
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    DuplicateKeyError,
    ExecutionTimeout,
    OperationFailure,
    PyMongoError,
)

from storage.mongo import is_duplicate, unavailable


@pytest.mark.parametrize("error", [AutoReconnect("gone"), ExecutionTimeout("late", 50)], ids=repr)
def test_outage_is_unavailable(error: PyMongoError) -> None:
    translated = unavailable(error)
    assert translated is not None
    assert translated.extensions["retryAfterMs"] == 1000


@pytest.mark.parametrize(
    "error", [OperationFailure("no", 2), ValueError(), DuplicateKeyError("twice", 11000)], ids=repr
)
def test_other_error_is_not_unavailable(error: Exception) -> None:
    assert unavailable(error) is None


def test_duplicate_key_is_recognised() -> None:
    assert is_duplicate(DuplicateKeyError("twice", 11000))
    assert is_duplicate(BulkWriteError({"writeErrors": [{"code": 11000}]}))
    assert not is_duplicate(BulkWriteError({"writeErrors": [{"code": 2}]}))
    assert not is_duplicate(OperationFailure("no", 2))
