"""Recordings in storage: one for each call, however often it is reported, and none of a number that was removed."""

import asyncio

import pytest

from storage.calls.recordings import MAX_TRIES, CallRecordings
from storage.calls.records import CallOutcome
from storage.errors import NotFound, QuotaExceeded
from storage.files.uploads import FileLimits
from storage.stores import Stores
from tests.storage.calls.recorded_calls import (
    URL,
    call_again,
    claim_of,
    end_call,
    make_due,
    start_call,
    store_recording,
    task_of,
    used_bytes,
)
from tests.twins.recordings import WAV

pytestmark = pytest.mark.anyio


async def test_repeated_reports_store_one_recording(stores: Stores) -> None:
    call_id = await start_call(stores)
    urls = [URL, URL, "https://other.example/call.wav"]
    await asyncio.gather(*(stores.call_recordings.report("acme", call_id, url) for url in urls))
    claim = await claim_of(stores)
    assert (claim.call_id, claim.tries) == (call_id, 1)
    assert await stores.call_recordings.claim() is None
    await stores.call_recordings.store(claim, [await stores.file_objects.put(claim.file_id, WAV)], "audio/wav")
    await stores.call_recordings.report("acme", call_id, URL)
    await make_due(stores)
    assert await stores.call_recordings.claim() is None
    assert (await task_of(stores, call_id)).recording_count == 1
    assert await used_bytes(stores) == len(WAV)


async def test_task_shows_recording_of_its_latest_recorded_call(stores: Stores) -> None:
    first = await start_call(stores, max_attempts=3)
    await end_call(stores, first, CallOutcome.VOICEMAIL)
    second = await call_again(stores, "acme", first.rsplit("-", 2)[0])
    key = (await task_of(stores, second)).key
    later, earlier = [await store_recording(stores, each) for each in (second, first)]
    found = await stores.call_recordings.of_tasks("acme", [key])
    assert found[key].file_id == later.file_id != earlier.file_id
    assert found[key].url == f"/files/{later.file_id}/call-{second}.wav"
    assert await stores.call_recordings.of_tasks("other", [key]) == {}
    assert await stores.call_recordings.of_tasks("acme", []) == {}


async def test_report_of_another_organization_or_call_stores_nothing(stores: Stores) -> None:
    call_id = await start_call(stores)
    await stores.call_recordings.report("other", call_id, URL)
    await stores.call_recordings.report("acme", call_id.removesuffix("1") + "2", URL)
    with pytest.raises(NotFound):
        await stores.call_recordings.report("acme", "nothing", URL)
    assert await stores.mongo["files"].count_documents({}) == 0


async def test_result_of_a_lost_claim_is_not_stored(stores: Stores) -> None:
    call_id = await start_call(stores)
    await stores.call_recordings.report("acme", call_id, URL)
    slow = await claim_of(stores)
    await make_due(stores)
    fast = await claim_of(stores)
    late, right = [[await stores.file_objects.put(fast.file_id, WAV)] for _ in range(2)]
    await stores.call_recordings.give_up(slow)
    await stores.call_recordings.retry_later(slow)
    await stores.call_recordings.store(slow, late, "audio/wav")
    await stores.call_recordings.store(fast, right, "audio/wav")
    await stores.call_recordings.store(slow, late, "audio/wav")
    file = await stores.uploads.find_any("acme", fast.file_id)
    assert file is not None
    assert file.parts == tuple(right)
    assert await stores.file_objects.read_all(right) == WAV
    assert await used_bytes(stores) == len(WAV)


async def test_recording_of_dead_worker_is_claimed_at_once(stores: Stores) -> None:
    recordings = stores.call_recordings
    dead, other = (CallRecordings(stores.mongo, stores.file_objects, worker=name) for name in ("dead", "other"))
    await recordings.report("acme", await start_call(stores), URL)
    assert await other.claim() is not None
    assert await recordings.release_of("dead") == 0
    await make_due(stores)
    lost = await dead.claim()
    assert lost is not None
    assert await recordings.claim() is None
    assert await recordings.release_of("dead") == 1
    again = await claim_of(stores)
    assert (again.file_id, again.tries) == (lost.file_id, lost.tries + 1)
    await dead.give_up(lost)
    await make_due(stores)
    retried = await dead.claim()
    assert retried is not None
    await dead.retry_later(retried)
    assert await recordings.release_of("dead") == 0, "The next try is planned, and no claim holds the recording."


async def test_repeated_transaction_keeps_what_it_has_stored(stores: Stores) -> None:
    """After a lost answer to the commit, the same result is stored again."""
    call_id = await start_call(stores)
    claim = await store_recording(stores, call_id)
    file = await stores.uploads.find_any("acme", claim.file_id)
    assert file is not None
    await stores.call_recordings.store(claim, file.parts, "audio/wav")
    assert await stores.file_objects.read_all(file.parts) == WAV
    assert await used_bytes(stores) == len(WAV)


async def test_tries_are_bounded_and_delayed(stores: Stores) -> None:
    await stores.call_recordings.report("acme", await start_call(stores), URL)
    for tries in range(1, MAX_TRIES + 1):
        claim = await claim_of(stores)
        assert claim.tries == tries
        await stores.call_recordings.retry_later(claim)
        assert await stores.call_recordings.claim() is None
        await make_due(stores)
    assert await stores.call_recordings.claim() is None
    (file,) = await stores.mongo.find("files", {})
    assert (file["state"], "source" in file) == ("REFUSED", False)


async def test_recording_above_the_quota_is_not_stored(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores.call_recordings, "_limits", FileLimits(organization_bytes=len(WAV) - 1))
    with pytest.raises(QuotaExceeded):
        await store_recording(stores, await start_call(stores))
    (file,) = await stores.mongo.find("files", {})
    assert (file["state"], await used_bytes(stores)) == ("RECEIVING", 0)


async def test_report_about_a_removed_number_stores_nothing(stores: Stores) -> None:
    call_id = await start_call(stores)
    await stores.mongo["call_tasks"].update_one({}, {"$set": {"phone": ""}})
    await stores.call_recordings.report("acme", call_id, URL)
    assert await stores.mongo["files"].count_documents({}) == 0


async def test_released_recording_is_deleted_and_not_fetched(stores: Stores) -> None:
    stored, waiting, kept = [await start_call(stores) for _ in range(3)]
    await store_recording(stores, stored)
    other = await store_recording(stores, kept)
    await stores.call_recordings.report("acme", waiting, URL)
    claim = await claim_of(stores)
    for call_id in (stored, waiting):
        await stores.call_recordings.release(call_id.rsplit("-", 2)[0])
    await make_due(stores)
    assert await stores.call_recordings.claim() is None
    await stores.call_recordings.store(claim, [await stores.file_objects.put(claim.file_id, WAV)], "audio/wav")
    assert await stores.file_deletion.delete_expired() == 2
    assert [each["_id"] for each in await stores.mongo.find("files", {})] == [other.file_id]
    assert await used_bytes(stores) == len(WAV)
