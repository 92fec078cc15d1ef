"""Outbox relays for delayed events of jobs and tasks. They emit the current state, so the last change is never lost.

Each job has at most one outbox row of each kind. The row stays until all its events are emitted.
"""

from collections import defaultdict
from collections.abc import Sequence

from storage.calls.documents import JOBS, TASKS, CallJobDocument, CallTaskDocument, CallTaskId
from storage.calls.job_changes import (
    MAX_TASK_EVENTS,
    TASK_EVENT_WINDOW,
    emit_task_changed,
    job_event_delay,
    reserve_task_event,
)
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch
from storage.streams.documents import OutboxDocument
from storage.streams.outbox import OutboxRelay


class CallJobRelay(OutboxRelay):
    """Emits the delayed progress of a job, at most twice a second."""

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Loads the jobs that the rows refer to."""
        await load_jobs(mongo, session, rows, batch)

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Emits the job's current state."""
        stored: CallJobDocument | None = batch.get(JOBS, row["ref"])
        if stored is None or not stored.get("event_pending"):
            return 0.0
        if (wait := job_event_delay(stored, batch.at)) is not None:
            return wait.total_seconds()
        job = stored.copy()
        job["emitted_at"] = batch.at
        del job["event_pending"]
        batch.put(JOBS, job)
        batch.emit("CallJobChanged", job["_id"])
        return 0.0


class CallTaskRelay(OutboxRelay):
    """Emits the delayed task events of a job, at most ten a second."""

    def __init__(self) -> None:
        self._delayed: defaultdict[str, list[CallTaskId]] = defaultdict(list)

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Loads the jobs that the rows refer to, and for each job up to eleven tasks with a delayed event.

        Ten of these events may be emitted at once. The eleventh shows that more are left.
        """
        await load_jobs(mongo, session, rows, batch)
        for job_id in {row["ref"] for row in rows}:
            query = {"_id.j": job_id, "event_pending": True}
            cursor = mongo[TASKS].find(query, session=session).sort("_id.r", 1).limit(MAX_TASK_EVENTS + 1)
            async for task in cursor:
                batch.add_loaded(TASKS, task)
                self._delayed[job_id].append(task["_id"])

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Emits as many task events as are allowed now. Keeps the row while events are left."""
        stored: CallJobDocument | None = batch.get(JOBS, row["ref"])
        if stored is None or not stored.get("task_events_pending"):
            return 0.0
        job, ids = stored.copy(), self._delayed[row["ref"]]
        while ids and reserve_task_event(job.copy(), batch.at) is None:
            loaded: CallTaskDocument | None = batch.get(TASKS, ids.pop(0))
            if loaded is not None and loaded.get("event_pending"):
                task = loaded.copy()
                emit_task_changed(batch, job, task)
                batch.put(TASKS, task)
        if ids or any(_is_delayed(task, job) for task in batch.changed_documents(TASKS)):
            batch.put(JOBS, job)
            return (reserve_task_event(job.copy(), batch.at) or TASK_EVENT_WINDOW).total_seconds()
        del job["task_events_pending"]
        batch.put(JOBS, job)
        return 0.0


def _is_delayed(task: CallTaskDocument, job: CallJobDocument) -> bool:
    """Returns whether the task belongs to the job and has a delayed event.

    An earlier change of the batch may have put off the event of a task that `load` did not read.
    """
    return bool(task.get("event_pending")) and task["_id"]["j"] == job["_id"]


async def load_jobs(mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
    """Adds the jobs that the rows refer to, except jobs that an earlier change of the batch has loaded."""
    ids = [id_ for id_ in {row["ref"] for row in rows} if batch.get(JOBS, id_) is None]
    async for document in mongo[JOBS].find({"_id": {"$in": ids}}, session=session):
        batch.add_loaded(JOBS, document)
