"""Call jobs in memory, on a manual clock."""

from dataclasses import dataclass
from typing import Any

from storage.calls.documents import DRAFTS, JOBS, LIMITS, TASKS, CallLimitsDocument
from storage.calls.job_changes import LaunchJob, NewCallJob
from storage.calls.limiter import default_limits
from storage.calls.records import CallJob, TaskKey
from storage.mongo import Document
from tests.storage.in_memory_stream import ORG, InMemoryStream


def new_job(**fields: Any) -> NewCallJob:
    """Returns a valid new job, with some fields replaced."""
    defaults: dict[str, Any] = {
        "organization_id": ORG,
        "creator_id": "ann",
        "name": "Reminders",
        "scenario": "Hello",
        "start_at": None,
        "window": None,
        "max_attempts": 1,
        "retry_delay_s": 60,
        "expected_call_s": 60,
    }
    return NewCallJob(**defaults | fields)


@dataclass
class InMemoryJobs(InMemoryStream):
    """A jobs stream in memory that launches and reads call jobs."""

    def launch(self, numbers: int, **fields: Any) -> CallJob:
        """Launches a job with `numbers` phone numbers."""
        new = new_job(**fields)
        self.put(DRAFTS, {"_id": new.id})
        for row in range(2, numbers + 2):
            task = {"_id": {"j": new.id, "r": row}, "org": ORG, "phone": f"+8190{10_000_000 + row}", "variables": []}
            self.put(TASKS, task | {"state": "QUEUED", "queue": 0, "attempts": 0, "dials": 0})
        return self.commit(LaunchJob(new, numbers, 0))

    def job(self, job_id: str) -> Document:
        job = self.get(JOBS, job_id)
        assert job is not None
        return job

    def task(self, key: TaskKey) -> Document:
        task = self.get(TASKS, key.document_id)
        assert task is not None
        return task

    @property
    def tasks(self) -> list[Document]:
        return [document for (collection, _), document in self.documents.items() if collection == TASKS]

    @property
    def limits(self) -> CallLimitsDocument:
        stored: Any = self.get(LIMITS, ORG)
        return stored or default_limits(ORG)
