"""Workers that fetch recordings from a real server: what is stored, refused, tried again, and never lost."""

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from ipaddress import ip_network

import pytest

from jobs.calls import recordings
from jobs.calls.recordings import fetch_recordings
from jobs.context import JobContext
from jobs.files import delete_expired_files
from jobs.providers.egress import Egress
from storage.calls.expired_data import PHONE_NUMBERS, VARIABLES
from storage.calls.recordings import MAX_TRIES
from storage.files.objects import ObjectMissing
from storage.mongo import Document
from storage.stores import Stores
from tests.jobs.contexts import job_context
from tests.storage.calls.recorded_calls import end_call, make_due, start_call, used_bytes
from tests.twins.recordings import WAV, RecordingServer, recording_server
from tests.waiting import until

pytestmark = pytest.mark.anyio

LOOPBACK = (ip_network("127.0.0.1/32"),)


@pytest.fixture
async def server() -> AsyncIterator[RecordingServer]:
    async with recording_server() as server:
        yield server


@pytest.fixture
async def jobs(stores: Stores) -> AsyncIterator[JobContext]:
    egress = Egress(LOOPBACK)
    yield job_context(stores, egress)
    await egress.aclose()


async def reported(stores: Stores, url: str) -> str:
    """Starts and ends a call with a recording, and returns the call's id."""
    call_id = await start_call(stores)
    await end_call(stores, call_id)
    await stores.call_recordings.report("acme", call_id, url)
    return call_id


async def only_file(stores: Stores) -> Document:
    (file,) = await stores.mongo.find("files", {})
    return dict(file)


async def content(stores: Stores) -> bytes:
    file = await stores.uploads.find_any("acme", (await only_file(stores))["_id"])
    assert file is not None
    return await stores.file_objects.read_all(file.parts)


async def test_reported_recording_is_stored_once(
    stores: Stores, jobs: JobContext, server: RecordingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "PART_BYTES", 1000)
    call_id = await reported(stores, f"{server.url}/call.wav")
    assert sum(await asyncio.gather(*(fetch_recordings(jobs) for _ in range(3)))) == 1
    await stores.call_recordings.report("acme", call_id, f"{server.url}/call.wav")
    assert await fetch_recordings(jobs) == 0
    file = await only_file(stores)
    assert (file["state"], file["type"], file["size"]) == ("READY", "audio/wav", len(WAV))
    assert len(file["parts"]) == -(-len(WAV) // 1000)
    assert await content(stores) == WAV
    assert "source" not in file
    assert server.request_counts == {"/call.wav": 1}
    assert not {"authorization", "cookie"} & set(server.headers[0])


@pytest.mark.parametrize(
    "body",
    [b"<html><script>alert(1)</script>", b"\x89PNG\r\n\x1a\n", b"\x1aE\xdf\xa3 film", b"MZ\x90\x00", b""],
    ids=["page", "picture", "film", "program", "nothing"],
)
async def test_only_audio_by_its_bytes_is_stored(
    stores: Stores, jobs: JobContext, server: RecordingServer, body: bytes
) -> None:
    server.bodies["/call.wav"] = body
    await reported(stores, f"{server.url}/call.wav")
    await fetch_recordings(jobs)
    await make_due(stores)
    assert await fetch_recordings(jobs) == 0
    file = await only_file(stores)
    assert (file["state"], file["parts"], await used_bytes(stores)) == ("REFUSED", [], 0)


async def test_huge_recording_is_refused(
    stores: Stores, jobs: JobContext, server: RecordingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "MAX_RECORDING_BYTES", 200_000)
    await reported(stores, f"{server.url}/endless.wav")
    await fetch_recordings(jobs)
    assert (await only_file(stores))["state"] == "REFUSED"


async def test_silent_server_holds_a_worker_for_a_limited_time(
    stores: Stores, jobs: JobContext, server: RecordingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "FETCH_TIMEOUT_S", 0.2)
    server.silent.add("/call.wav")
    await reported(stores, f"{server.url}/call.wav")
    assert await fetch_recordings(jobs) == 1
    file = await only_file(stores)
    assert (file["state"], file["tries"], "fetch_at" in file) == ("RECEIVING", 1, True)


async def test_late_recording_is_tried_again_within_bounds(
    stores: Stores, jobs: JobContext, server: RecordingServer
) -> None:
    for path, status in (("/late.wav", 404), ("/broken.wav", 500)):
        server.statuses[path] = status
    await reported(stores, f"{server.url}/late.wav")
    await reported(stores, f"{server.url}/broken.wav")
    assert await fetch_recordings(jobs) == 2
    del server.statuses["/late.wav"]
    server.bodies["/late.wav"] = WAV
    for _ in range(MAX_TRIES + 2):
        await make_due(stores)
        await fetch_recordings(jobs)
    assert server.request_counts == {"/late.wav": 2, "/broken.wav": MAX_TRIES}
    states = sorted(each["state"] for each in await stores.mongo.find("files", {}))
    assert states == ["READY", "REFUSED"]


async def test_redirect_is_followed_to_permitted_addresses_only(
    stores: Stores, jobs: JobContext, server: RecordingServer
) -> None:
    server.redirects |= {"/moved": f"{server.url}/call.wav", "/inside": "http://127.0.0.2:1/call.wav"}
    await reported(stores, f"{server.url}/moved")
    await fetch_recordings(jobs)
    assert await content(stores) == WAV
    await reported(stores, f"{server.url}/inside")
    await reported(stores, "http://169.254.169.254/call.wav")
    await fetch_recordings(jobs)
    states = sorted(each["state"] for each in await stores.mongo.find("files", {}))
    assert states == ["READY", "REFUSED", "REFUSED"]


WORKER = """
import asyncio, sys
from ipaddress import ip_network
from jobs.calls.recordings import fetch_recordings
from jobs.providers.egress import Egress
from storage.stores import open_stores
from tests.jobs.contexts import job_context

async def main(uri, redis_url, database):
    async with open_stores(uri, redis_url, database, is_prepared=True) as stores:
        await fetch_recordings(job_context(stores, Egress((ip_network("127.0.0.1/32"),))))

asyncio.run(main(*sys.argv[1:]))
"""


async def test_killed_worker_is_replaced_when_its_claim_ends(
    stores: Stores, jobs: JobContext, server: RecordingServer, mongodb_uri: str, redis_url: str
) -> None:
    server.silent.add("/call.wav")
    await reported(stores, f"{server.url}/call.wav")
    command = [sys.executable, "-c", WORKER, mongodb_uri, redis_url, stores.mongo.database.name]
    worker = await asyncio.create_subprocess_exec(*command)
    try:
        await until(lambda: server.request_counts["/call.wav"] == 1)
    finally:
        worker.kill()
        await worker.wait()
    server.silent.clear()
    assert await fetch_recordings(jobs) == 0
    await make_due(stores)
    assert await fetch_recordings(jobs) == 1
    assert await content(stores) == WAV


async def test_objects_of_a_killed_worker_are_deleted(
    stores: Stores, jobs: JobContext, server: RecordingServer
) -> None:
    """The worker has written an object and dies before it stores its name."""
    await reported(stores, f"{server.url}/call.wav")
    dead = await stores.call_recordings.claim()
    assert dead is not None
    left_over = await stores.file_objects.put(dead.file_id, WAV)
    await make_due(stores)
    assert await fetch_recordings(jobs) == 1
    assert await content(stores) == WAV
    with pytest.raises(ObjectMissing):
        await stores.file_objects.read_all([left_over])
    assert await used_bytes(stores) == len(WAV)


async def test_recording_that_kills_workers_is_given_up(
    stores: Stores, jobs: JobContext, server: RecordingServer
) -> None:
    await reported(stores, f"{server.url}/call.wav")
    for _ in range(MAX_TRIES):
        assert await stores.call_recordings.claim() is not None
        await make_due(stores)
    assert await fetch_recordings(jobs) == 1
    assert ((await only_file(stores))["state"], server.request_counts) == ("REFUSED", {})


async def ignore() -> None:
    return


async def test_recordings_are_deleted_with_the_numbers(
    stores: Stores, jobs: JobContext, server: RecordingServer
) -> None:
    old, recent = [await reported(stores, f"{server.url}/call.wav") for _ in range(2)]
    await fetch_recordings(jobs)
    earlier = [{"$set": {"ended_at": {"$subtract": ["$ended_at", 2 * 86_400_000]}}}]
    await stores.mongo["call_jobs"].update_one({"_id": old.rsplit("-", 2)[0]}, earlier)
    await stores.expired_call_data.remove("acme", VARIABLES, timedelta(days=1), ignore)
    assert await delete_expired_files(jobs) == 0
    await stores.expired_call_data.remove("acme", PHONE_NUMBERS, timedelta(days=1), ignore)
    assert await delete_expired_files(jobs) == 1
    await stores.call_recordings.report("acme", old, f"{server.url}/call.wav")
    assert await fetch_recordings(jobs) == 0
    (file,) = await stores.mongo.find("files", {})
    assert file["call"]["j"] == recent.rsplit("-", 2)[0]
    assert await used_bytes(stores) == len(WAV)
