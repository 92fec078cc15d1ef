"""Events of jobs and tasks that had to wait for their turn: told when it comes, as things are then; none is lost.

Each job has at most one row of a kind in the outbox, which stays there while something of it is left.
"""

from collections import defaultdict
from collections.abc import Sequence

from storage.calls.call_changes import TASKS
from storage.calls.job_changes import (
    JOBS,
    MAX_TASK_EVENTS,
    TASK_EVENT_WINDOW,
    emit_task_changed,
    job_event_delay,
    reserve_task_event,
)
from storage.mongo import Document, Mongo, Session
from storage.streams.changes import Batch
from storage.streams.outbox import OutboxRelay


class CallJobRelay(OutboxRelay):
    """Progress of a job, at most twice a second."""

    def __init__(self) -> None:
        """Knows nothing yet."""

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[Document], batch: Batch) -> None:
        """The jobs that the rows speak of."""
        await load_jobs(mongo, session, rows, batch)

    def relay(self, row: Document, batch: Batch) -> float:
        """Tells of the job as it is now."""
        stored = batch.get(JOBS, row["ref"])
        if stored is None or not stored.get("untold"):
            return 0.0
        if (wait := job_event_delay(stored, batch.at)) is not None:
            return wait.total_seconds()
        job = stored | {"told_at": batch.at}
        del job["untold"]
        batch.put(JOBS, job)
        batch.emit("CallJobChanged", job["_id"])
        return 0.0


class CallTaskRelay(OutboxRelay):
    """Tasks of a job, at most ten a second."""

    def __init__(self) -> None:
        """Knows nothing yet."""
        self._untold: defaultdict[str, list[Document]] = defaultdict(list)

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[Document], batch: Batch) -> None:
        """The jobs that the rows speak of, and of each the first tasks to be told of, with one more if there are."""
        await load_jobs(mongo, session, rows, batch)
        for job_id in {row["ref"] for row in rows}:
            wanted = {"_id.j": job_id, "untold": True}
            cursor = mongo[TASKS].find(wanted, session=session).sort("_id.r", 1).limit(MAX_TASK_EVENTS + 1)
            async for task in cursor:
                batch.add(TASKS, task)
                self._untold[job_id].append(task["_id"])

    def relay(self, row: Document, batch: Batch) -> float:
        """Tells of as many as may be told of now; the row stays while some are left."""
        stored = batch.get(JOBS, row["ref"])
        if stored is None or not stored.get("untold_tasks"):
            return 0.0
        job, ids = dict(stored), self._untold[row["ref"]]
        while ids and reserve_task_event(dict(job), batch.at) is None:
            task = dict(batch.get(TASKS, ids.pop(0)) or {})
            if task.get("untold"):
                emit_task_changed(batch, job, task)
                batch.put(TASKS, task)
        if ids or any(_is_untold(task, job) for task in batch.changed(TASKS)):
            batch.put(JOBS, job)
            return (reserve_task_event(dict(job), batch.at) or TASK_EVENT_WINDOW).total_seconds()
        del job["untold_tasks"]
        batch.put(JOBS, job)
        return 0.0


def _is_untold(task: Document, job: Document) -> bool:
    """Members of the same batch may have marked some since they were read."""
    return bool(task.get("untold")) and task["_id"]["j"] == job["_id"]


async def load_jobs(mongo: Mongo, session: Session, rows: Sequence[Document], batch: Batch) -> None:
    """Adds the jobs that rows name to the batch, unless a member has them already."""
    ids = [id_ for id_ in {row["ref"] for row in rows} if batch.get(JOBS, id_) is None]
    async for document in mongo[JOBS].find({"_id": {"$in": ids}}, session=session):
        batch.add(JOBS, document)
