"""Checks lists and stores them as jobs: first the tasks in chunks, then one commit that creates the job.

A launch that is interrupted leaves a draft, whose tasks are invisible. A sweeper removes the draft and its tasks.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from pymongo.asynchronous.collection import AsyncCollection

from storage.calls.call_changes import UNTRIED
from storage.calls.documents import (
    DRAFTS,
    ROW_ERRORS,
    TASKS,
    CallDraftDocument,
    CallRowErrorDocument,
    CallTaskDocument,
)
from storage.calls.job_changes import LaunchJob, NewCallJob
from storage.calls.list_parser import ListRow, parse_list
from storage.calls.records import CallHeaderError, CallRowError, CallTaskState
from storage.idempotency import DuplicateRequest, IdempotencyKey
from storage.identity.audit import Actor
from storage.mongo import Mongo, literals, older_than
from storage.streams.log import jobs_stream
from storage.streams.sequencer import Sequencer

CHUNK_SIZE = 1000
ABANDONED_S = 3600.0
SWEEP_LIMIT = 20


@dataclass(frozen=True, slots=True)
class CheckedList:
    """The result of checking a list."""

    rows: int
    """Number of rows without the header."""

    tasks: int
    """Number of distinct valid phone numbers."""

    errors: list[CallRowError]
    """The bad rows, in list order."""


class JobLauncher:
    """Checks and stores lists. A thread parses each chunk, so that the event loop is not blocked."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer) -> None:
        self._mongo = mongo
        self._drafts: AsyncCollection[CallDraftDocument] = mongo[DRAFTS]
        self._tasks: AsyncCollection[CallTaskDocument] = mongo[TASKS]
        self._row_errors: AsyncCollection[CallRowErrorDocument] = mongo[ROW_ERRORS]
        self._sequencer = sequencer

    async def check(self, csv: str, region: str | None = None) -> CheckedList:
        """Checks the list without storing it. Numbers without a country code are those of the region.

        Raises: BadUserInput for a list that is too large.
        """
        rows, tasks, errors = 0, 0, []
        parsed = parse_list(csv, region)
        while chunk := await _next_chunk(parsed):
            rows += len(chunk)
            tasks += len(_rows_to_call(chunk))
            errors += _errors(chunk)
        # The header does not count as a row.
        return CheckedList(rows - any(isinstance(error, CallHeaderError) for error in errors), tasks, errors)

    async def launch(
        self,
        new: NewCallJob,
        csv: str,
        key: IdempotencyKey | None,
        actor: Actor | None = None,
        region: str | None = None,
    ) -> str:
        """Returns the id of the durable job. With a bad row the job is REJECTED and has no tasks.

        Raises: BadUserInput for a list that is too large; Conflict for a key that was used with other arguments, and if
        storing the list took over an hour.
        """
        try:
            await self._check_key(key)
            tasks, row_errors = await self._store(new, csv, region)
            change = LaunchJob(new, tasks, row_errors, key, actor)
            return (await self._sequencer.commit(jobs_stream(new.organization_id), change)).id
        except DuplicateRequest as duplicate:
            return duplicate.result_id

    async def _check_key(self, key: IdempotencyKey | None) -> None:
        """Looks up the key, to avoid storing up to 100,000 rows again. Raises: DuplicateRequest, Conflict."""
        earlier = None if key is None else await self._mongo["idempotency"].find_one({"_id": key.id})
        if earlier is not None and key is not None:
            key.raise_duplicate(earlier)

    async def _store(self, new: NewCallJob, csv: str, region: str | None) -> tuple[int, int]:
        """Stores tasks and row errors. Returns the numbers of tasks and of row errors. A bad list has no tasks."""
        draft = [{"$set": {"at": "$$NOW", **literals({"org": new.organization_id})}}]
        await self._drafts.update_one({"_id": new.id}, draft, upsert=True)
        rows, tasks, row_errors = parse_list(csv, region), 0, 0
        while chunk := await _next_chunk(rows):
            if errors := _errors(chunk):
                documents = [_error_document(new, error) for error in errors]
                await self._row_errors.insert_many(documents, ordered=False)
            row_errors += len(errors)
            if not row_errors and (numbers := _rows_to_call(chunk)):
                await self._tasks.insert_many([_task_document(new, row) for row in numbers], ordered=False)
                tasks += len(numbers)
        if row_errors and tasks:
            await self._tasks.delete_many({"_id.j": new.id})
        return (0 if row_errors else tasks), row_errors

    async def sweep(self) -> int:
        """Removes the lists of launches that began over an hour ago and did not finish. Returns how many."""
        drafts = await self._drafts.find(older_than("at", ABANDONED_S)).limit(SWEEP_LIMIT).to_list(None)
        for draft in drafts:
            # After this write no commit can turn the draft into a job.
            await self._drafts.update_one({"_id": draft["_id"]}, {"$set": {"discarded": True}})
            for collection in (TASKS, ROW_ERRORS):
                await self._mongo[collection].delete_many({"_id.j": draft["_id"]})
            await self._drafts.delete_one({"_id": draft["_id"], "discarded": True})
        return len(drafts)


async def _next_chunk(rows: Iterator[ListRow | CallRowError]) -> list[ListRow | CallRowError]:
    return await asyncio.to_thread(lambda: list(islice(rows, CHUNK_SIZE)))


def _rows_to_call(chunk: list[ListRow | CallRowError]) -> list[ListRow]:
    return [row for row in chunk if isinstance(row, ListRow) and not row.is_duplicate]


def _errors(chunk: list[ListRow | CallRowError]) -> list[CallRowError]:
    return [row for row in chunk if isinstance(row, CallRowError)]


def _task_document(new: NewCallJob, row: ListRow) -> CallTaskDocument:
    return {
        "_id": {"j": new.id, "r": row.row},
        "org": new.organization_id,
        "phone": row.phone_number,
        "variables": [[name, value] for name, value in row.variables],
        "state": CallTaskState.QUEUED.value,
        "queue": UNTRIED,
        "attempts": 0,
        "dials": 0,
    }


def _error_document(new: NewCallJob, error: CallRowError) -> CallRowErrorDocument:
    return {"_id": {"j": new.id, "r": error.row}, "column": error.column, "message": error.message}
