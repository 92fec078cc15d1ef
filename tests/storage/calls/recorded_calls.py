"""Calls with recordings, for tests of storage, workers and the API."""

import asyncio

from storage.calls.call_changes import StartRefusal
from storage.calls.calls import NextCall, TimedStart
from storage.calls.recordings import RecordingClaim
from storage.calls.records import CallOutcome, CallReportKind, CallTask, TaskKey
from storage.stores import Stores
from tests.storage.calls.in_memory_jobs import new_job
from tests.twins.recordings import WAV

NUMBER = "+819012345678"
URL = "https://calls.example.org/call.wav"


async def start_call(stores: Stores, organization_id: str = "acme", max_attempts: int = 1) -> str:
    """Starts the call of a new job with one number, and returns the call's id."""
    new = new_job(organization_id=organization_id, max_attempts=max_attempts, retry_delay_s=0)
    job = await stores.call_jobs.launch(new, f"phone_number\n{NUMBER}\n", None)
    await stores.call_jobs.set_limits(organization_id, 10, 100)
    return await call_again(stores, organization_id, job.id)


async def call_again(stores: Stores, organization_id: str, job_id: str) -> str:
    """Starts the next call of the job's number, and returns the call's id."""
    next_call = NextCall(TaskKey(job_id, 2), NUMBER)
    while (start := await stores.calls.start(organization_id, next_call, 1)) is StartRefusal.TOO_EARLY:
        await asyncio.sleep(0.01)
    assert isinstance(start, TimedStart), start
    return start.call.id


async def end_call(stores: Stores, call_id: str, outcome: CallOutcome = CallOutcome.ANSWERED) -> None:
    """Reports the end of a call."""
    await stores.calls.report(call_id, 1, CallReportKind.ENDED, outcome)


async def task_of(stores: Stores, call_id: str, organization_id: str = "acme") -> CallTask:
    """Returns the task of a call."""
    job = await stores.call_jobs.get(organization_id, call_id.rsplit("-", 2)[0])
    (task,) = await stores.call_jobs.tasks(job, None, 0, 10)
    return task


async def claim_of(stores: Stores) -> RecordingClaim:
    """Claims the recording that is due."""
    claim = await stores.call_recordings.claim()
    assert claim is not None
    return claim


async def store_recording(stores: Stores, call_id: str, organization_id: str = "acme") -> RecordingClaim:
    """Reports, claims and stores a recording, as a worker does."""
    await stores.call_recordings.report(organization_id, call_id, URL)
    claim = await claim_of(stores)
    await stores.call_recordings.store(claim, [await stores.file_objects.put(claim.file_id, WAV)], "audio/wav")
    return claim


async def make_due(stores: Stores) -> None:
    """Ends the claims and delays of all recordings."""
    past = [{"$set": {"fetch_at": {"$subtract": ["$$NOW", 1]}}}]
    await stores.mongo["files"].update_many({"fetch_at": {"$exists": True}}, past)


async def used_bytes(stores: Stores, organization_id: str = "acme") -> int:
    """Returns the number of bytes that count for the organization."""
    usage = await stores.mongo["file_usage"].find_one({"_id": {"o": organization_id, "u": ""}})
    return 0 if usage is None else int(usage["bytes"])
