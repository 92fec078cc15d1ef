"""Events of jobs and tasks that had to wait for their turn: told when it comes, as things are then; none is left out."""

from collections.abc import Sequence

from storage.calls.jobs import JOB_EVERY, JOBS, task_wait
from storage.changes import Batch
from storage.mongo import Document, Mongo, Session
from storage.outbox import Mover


class _OncePerBatch(Mover):
    """Rows of one ref become one event."""

    def __init__(self) -> None:
        """Has told nothing yet."""
        self._told: set[str] = set()

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[Document], batch: Batch) -> None:
        """The jobs that the rows speak of."""
        ids = list({self.job_id(row) for row in rows})
        async for document in mongo[JOBS].find({"_id": {"$in": ids}}, session=session):
            batch.add(JOBS, document)

    def job_id(self, row: Document) -> str:
        """The job that a row speaks of."""
        ref: str = row["ref"]
        return ref

    def move(self, row: Document, batch: Batch) -> float:
        """Tells of it, or says for how long it has to wait."""
        stored = batch.get(JOBS, self.job_id(row))
        if stored is None or row["ref"] in self._told:
            return 0.0
        job = dict(stored)
        if wait_s := self.wait_s(job, batch):
            return wait_s
        self._told.add(row["ref"])
        batch.emit(row["kind"], row["ref"])
        batch.put(JOBS, job)
        return 0.0

    def wait_s(self, job: Document, batch: Batch) -> float:
        """0 when it is its turn, which is then taken."""
        raise NotImplementedError


class CallJobChanged(_OncePerBatch):
    """Progress of a job, at most twice a second."""

    def wait_s(self, job: Document, batch: Batch) -> float:
        """Half a second after the last one."""
        told = job.get("told_at")
        if told is not None and told <= batch.at < told + JOB_EVERY:
            return float((told + JOB_EVERY - batch.at).total_seconds())
        job["told_at"] = batch.at
        return 0.0


class CallTaskChanged(_OncePerBatch):
    """Tasks of a job, at most ten a second."""

    def job_id(self, row: Document) -> str:
        """A task's id begins with its job's."""
        ref: str = row["ref"]
        return ref.rpartition("-")[0]

    def wait_s(self, job: Document, batch: Batch) -> float:
        """Until the job's next turn."""
        wait = task_wait(job, batch.at)
        return 0.0 if wait is None else wait.total_seconds()
