"""Records hold every field of the stored documents, and callIds are parsed as they were written."""

from typing import Any

import pytest

from storage.calls.records import (
    MAX_SEQUENCE,
    POLLED_SEQUENCE,
    CallJob,
    CallJobProgress,
    CallJobState,
    CallKey,
    CallOutcome,
    CallOutcomeCount,
    CallTask,
    CallTaskState,
    CallVariable,
    TaskKey,
    job_record,
    parse_call_id,
    task_record,
)
from storage.calls.windows import WEEK, CallingWindow
from storage.errors import NotFound
from storage.timeline import Timestamp
from tests.storage.calls.stored_calls import TASK, called_task, counts, queued_task, stored_job
from tests.storage.in_memory_stream import ORG, in_s

NUMBERS = {"QUEUED": 1, "DIALLING": 2, "IN_CALL": 4, "COMPLETED": 8, "FAILED": 16, "UNKNOWN": 32}


def test_job_record_holds_every_field() -> None:
    window = CallingWindow("09:00", "17:00", "UTC", WEEK)
    stored: Any = stored_job(start_at=in_s(-5), window=window.document, row_errors=3)
    stored |= {"counts": counts(**NUMBERS, SKIPPED=64, CANCELLED=128), "outcomes": {"BUSY": 2, "ANSWERED": 1}}
    outcomes = [CallOutcomeCount(CallOutcome.ANSWERED, 1), CallOutcomeCount(CallOutcome.BUSY, 2)]
    progress = CallJobProgress(1, 6, 8, 16, 32, 64, 128, outcomes)
    assert progress.total == 255
    assert job_record(stored) == CallJob(
        id="job",
        organization_id=ORG,
        timestamp=Timestamp(5),
        name="Reminders",
        scenario="Hello",
        state=CallJobState.RUNNING,
        created_at=in_s(-60),
        start_at=in_s(-5),
        window=window,
        max_attempts=2,
        retry_delay_s=30,
        expected_call_s=60,
        progress=progress,
        row_error_count=3,
    )


def test_job_record_without_window_has_none() -> None:
    stored: Any = stored_job()
    assert (job_record(stored).window, job_record(stored).start_at) == (None, None)


def test_task_record_holds_every_field() -> None:
    stored: Any = called_task() | {"outcome": "BUSY", "ended_at": in_s(-1)}
    expected = CallTask(
        key=TASK,
        organization_id=ORG,
        phone_number="+81901",
        variables=[CallVariable("name", "Ann")],
        state=CallTaskState.DIALLING,
        outcome=CallOutcome.BUSY,
        attempts=1,
        call_id="job-2-2",
        started_at=in_s(-9),
        ended_at=in_s(-1),
        error="x",
    )
    assert task_record(stored) == expected
    assert (expected.id, expected.job_id, expected.row) == ("job-2", "job", 2)


@pytest.mark.parametrize(
    ("job_state", "state"),
    [(None, "QUEUED"), (CallJobState.RUNNING, "QUEUED"), (CallJobState.CANCELLED, "CANCELLED")],
)
def test_queued_task_of_cancelled_job_is_cancelled(job_state: CallJobState | None, state: str) -> None:
    queued: Any = queued_task()
    found = task_record(queued, job_state)
    assert (found.state.value, found.outcome, found.call_id) == (state, None, None)
    assert (found.started_at, found.ended_at, found.error) == (None, None, None)
    called: Any = called_task()
    assert task_record(called, job_state).state is CallTaskState.DIALLING


def test_call_id_is_parsed_as_it_was_written() -> None:
    for key in (CallKey(TASK, 3), CallKey(TaskKey("a-b-1", 999_999_999), 999_999_999)):
        assert parse_call_id(key.id) == key
    assert TaskKey.from_id(TASK.document_id) == TASK


@pytest.mark.parametrize("id_", ["", "job", "job-1", "-1-2", "job-x-1", "job-1-x", "job-²-1", "job-1234567890-1"])
def test_other_text_is_no_call_id(id_: str) -> None:
    with pytest.raises(NotFound):
        parse_call_id(id_)


def test_polled_sequence_exceeds_every_reported_sequence() -> None:
    assert MAX_SEQUENCE < POLLED_SEQUENCE < 2**31, "A sequence is an Int of GraphQL."
