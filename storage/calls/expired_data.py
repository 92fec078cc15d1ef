"""Removal of phone numbers and variables from call jobs that have ended some time ago (docs/semantics.md, 9).

Recordings of the calls go with the phone numbers.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from storage.calls.documents import JOBS, TASKS, CallJobDocument, CallTaskDocument, CallTaskId
from storage.calls.recordings import CallRecordings
from storage.mongo import Document, Mongo

RecordRemovalProgress = Callable[[], Awaitable[None]]
"""Called after each batch. It raises to stop the removal."""

BATCH = 1000
JOBS_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class RemovedField:
    """A field of tasks that is emptied, and two values of `CallJobDocument.kept`."""

    name: str
    empty: Any
    only: str
    """The job's value when its tasks have only this field left."""

    others: str
    """The job's value when this field was removed first."""


PHONE_NUMBERS = RemovedField("phone", "", "PHONE_NUMBERS", "VARIABLES")
VARIABLES = RemovedField("variables", [], "VARIABLES", "PHONE_NUMBERS")
NOTHING = "NOTHING"


class ExpiredCallData:
    """Removes data of the people who were called. The job, its counts and the outcome of each number stay."""

    def __init__(self, mongo: Mongo, recordings: CallRecordings) -> None:
        self._mongo = mongo
        self._recordings = recordings

    async def remove(
        self, organization_id: str, field: RemovedField, age: timedelta, progress: RecordRemovalProgress
    ) -> None:
        """Empties a field of all tasks whose job ended longer than `age` ago. May be repeated after a crash.

        A task whose call is still polled keeps the field, since a poll may look the call up by its number.
        """
        last = -1
        while jobs := await self._ended_jobs(organization_id, field, age, last):
            for job in jobs:
                all_emptied = await self._empty_tasks(job["_id"], field, progress)
                if field is PHONE_NUMBERS:
                    # Of a task without a number, no recording is accepted any more.
                    await self._recordings.release(job["_id"])
                if all_emptied:
                    await self._mark_emptied(job["_id"], field)
            last = jobs[-1]["ts"]

    async def _ended_jobs(
        self, organization_id: str, field: RemovedField, age: timedelta, after: int
    ) -> list[CallJobDocument]:
        # Jobs of earlier versions have no `ended_at`: their age counts from the launch.
        ended_at = {"$ifNull": ["$ended_at", "$created_at"]}
        limit = {"$subtract": ["$$NOW", int(age.total_seconds() * 1000)]}
        query: Document = {
            "org": organization_id,
            "kept": {"$in": [None, field.only]},
            "ts": {"$gt": after},
            "open": {"$exists": False},
            "$expr": {"$lt": [ended_at, limit]},
        }
        jobs: list[CallJobDocument] = await self._mongo.find(
            JOBS, query, {"ts": 1}, [("ts", 1)], JOBS_AT_ONCE, hint="kept"
        )
        return jobs

    async def _empty_tasks(self, job_id: str, field: RemovedField, progress: RecordRemovalProgress) -> bool:
        """Empties the tasks of a job. Returns False if some tasks keep the field, because their calls are polled."""
        last: CallTaskId = {"j": job_id, "r": -1}
        all_ended = True
        while tasks := await self._full_tasks(job_id, field, last):
            ids = [task["_id"] for task in tasks]
            await self._empty(ids, field)
            await progress()
            all_ended = all_ended and not any("poll_at" in task for task in tasks)
            last = tasks[-1]["_id"]
        return all_ended

    async def _empty(self, ids: list[CallTaskId], field: RemovedField) -> None:
        ended = {"_id": {"$in": ids}, "poll_at": {"$exists": False}}
        update = {"$set": {field.name: field.empty}}
        await self._mongo.write_past_orphans(lambda: self._mongo[TASKS].update_many(ended, update))

    async def _full_tasks(self, job_id: str, field: RemovedField, after: Any) -> list[CallTaskDocument]:
        query = {"_id": {"$gt": after, "$lt": {"j": job_id, "r": 2**53}}, field.name: {"$ne": field.empty}}
        tasks: list[CallTaskDocument] = await self._mongo.find(TASKS, query, {"poll_at": 1}, [("_id", 1)], BATCH)
        return tasks

    async def _mark_emptied(self, job_id: str, field: RemovedField) -> None:
        # A pipeline, since the other field may be removed at the same time.
        kept = {"$cond": [{"$eq": [{"$type": "$kept"}, "missing"]}, field.others, NOTHING]}
        query = {"_id": job_id, "kept": {"$in": [None, field.only]}}
        await self._mongo.write_past_orphans(lambda: self._mongo[JOBS].update_one(query, [{"$set": {"kept": kept}}]))
