"""Recordings of calls: a file for each call, which a worker fetches from the address that a report names.

The file belongs to the organization and names no user. A report changes the task, and so does the removal of its phone
number. So of a report and a retention rule at once, the rule either prevents the recording or deletes it.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection

from storage.calls.documents import TASKS, CallTaskDocument
from storage.calls.records import CallKey, CallRecording, TaskKey, parse_call_id
from storage.errors import QuotaExceeded
from storage.files.documents import FileDocument
from storage.files.objects import FileObjects
from storage.files.records import FileState, StoredObject
from storage.files.uploads import DEFAULT_FILE_LIMITS, FILES, NOT_DELETING, FileLimits
from storage.files.usage import FileUsage
from storage.ids import UserKey
from storage.mongo import Document, Mongo, Session, due_filter, literals, seconds_from_now
from storage.mongo.leases import claim_token, lease_filter

RECORDING_PLACE = "recording"
CLAIMED_S = 300
"""How long a worker's claim lasts. A fetch takes less."""

MAX_TRIES = 5
RETRY_DELAY_STEP_S = 30
"""The n-th retry is delayed by n times n times this, since some services publish a recording late."""

NOBODY = ""
EXTENSIONS = {"audio/wav": "wav", "audio/mpeg": "mp3", "audio/mp4": "m4a", "audio/flac": "flac"}
"""Types of recordings that are stored, with the ends of their file names."""


@dataclass(frozen=True, slots=True)
class RecordingClaim:
    """A recording that this worker fetches. `tries` is the number of claims so far, which tells claims apart."""

    file_id: str
    organization_id: str
    call_id: str
    url: str
    tries: int


def recording_id(call_id: str) -> str:
    """Returns the id of the file with a call's recording."""
    return hashlib.sha256(f"recording:{call_id}".encode()).hexdigest()[:32]


def recording_place(task: TaskKey) -> str:
    """Returns the place of the recordings of a task's calls."""
    return f"{RECORDING_PLACE}:{task.id}"


class CallRecordings:
    """Stores recordings, and finds those of tasks."""

    def __init__(
        self, mongo: Mongo, objects: FileObjects, limits: FileLimits = DEFAULT_FILE_LIMITS, worker: str = ""
    ) -> None:
        """`worker` is the name by which the claims of this process are released when it has died."""
        self._mongo = mongo
        self._worker = worker
        self._objects = objects
        self._limits = limits
        self._usage = FileUsage(mongo)
        self._files: AsyncCollection[FileDocument] = mongo[FILES]
        self._tasks: AsyncCollection[CallTaskDocument] = mongo[TASKS]

    async def report(self, organization_id: str, call_id: str, url: str) -> None:
        """Stores where the recording of a call is. Only the first address of a call counts.

        Does nothing if a retention rule has removed the number. Raises: NotFound for text that cannot be a callId.
        """
        key = parse_call_id(call_id)
        await self._mongo.transact(partial(self._report, organization_id, key, url))

    async def _report(self, organization_id: str, key: CallKey, url: str, session: Session) -> None:
        id_ = recording_id(key.id)
        if await self._files.find_one({"_id": id_}, {"_id": 1}, session=session) is not None:
            return
        query: Document = {"_id": key.task.document_id, "org": organization_id, "phone": {"$ne": ""}}
        counted = await self._tasks.update_one(
            {**query, "dials": {"$gte": key.ordinal}}, {"$inc": {"recordings": 1}}, session=session
        )
        if counted.modified_count:
            new = [{"$set": _new_file(organization_id, key, url)}]
            await self._mongo.find_one_and_update(FILES, {"_id": id_}, new, session, upsert=True)

    async def claim(self) -> RecordingClaim | None:
        """Claims a recording that is due, or returns None. If the worker dies, the recording is due again."""
        values: Document = {"fetch_at": seconds_from_now(CLAIMED_S), "tries": {"$add": ["$tries", 1]}}
        change: list[Document] = [{"$set": values | {"fetch_claim": claim_token(self._worker)}}]
        document = await self._mongo.write_past_orphans(
            lambda: self._files.find_one_and_update(
                {**due_filter("fetch_at"), **NOT_DELETING},
                change,
                sort=[("fetch_at", 1)],
                return_document=ReturnDocument.AFTER,
            )
        )
        if document is None:
            return None
        call_id = _call_key(document).id
        return RecordingClaim(document["_id"], document["org"], call_id, document["source"], document["tries"])

    async def release_of(self, worker: str) -> int:
        """Ends the claims of a dead worker, and returns how many. Each of them counts as a try."""
        query = {**lease_filter(worker, "fetch_at", CLAIMED_S, "fetch_claim"), **NOT_DELETING}
        change: list[Document] = [{"$set": {"fetch_at": "$$NOW"}}]
        result = await self._mongo.write_past_orphans(lambda: self._files.update_many(query, change))
        return result.modified_count

    async def store(self, claim: RecordingClaim, parts: Sequence[StoredObject], content_type: str) -> None:
        """Stores the recording, unless it was deleted or another worker has claimed it meanwhile.

        Raises: QuotaExceeded; Unavailable.
        """
        try:
            is_stored = await self._mongo.transact(partial(self._store, claim, parts, content_type))
        except QuotaExceeded:
            await self._objects.delete(parts)
            raise
        if is_stored:
            await self._objects.delete_all(claim.file_id, parts)
        else:
            await self._objects.delete(parts)

    async def _store(
        self, claim: RecordingClaim, parts: Sequence[StoredObject], content_type: str, session: Session
    ) -> bool:
        size, stored_parts = sum(each.size for each in parts), [{"key": each.key, "size": each.size} for each in parts]
        fields: Document = {
            "state": FileState.READY.value,
            "name": f"call-{claim.call_id}.{EXTENSIONS[content_type]}",
            "type": content_type,
            "size": size,
            "offset": size,
            "parts": stored_parts,
        }
        change: list[Document] = [{"$set": literals(fields)}, {"$unset": ["source", "fetch_at", "fetch_claim"]}]
        if not (await self._files.update_one(_claimed(claim), change, session=session)).modified_count:
            # After a lost answer to the commit, the transaction runs again, and finds what it has stored.
            same = {"_id": claim.file_id, "parts": stored_parts}
            return await self._files.find_one(same, session=session) is not None
        owner, limits = UserKey(claim.organization_id, NOBODY), self._limits
        await self._usage.add(owner, size, limits.user_bytes, limits.organization_bytes, session)
        return True

    async def retry_later(self, claim: RecordingClaim) -> None:
        """Lets the recording be fetched again after a delay, or gives it up after the last try."""
        if claim.tries >= MAX_TRIES:
            await self.give_up(claim)
            return
        next_at = seconds_from_now(RETRY_DELAY_STEP_S * claim.tries**2)
        later: list[Document] = [{"$set": {"fetch_at": next_at}}, {"$unset": "fetch_claim"}]
        await self._mongo.write_past_orphans(lambda: self._files.update_one(_claimed(claim), later))

    async def give_up(self, claim: RecordingClaim) -> None:
        """Forgets the address for good, and deletes bytes of earlier tries. Later reports change nothing."""
        change: list[Document] = [
            {"$set": {"state": FileState.REFUSED.value}},
            {"$unset": ["source", "fetch_at", "fetch_claim"]},
        ]
        result = await self._mongo.write_past_orphans(lambda: self._files.update_one(_claimed(claim), change))
        if result.modified_count:
            await self._objects.delete_all(claim.file_id)

    async def of_tasks(self, organization_id: str, tasks: Collection[TaskKey]) -> dict[TaskKey, CallRecording]:
        """Returns the stored recording of each task: of its latest call that has one."""
        query: Document = {
            "call.j": {"$in": list({each.job_id for each in tasks})},
            "call.r": {"$in": list({each.row for each in tasks})},
            "org": organization_id,
            "state": FileState.READY.value,
            "places": {"$exists": True},
            **NOT_DELETING,
        }
        files: list[FileDocument] = await self._mongo.find(FILES, query) if tasks else []
        files.sort(key=lambda each: each["call"]["n"])
        return {_call_key(each).task: _recording(each) for each in files}

    async def release(self, job_id: str) -> None:
        """Lets all recordings of a job expire. A worker deletes them, and no worker fetches those that are missing."""
        query: Document = {"call.j": job_id, "expires_at": {"$exists": False}}
        unset = ["places", "source", "fetch_at", "fetch_claim"]
        expired: list[Document] = [{"$set": {"expires_at": "$$NOW"}}, {"$unset": unset}]
        await self._mongo.write_past_orphans(lambda: self._files.update_many(query, expired))


def _new_file(organization_id: str, key: CallKey, url: str) -> Document:
    fields: Document = {
        "org": organization_id,
        "user": NOBODY,
        "name": RECORDING_PLACE,
        "size": 0,
        "offset": 0,
        "parts": [],
        "places": [recording_place(key.task)],
        "call": {**key.task.document_id, "n": key.ordinal},
        "source": url,
        "tries": 0,
        "state": FileState.RECEIVING.value,
    }
    return {**literals(fields), "at": "$$NOW", "fetch_at": "$$NOW"}


def _claimed(claim: RecordingClaim) -> Document:
    """Returns the filter for the file while the claim is the last one."""
    return {"_id": claim.file_id, "tries": claim.tries, "fetch_at": {"$exists": True}, **NOT_DELETING}


def _call_key(document: FileDocument) -> CallKey:
    call = document["call"]
    return CallKey(TaskKey(call["j"], call["r"]), call["n"])


def _recording(document: FileDocument) -> CallRecording:
    return CallRecording(document["_id"], document["name"], document["type"], document["size"])
