"""Stored jobs and tasks for tests that compare every field that a change stores."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from storage.calls.documents import JOBS, LIMITS, TASKS
from storage.calls.records import CallTaskState, TaskKey
from storage.mongo import Document
from storage.streams.changes import Change
from tests.storage.in_memory_stream import BEGIN, ORG, InMemoryStream, differences, in_s

TASK = TaskKey("job", 2)
OTHER_CALL = "job-9-1"
JOB_EMITTED = {"emitted_at": BEGIN}
"""Fields of a job that its event changes."""

BOTH_EMITTED = JOB_EMITTED | {"task_events_at": [BEGIN]}
"""Changes of a job by its event and by the event of its task."""

EVENTS = [("CallTaskChanged", "job-2"), ("CallJobChanged", "job")]


def counts(**numbers: int) -> dict[str, int]:
    """Returns the counts of a job: the numbers, and 0 for every other state."""
    return {state.value: 0 for state in CallTaskState} | numbers


def stored_job(**fields: Any) -> Document:
    """Returns a stored job that runs, with some fields replaced."""
    job: Document = {"_id": "job", "org": ORG, "creator": "ann", "ts": 5, "name": "Reminders", "scenario": "Hello"}
    job |= {"created_at": in_s(-60), "start_at": None, "window": None, "max_attempts": 2, "retry_delay_s": 30}
    job |= {"expected_call_s": 60, "row_errors": 0, "counts": counts(QUEUED=1, DIALLING=1, UNKNOWN=1), "outcomes": {}}
    return job | {"state": "RUNNING", "open": True} | fields


def ended_job(state: str) -> Document:
    """Returns a stored job in a final state."""
    job = stored_job(state=state, ended_at=in_s(-1))
    del job["open"]
    return job


def queued_task(**fields: Any) -> Document:
    """Returns a stored number that waits for its first call."""
    task: Document = {"_id": TASK.document_id, "org": ORG, "phone": "+81901", "variables": [["name", "Ann"]]}
    return task | {"state": "QUEUED", "queue": 0, "attempts": 0, "dials": 0} | fields


def called_task(state: str = "DIALLING", **call: Any) -> Document:
    """Returns a stored number whose second call began 9 s ago."""
    latest = {"n": 2, "seq": -1, "over": False, "start_at": in_s(-9)} | call
    task = queued_task(state=state, attempts=1, dials=2, call=latest, started_at=in_s(-9), poll_at=in_s(21), error="x")
    del task["queue"]
    return task


def stored_limits(**fields: Any) -> Document:
    """Returns a stored limiter with one free slot, and a slot of the task's latest call."""
    limits: Document = {"_id": ORG, "concurrent": 3, "per_second": 10.0, "slots": [OTHER_CALL, "job-2-2"]}
    return limits | {"last_start": in_s(-9), "next_at": in_s(-8), "fence": 3} | fields


@dataclass
class StoredCalls(InMemoryStream):
    """A stream with one job, one of its tasks, and the limiter."""

    result: Any = None
    """The result of the change."""

    def change(
        self, change: Change[Any], task: Document, job: Document | None = None, limits: Document | None = None
    ) -> tuple[Document, Document, Document]:
        """Commits the change. Returns the fields of the task, the job and the limiter that differ."""
        before = ((TASKS, task), (JOBS, job or stored_job()), (LIMITS, limits or stored_limits()))
        for collection, document in before:
            self.put(collection, deepcopy(document))
        self.result = self.commit(change)
        changed = [differences(document, self.get(name, document["_id"]) or {}) for name, document in before]
        return changed[0], changed[1], changed[2]
