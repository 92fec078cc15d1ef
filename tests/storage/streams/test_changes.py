"""Batches: each change reads the results of earlier changes, and each document is written at most once."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymongo import DeleteOne, InsertOne, ReplaceOne

from storage.streams.changes import Batch, SystemChange
from storage.streams.log import Stream

AT = datetime(2026, 11, 21, tzinfo=UTC)


def new_batch(**head: Any) -> Batch:
    return Batch(Stream("topic", "t"), {"committed_at": AT, "before": {"last": 90}, **head}, 100, 7)


def test_timestamps_are_taken_in_order_of_calls() -> None:
    batch = new_batch()
    assert [batch.take_timestamp() for _ in range(3)] == [100, 101, 102]
    for kind in ("A", "B"):
        batch.emit(kind, kind)
    assert [(event.n, event.kind, event.at) for event in batch.events] == [(7, "A", AT), (8, "B", AT)]


@pytest.mark.parametrize(("timestamp_count", "last_timestamp"), [(0, 99), (2, 101)])
def test_batch_ends_at_its_last_event_and_timestamp(timestamp_count: int, last_timestamp: int) -> None:
    batch = new_batch()
    for _ in range(timestamp_count):
        batch.take_timestamp()
    batch.emit("A", 1)
    assert (batch.last_n, batch.last_timestamp) == (7, last_timestamp)


def test_put_document_is_read_by_next_change() -> None:
    batch = new_batch()
    batch.add_loaded("things", {"_id": "a", "n": 1})
    assert batch.get("things", "a") == {"_id": "a", "n": 1}
    batch.put("things", {"_id": "a", "n": 2})
    assert batch.get("things", "a") == {"_id": "a", "n": 2}
    batch.remove("things", "a")
    assert batch.get("things", "a") is None
    assert batch.get("others", "a") is None


OPERATIONS = st.lists(st.sampled_from(["put", "remove"]), max_size=6)


@given(st.booleans(), OPERATIONS, st.sampled_from(["a", {"t": "x", "ts": 1}]))
def test_puts_and_removes_become_at_most_one_write(exists: bool, operations: list[str], id_: Any) -> None:
    batch, document = new_batch(), {"_id": id_, "n": 0}
    if exists:
        batch.add_loaded("things", document)
    for number, operation in enumerate(operations, 1):
        document = {"_id": id_, "n": number}
        if operation == "put":
            batch.put("things", document)
        else:
            batch.remove("things", id_)
    writes = batch.writes("things", id_) if operations else []
    assert writes == expected_writes(exists, operations, id_)


def expected_writes(exists: bool, operations: list[str], id_: Any) -> list[Any]:
    if not operations or (operations[-1] == "remove" and not exists):
        return []
    document = {"_id": id_, "n": len(operations)}
    if operations[-1] == "remove":
        return [DeleteOne({"_id": id_})]
    return [ReplaceOne({"_id": id_}, document)] if exists else [InsertOne(document)]


def test_equal_outbox_rows_are_added_once() -> None:
    batch = new_batch()
    for stream, kind, ref in [("a", "K", "x"), ("a", "K", "x"), ("b", "K", "x"), ("a", "L", "x"), ("a", "K", {"t": 1})]:
        for _ in range(2):
            batch.add_outbox_row(Stream("user", stream), kind, ref)
    assert [(row["stream"], row["kind"], row["ref"]) for row in batch.outbox] == [
        ("user:a", "K", "x"),
        ("user:b", "K", "x"),
        ("user:a", "L", "x"),
        ("user:a", "K", {"t": 1}),
    ]
    assert {row["at"] for row in batch.outbox} == {AT}


def test_outbox_row_for_a_topic_is_refused() -> None:
    batch = new_batch()
    with pytest.raises(ValueError, match="topic:t takes no outbox rows"):
        batch.add_outbox_row(Stream("topic", "t"), "K", "x")
    assert not batch.outbox


def test_changed_documents_exclude_removed_ones() -> None:
    batch = new_batch()
    batch.add_loaded("things", {"_id": "read only"})
    batch.add_loaded("things", {"_id": "gone"})
    batch.put("things", {"_id": "new"})
    batch.put("others", {"_id": "elsewhere"})
    batch.remove("things", "gone")
    assert batch.changed_documents("things") == [{"_id": "new"}]


def test_change_with_key_requires_result_id() -> None:
    class ChangeWithoutResultId(SystemChange[int]):
        def plan(self, batch: Batch) -> int:
            return 1

    with pytest.raises(NotImplementedError):
        ChangeWithoutResultId().result_id(1)
