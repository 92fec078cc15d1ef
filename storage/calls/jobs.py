"""Operations on call jobs for clients: launching, reading, pausing and limits."""

from collections.abc import Iterable, Mapping, Sequence

from pymongo.asynchronous.collection import AsyncCollection

from storage.calls.documents import (
    JOBS,
    LIMITS,
    ROW_ERRORS,
    TASKS,
    CallJobDocument,
    CallLimitsDocument,
    CallRowErrorDocument,
    CallTaskDocument,
)
from storage.calls.job_changes import ActOnJob, JobAction, NewCallJob, SetLimits
from storage.calls.job_launcher import CheckedList, JobLauncher
from storage.calls.limiter import default_limits, limits_record
from storage.calls.records import (
    MAX_ID_PART_DIGITS,
    CallJob,
    CallJobState,
    CallLimits,
    CallRowError,
    CallTask,
    CallTaskState,
    TaskKey,
    job_record,
    task_record,
)
from storage.calls.wake_ups import WakeUpChannel
from storage.errors import NotFound
from storage.idempotency import IdempotencyKey
from storage.identity.audit import Actor
from storage.mongo import Document, Mongo
from storage.mongo.batch_loader import BatchLoader
from storage.streams.log import jobs_stream
from storage.streams.sequencer import Sequencer
from storage.timeline import TimelinePage, TimelineRange, read_page


class CallJobStore:
    """Launches, reads and changes jobs with their tasks and row errors, and the limits of organizations."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer, wake_ups: WakeUpChannel) -> None:
        self._mongo = mongo
        self._jobs: AsyncCollection[CallJobDocument] = mongo[JOBS]
        self._tasks: AsyncCollection[CallTaskDocument] = mongo[TASKS]
        self._row_errors: AsyncCollection[CallRowErrorDocument] = mongo[ROW_ERRORS]
        self._limiters: AsyncCollection[CallLimitsDocument] = mongo[LIMITS]
        self._sequencer = sequencer
        self._wake_ups = wake_ups
        self._launcher = JobLauncher(mongo, sequencer)
        self._by_id: BatchLoader[str, CallJob] = BatchLoader(self._load)
        self._limits: BatchLoader[str, CallLimits] = BatchLoader(self._load_limits)

    async def check(self, csv: str, region: str | None = None) -> CheckedList:
        """Checks a list without storing it. Raises: BadUserInput for a list that is too large."""
        return await self._launcher.check(csv, region)

    async def launch(
        self,
        new: NewCallJob,
        csv: str,
        key: IdempotencyKey | None,
        actor: Actor | None = None,
        region: str | None = None,
    ) -> CallJob:
        """Returns the new job, or the job that the key created earlier. Raises: BadUserInput, Conflict."""
        id_ = await self._launcher.launch(new, csv, key, actor, region)
        self._wake_ups.wake(new.organization_id)
        return await self.get(new.organization_id, id_)

    async def sweep(self) -> int:
        """Removes the lists of launches that did not finish. Returns how many."""
        return await self._launcher.sweep()

    async def find(self, organization_id: str, id_: str) -> CallJob | None:
        """Returns the organization's job with this id, or None."""
        job = await self._by_id.get(id_)
        return job if job is not None and job.organization_id == organization_id else None

    async def get(self, organization_id: str, id_: str) -> CallJob:
        """Returns the organization's job with this id. Raises: NotFound."""
        job = await self.find(organization_id, id_)
        if job is None:
            raise NotFound("call job", id_)
        return job

    async def page(
        self, organization_id: str, states: Sequence[CallJobState] | None, range_: TimelineRange
    ) -> TimelinePage[CallJob]:
        """Returns a page of the organization's jobs by creation, filtered by `states` unless `states` is None."""
        in_states = {} if states is None else {"state": {"$in": [state.value for state in states]}}

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[CallJob]:
            query = {"org": organization_id, "ts": {"$gte": low, "$lte": high}, **in_states}
            order = [("ts", 1 if ascending else -1)]
            return [job_record(document) for document in await self._mongo.find(JOBS, query, None, order, limit)]

        return await read_page(range_, fetch, lambda job: job.timestamp)

    async def act(self, organization_id: str, id_: str, action: JobAction, actor: Actor | None = None) -> CallJob:
        """Pauses, resumes or cancels a job. Raises: NotFound, Conflict."""
        await self.get(organization_id, id_)
        change = ActOnJob(organization_id, id_, action, actor)
        job = await self._sequencer.commit(jobs_stream(organization_id), change)
        self._wake_ups.wake(organization_id)
        return job

    async def row_errors(self, job: CallJob, after_row: int, limit: int) -> list[CallRowError]:
        """Returns the bad rows of a rejected list that come after `after_row`, in list order."""
        cursor = self._row_errors.find(_rows_after(job, after_row)).sort("_id", 1).limit(limit)
        return [CallRowError(error["_id"]["r"], error["column"], error["message"]) async for error in cursor]

    async def tasks(
        self, job: CallJob, states: Sequence[CallTaskState] | None, after_row: int, limit: int
    ) -> list[CallTask]:
        """Returns the job's tasks in list order, filtered by `states` unless `states` is None."""
        query = _rows_after(job, after_row)
        if states is not None:
            query["state"] = {"$in": _stored_states(job, states)}
        cursor = self._tasks.find(query).sort("_id", 1).limit(limit)
        return [task_record(document, job.state) async for document in cursor]

    async def limits(self, organization_id: str) -> CallLimits:
        """Returns the organization's limits, or the defaults if none were set."""
        return await self._limits.get(organization_id) or limits_record(default_limits(organization_id))

    async def set_limits(
        self, organization_id: str, concurrent: int, per_second: float, actor: Actor | None = None
    ) -> CallLimits:
        """Sets the limits, which apply to every later start."""
        change = SetLimits(organization_id, concurrent, per_second, actor)
        limits = await self._sequencer.commit(jobs_stream(organization_id), change)
        self._wake_ups.wake(organization_id)
        return limits

    async def jobs_by_id(self, organization_id: str, ids: Iterable[str]) -> Mapping[str, CallJob]:
        """Returns the jobs that events refer to."""
        jobs = await self._load(list(ids))
        return {id_: job for id_, job in jobs.items() if job.organization_id == organization_id}

    async def tasks_by_id(self, organization_id: str, ids: Iterable[str]) -> Mapping[str, CallTask]:
        """Returns the tasks that events refer to."""
        keys = [TaskKey(job_id, int(row)) for job_id, _, row in (id_.rpartition("-") for id_ in ids)]
        query = {"_id": {"$in": [key.document_id for key in keys]}, "org": organization_id}
        tasks = await self._tasks.find(query).to_list(None)
        jobs = await self._load(list({key.job_id for key in keys}))
        records = [task_record(task, job.state) for task in tasks if (job := jobs.get(task["_id"]["j"])) is not None]
        return {record.id: record for record in records}

    async def limits_by_id(self, organization_id: str, ids: Iterable[str]) -> Mapping[str, CallLimits]:
        """Returns the limits that events refer to."""
        return {id_: await self.limits(id_) for id_ in ids if id_ == organization_id}

    async def _load(self, ids: Sequence[str]) -> dict[str, CallJob]:
        cursor = self._jobs.find({"_id": {"$in": list(ids)}})
        return {document["_id"]: job_record(document) async for document in cursor}

    async def _load_limits(self, ids: Sequence[str]) -> dict[str, CallLimits]:
        found = await self._mongo.find(LIMITS, {"_id": {"$in": list(ids)}})
        return {document["_id"]: limits_record(document) for document in found}


def _rows_after(job: CallJob, after_row: int) -> Document:
    """Returns the filter for a job's rows after `after_row`. Ids have `j` first, so a job's rows are adjacent."""
    return {"_id": {"$gt": {"j": job.id, "r": after_row}, "$lt": {"j": job.id, "r": 10**MAX_ID_PART_DIGITS}}}


def _stored_states(job: CallJob, states: Sequence[CallTaskState]) -> list[str]:
    """Returns the stored states to filter by. CANCELLED tasks of a cancelled job may be stored as QUEUED."""
    stored = set(states)
    if job.state is CallJobState.CANCELLED:
        stored.discard(CallTaskState.QUEUED)
        if CallTaskState.CANCELLED in stored:
            stored.add(CallTaskState.QUEUED)
    return [state.value for state in stored]
