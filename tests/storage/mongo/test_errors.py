"""Classification of PyMongo's errors."""

from collections.abc import Awaitable, Callable

import pytest
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    DuplicateKeyError,
    ExecutionTimeout,
    OperationFailure,
    PyMongoError,
    WriteConcernError,
)

from server.embedded import Mongod
from storage.mongo import Driver, Mongo, connect, is_duplicate, unavailable
from tests.storage.faults import failpoint

pytestmark = pytest.mark.anyio


INTERRUPTED = {"code": 11602, "errmsg": "operation was interrupted"}
"""The error with which an election ends a write's wait for the majority."""


@pytest.mark.parametrize(
    "error",
    [
        AutoReconnect("gone"),
        ExecutionTimeout("late", 50),
        WriteConcernError("operation was interrupted", 11602),
        BulkWriteError({"writeErrors": [{"code": 11000}], "writeConcernErrors": [INTERRUPTED]}),
        BulkWriteError({"writeErrors": [{"code": 189}, {"code": 11000}]}),
    ],
    ids=repr,
)
def test_outage_is_unavailable(error: PyMongoError) -> None:
    translated = unavailable(error)
    assert translated is not None
    assert translated.extensions["retryAfterMs"] == 1000


@pytest.mark.parametrize(
    "error",
    [
        OperationFailure("no", 2),
        ValueError(),
        DuplicateKeyError("twice", 11000),
        BulkWriteError({"writeErrors": [{"code": 2}], "writeConcernErrors": [INTERRUPTED]}),
        BulkWriteError({"writeErrors": [{"code": 2}, {"code": 189}]}),
        BulkWriteError({"writeErrors": [{"code": 11000}], "writeConcernErrors": []}),
    ],
    ids=repr,
)
def test_other_error_is_not_unavailable(error: Exception) -> None:
    assert unavailable(error) is None


def test_duplicate_key_is_recognised() -> None:
    assert is_duplicate(DuplicateKeyError("twice", 11000))
    assert is_duplicate(BulkWriteError({"writeErrors": [{"code": 11000}]}))
    assert not is_duplicate(BulkWriteError({"writeErrors": [{"code": 2}]}))
    assert not is_duplicate(OperationFailure("no", 2))


WRITES: dict[str, Callable[[Mongo], Awaitable[object]]] = {
    "update": lambda mongo: mongo["read_marks"].update_one({"_id": 1}, {"$set": {"at": 1}}, upsert=True),
    "insert": lambda mongo: mongo["mail_ledger"].insert_many([{"_id": 1}, {"_id": 2}]),
}


@pytest.mark.parametrize("command", WRITES)
async def test_write_that_an_election_interrupts_is_unavailable(
    own_mongod: Mongod, database: str, mongo_driver: Driver, command: str
) -> None:
    mongo = connect(own_mongod.uri, database, mongo_driver)
    async with failpoint(own_mongod.uri, command, writeConcernError=INTERRUPTED):
        with pytest.raises(PyMongoError) as raised:
            await WRITES[command](mongo)
    assert unavailable(raised.value) is not None
    await mongo.close()
