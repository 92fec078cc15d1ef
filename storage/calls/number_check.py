"""Finds stored phone numbers that are probably not those that were meant.

Releases before the strict reader turned letters after a number into digits. Most of these numbers are too long or not
assigned. One that is assigned looks like any other number and is not found.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from storage.calls.documents import DO_NOT_CALL, JOBS, TASKS, CallJobDocument
from storage.calls.phone_numbers import is_assigned
from storage.mongo import Document, Mongo

PAGE = 1000


@dataclass(frozen=True, slots=True)
class StoredNumber:
    """A stored phone number, and where it is stored."""

    phone_number: str
    job: CallJobDocument | None = None
    """The job of a number that waits for a call; None for a number of the do-not-call list."""

    row: int = 0
    """The line of the number in the job's list."""

    @property
    def is_doubtful(self) -> bool:
        """Whether no operator has such a number, by the tables of `phonenumbers`. They may lack the newest ranges."""
        return not is_assigned(self.phone_number)


class NumberCheck:
    """Reads the numbers of an organization's do-not-call list, and those that wait for a call."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo

    async def numbers(self, organization_id: str) -> AsyncIterator[StoredNumber]:
        """Yields the numbers of the do-not-call list, then those of open jobs, oldest job first, in list order."""
        entries: Document = {
            "$gt": {"org": organization_id, "phone": ""},
            "$lt": {"org": organization_id, "phone": "~"},
        }
        async for entry in self._pages(DO_NOT_CALL, entries, {}):
            yield StoredNumber(entry["_id"]["phone"])
        query = {"org": organization_id, "open": True}
        jobs: list[CallJobDocument] = await self._mongo.find(JOBS, query, sort=[("ts", 1)])
        for job in jobs:
            rows: Document = {"$gt": {"j": job["_id"], "r": -1}, "$lt": {"j": job["_id"], "r": 2**53}}
            async for task in self._pages(TASKS, rows, {"state": "QUEUED"}):
                yield StoredNumber(task["phone"], job, task["_id"]["r"])

    async def _pages(self, collection: str, ids: Document, query: Document) -> AsyncIterator[Document]:
        """Yields the documents of a range of ids, in pages, since a cursor may last only 9 s."""
        while True:
            page = await self._mongo.find(collection, {"_id": ids} | query, sort=[("_id", 1)], limit=PAGE)
            for document in page:
                yield document
            if len(page) < PAGE:
                return
            ids = {**ids, "$gt": page[-1]["_id"]}
