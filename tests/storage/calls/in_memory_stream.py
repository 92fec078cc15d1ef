"""A stream of jobs in memory: plans one change after another on a manual clock, and keeps the resulting documents."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from storage.calls.documents import DRAFTS, JOBS, LIMITS, TASKS, CallLimitsDocument
from storage.calls.job_changes import LaunchJob, NewCallJob
from storage.calls.limiter import default_limits
from storage.calls.records import CallJob, TaskKey
from storage.errors import DomainError
from storage.mongo import Document
from storage.streams.changes import Batch, Change
from storage.streams.log import jobs_stream

ORG = "acme"
BEGIN = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

Result = TypeVar("Result")


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
class InMemoryStream:
    """A stream of jobs without a database: documents by collection and _id, emitted events and outbox rows."""

    now: datetime = BEGIN
    documents: dict[tuple[str, Any], Document] = field(default_factory=dict)
    events: list[tuple[datetime, str, Any]] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)

    def commit(self, change: Change[Result], *loaded: tuple[str, Any]) -> Result:
        """Plans the change and returns its result. Asserts that a DomainError changes nothing."""
        head = {"committed_at": self.now, "before": {}}
        batch = Batch(jobs_stream(ORG), head, first_timestamp=int(self.now.timestamp() * 1e6), next_n=1)
        for collection, id_ in [*change.needs(), *loaded]:
            if (document := self.get(collection, id_)) is not None:
                batch.add_loaded(collection, document)
        try:
            result = change.plan(batch)
        except DomainError:
            effects = [*batch.written, *batch.events, *batch.outbox]
            assert effects == [], "A change that fails must change nothing."
            raise
        for (collection, _), id_ in batch.written.items():
            self._write(collection, id_, batch)
        self.events += [(self.now, event.kind, event.ref) for event in batch.events]
        self.rows += batch.outbox
        return result

    def _write(self, collection: str, id_: Any, batch: Batch) -> None:
        document = batch.get(collection, id_)
        if document is None:
            self.documents.pop(_key(collection, id_), None)
        else:
            self.documents[_key(collection, id_)] = document

    def get(self, collection: str, id_: Any) -> Document | None:
        return self.documents.get(_key(collection, id_))

    def put(self, collection: str, document: Document) -> None:
        self.documents[_key(collection, document["_id"])] = document

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

    def wait(self, seconds: float) -> None:
        """Moves the clock forward, rounded to milliseconds."""
        self.now += timedelta(milliseconds=round(seconds * 1000))


def _key(collection: str, id_: Any) -> tuple[str, Any]:
    return collection, tuple(id_.values()) if isinstance(id_, dict) else id_
