"""Batches: each member sees the results of earlier members, and only the difference is written."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymongo import DeleteOne, InsertOne, ReplaceOne

from storage.streams.changes import Batch, Change
from storage.streams.log import Stream

AT = datetime(2026, 11, 21, tzinfo=UTC)


def batch(**head: Any) -> Batch:
    return Batch(Stream("topic", "t"), {"committed_at": AT, "before": {"last": 90}, **head}, 100, 7)


def test_timestamps_are_taken_in_order_of_calls() -> None:
    planned = batch()
    assert [planned.take_timestamp() for _ in range(3)] == [100, 101, 102]
    for kind in ("A", "B"):
        planned.emit(kind, kind)
    assert [(event.n, event.kind, event.at) for event in planned.events] == [(7, "A", AT), (8, "B", AT)]


@pytest.mark.parametrize(("taken", "last"), [(0, 99), (2, 101)])
def test_batch_ends_at_its_last_event_and_timestamp(taken: int, last: int) -> None:
    planned = batch()
    for _ in range(taken):
        planned.take_timestamp()
    planned.emit("A", 1)
    assert (planned.last_n, planned.last_timestamp) == (7, last)


def test_put_document_is_read_by_next_member() -> None:
    planned = batch()
    planned.add("things", {"_id": "a", "n": 1})
    assert planned.get("things", "a") == {"_id": "a", "n": 1}
    planned.put("things", {"_id": "a", "n": 2})
    assert planned.get("things", "a") == {"_id": "a", "n": 2}
    planned.remove("things", "a")
    assert planned.get("things", "a") is None
    assert planned.get("others", "a") is None


STEPS = st.lists(st.sampled_from(["put", "remove"]), max_size=6)


@given(st.booleans(), STEPS, st.sampled_from(["a", {"t": "x", "ts": 1}]))
def test_puts_and_removes_become_at_most_one_write(is_there: bool, steps: list[str], id_: Any) -> None:
    planned, document = batch(), {"_id": id_, "n": 0}
    if is_there:
        planned.add("things", document)
    for number, step in enumerate(steps, 1):
        document = {"_id": id_, "n": number}
        if step == "put":
            planned.put("things", document)
        else:
            planned.remove("things", id_)
    writes = planned.writes("things", id_) if steps else []
    assert writes == expected_writes(is_there, steps, id_)


def expected_writes(is_there: bool, steps: list[str], id_: Any) -> list[Any]:
    if not steps or (steps[-1] == "remove" and not is_there):
        return []
    document = {"_id": id_, "n": len(steps)}
    if steps[-1] == "remove":
        return [DeleteOne({"_id": id_})]
    return [ReplaceOne({"_id": id_}, document)] if is_there else [InsertOne(document)]


def test_equal_outbox_rows_are_added_once() -> None:
    planned = batch()
    for stream, kind, ref in [("a", "K", "x"), ("a", "K", "x"), ("b", "K", "x"), ("a", "L", "x"), ("a", "K", {"t": 1})]:
        for _ in range(2):
            planned.add_outbox_row(Stream("user", stream), kind, ref)
    assert [(row["stream"], row["kind"], row["ref"]) for row in planned.outbox] == [
        ("user:a", "K", "x"),
        ("user:b", "K", "x"),
        ("user:a", "L", "x"),
        ("user:a", "K", {"t": 1}),
    ]
    assert {row["at"] for row in planned.outbox} == {AT}


def test_outbox_row_for_a_topic_is_refused() -> None:
    planned = batch()
    with pytest.raises(ValueError, match="topic:t takes no outbox rows"):
        planned.add_outbox_row(Stream("topic", "t"), "K", "x")
    assert not planned.outbox


def test_changed_documents_exclude_removed_ones() -> None:
    planned = batch()
    planned.add("things", {"_id": "read only"})
    planned.add("things", {"_id": "gone"})
    planned.put("things", {"_id": "new"})
    planned.put("others", {"_id": "elsewhere"})
    planned.remove("things", "gone")
    assert planned.changed("things") == [{"_id": "new"}]


def test_change_with_key_requires_result_id() -> None:
    class Silent(Change[int]):
        def plan(self, batch: Batch) -> int:
            return 1

    with pytest.raises(NotImplementedError):
        Silent().result_id(1)
