"""Stores a checked list, then makes it a job: tasks first, in parts, and the job that makes them one in one commit.

A launch that dies half-way leaves a draft, whose tasks nobody sees and a sweeper removes.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from storage.calls.call_changes import TASKS, UNTRIED
from storage.calls.job_changes import DRAFTS, LaunchJob, NewCallJob
from storage.calls.list_parser import ListRow, parse_list
from storage.calls.records import CallRowError, CallTaskState
from storage.idempotency import AlreadyDone, IdempotencyKey
from storage.mongo import Document, Mongo, older_than
from storage.streams.log import jobs_stream
from storage.streams.sequencer import Sequencer

ROW_ERRORS = "call_row_errors"
CHUNK_SIZE = 1000
ABANDONED_S = 3600.0
SWEEP_LIMIT = 20


@dataclass(frozen=True, slots=True)
class CheckedList:
    """What a list holds: rows without the header, different numbers to call, and what is wrong with its rows."""

    rows: int
    tasks: int
    errors: list[CallRowError]


class JobLauncher:
    """Checks and stores lists. Checking runs in a thread, a part at a time, so that nobody else waits for it."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer) -> None:
        self._mongo = mongo
        self._sequencer = sequencer

    async def check(self, csv: str) -> CheckedList:
        """What is in the list; nothing is stored. Raises: BadUserInput for one that is too large."""
        rows, tasks, errors = 0, 0, []
        checked = parse_list(csv)
        while part := await _next_chunk(checked):
            rows += len(part)
            tasks += len(_numbers(part))
            errors += _errors(part)
        # What is wrong with the header is no row.
        return CheckedList(rows - any(error.row == 1 for error in errors), tasks, errors)

    async def launch(self, new: NewCallJob, csv: str, key: IdempotencyKey | None) -> str:
        """The id of the job, once it is durable; REJECTED and without tasks when a row is bad.

        Raises: BadUserInput, Conflict for a key that was used otherwise.
        """
        try:
            await self._refuse_used(key)
            tasks, row_errors = await self._store(new, csv)
            change = LaunchJob(new, tasks, row_errors, key)
            return (await self._sequencer.commit(jobs_stream(new.organization_id), change)).id
        except AlreadyDone as done:
            return done.id

    async def _refuse_used(self, key: IdempotencyKey | None) -> None:
        """Raises: AlreadyDone, Conflict: before a hundred thousand rows are stored once more."""
        row = None if key is None else await self._mongo["idempotency"].find_one({"_id": key.id})
        if row is not None and key is not None:
            key.check(row)

    async def _store(self, new: NewCallJob, csv: str) -> tuple[int, int]:
        """How many tasks and row errors there are now."""
        mark = [{"$set": {"at": "$$NOW", "org": {"$literal": new.organization_id}}}]
        await self._mongo[DRAFTS].update_one({"_id": new.id}, mark, upsert=True)
        rows, tasks, row_errors = parse_list(csv), 0, 0
        while part := await _next_chunk(rows):
            if errors := _errors(part):
                documents = [_error_document(new, error) for error in errors]
                await self._mongo[ROW_ERRORS].insert_many(documents, ordered=False)
            row_errors += len(errors)
            if not row_errors and (numbers := _numbers(part)):
                await self._mongo[TASKS].insert_many([_task_document(new, row) for row in numbers], ordered=False)
                tasks += len(numbers)
        if row_errors and tasks:
            await self._mongo[TASKS].delete_many({"_id.j": new.id})
        return (0 if row_errors else tasks), row_errors

    async def sweep(self) -> int:
        """Removes what launches left that died more than an hour ago. Returns of how many."""
        drafts = await self._mongo[DRAFTS].find(older_than("at", ABANDONED_S)).limit(SWEEP_LIMIT).to_list(None)
        for draft in drafts:
            # From here on no commit makes it a job any more.
            await self._mongo[DRAFTS].update_one({"_id": draft["_id"]}, {"$set": {"discarded": True}})
            for collection in (TASKS, ROW_ERRORS):
                await self._mongo[collection].delete_many({"_id.j": draft["_id"]})
            await self._mongo[DRAFTS].delete_one({"_id": draft["_id"], "discarded": True})
        return len(drafts)


async def _next_chunk(rows: Iterator[ListRow | CallRowError]) -> list[ListRow | CallRowError]:
    return await asyncio.to_thread(lambda: list(islice(rows, CHUNK_SIZE)))


def _numbers(part: list[ListRow | CallRowError]) -> list[ListRow]:
    return [row for row in part if isinstance(row, ListRow) and not row.is_duplicate]


def _errors(part: list[ListRow | CallRowError]) -> list[CallRowError]:
    return [row for row in part if isinstance(row, CallRowError)]


def _task_document(new: NewCallJob, row: ListRow) -> Document:
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


def _error_document(new: NewCallJob, error: CallRowError) -> Document:
    return {"_id": {"j": new.id, "r": error.row}, "column": error.column, "message": error.message}
