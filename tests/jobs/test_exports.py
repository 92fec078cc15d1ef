"""Exports of a person's data: complete, only the person's, written once, and continued after a worker is killed."""

import asyncio
import io
import json
import random
import threading
import zipfile
import zlib
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.erasures import erase_users
from jobs.exports import write_exports
from storage.ids import UserKey
from storage.privacy.archives import PIECE_BYTES
from storage.privacy.exports import CHUNK_BYTES, ExportLost, ExportState
from storage.privacy.steps import Eraser
from storage.stores import Stores
from tests.canary import EMAIL, create_canary
from tests.jobs.contexts import job_context
from tests.resolvers.people import SignIn, until_outbox_is_empty
from tests.stored_strings import ADDRESS, WORD

pytestmark = pytest.mark.anyio

CANARY = UserKey("acme", "user-1")
EXPORT = "mutation { done: exportMyData { id state filesDone files } }"
EVENTS = """
subscription { jobEvents { type: __typename ... on DataExportChanged { export { id state } } } }
"""


@pytest.fixture(scope="module")
async def canaries(module_stores: Stores) -> Stores:
    """Stores with persons of two organizations who have the same ids, and have used every feature."""
    for organization in ("acme", "other"):
        await create_canary(module_stores, organization)
    return module_stores


async def exported_objects(stores: Stores, person: UserKey = CANARY) -> dict[str, list[dict[str, Any]]]:
    """Returns the objects of each file of the person's archive, and checks the size that clients see."""
    export = await stores.exports.find(person)
    assert export is not None
    assert export.state is ExportState.COMPLETED
    data = b"".join([chunk async for chunk in stores.exports.read(export)])
    assert len(data) == export.size_bytes
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        names = [name for name in archive.namelist() if name.endswith(".ndjson")]
        return {name: [json.loads(line) for line in archive.read(name).splitlines()] for name in names}


async def uploaded_contents(stores: Stores, person: UserKey) -> dict[str, bytes]:
    """Returns the uploaded files of the person's archive, by name."""
    export = await stores.exports.find(person)
    assert export is not None
    data = b"".join([chunk async for chunk in stores.exports.read(export)])
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name.startswith("files/")}


async def make_due(stores: Stores) -> None:
    """Makes all exports due now, also those that are claimed."""
    past = {"$subtract": ["$$NOW", 1]}
    await stores.mongo["exports"].update_many({"due": {"$exists": True}}, [{"$set": {"due": past}}])


async def test_archive_holds_everything_of_the_person_and_nothing_else(canaries: Stores) -> None:
    stores = canaries
    await stores.mongo["exports"].delete_many({})
    await stores.exports.request(CANARY)
    assert await write_exports(job_context(stores)) == 1
    files = await exported_objects(stores)
    (user,) = files["user.ndjson"]
    assert (user["handle"], user["email"], user["organizationId"]) == (f"{WORD}_q", EMAIL, "acme")
    messages = [message for message in files["messages.ndjson"] if not message["deletedAt"]]
    texts = [f"@bob https://example.org/{WORD}", "direct", "quoting", "reply", "second"]
    assert sorted(message["text"] for message in messages) == [f"{WORD} {text}" for text in texts]
    assert [message["text"] for message in messages if message["quotedMessageId"]] == [f"{WORD} quoting"]
    (thread,) = files["topics.ndjson"]
    assert [each["text"] for each in messages if each["topicId"] == thread["threadId"]] == [f"{WORD} reply"]
    conversations = [each["conversation"] for each in files["memberships.ndjson"]]
    assert sorted(map(str, conversations)) == ["JOINED", "None", "REQUESTED"]
    assert [each["text"] for each in files["scheduledPosts.ndjson"]] == [f"{WORD} text"] * 8
    assert [each["userId"] for each in files["follows.ndjson"]] == ["bob"]
    assert [each["emoji"] for each in files["reactions.ndjson"] + files["postReactions.ndjson"]] == ["🐟"] * 2
    (history,) = files["postHistories.ndjson"]
    assert [each["text"] for each in history["earlierTexts"]] == [f"{WORD} #{WORD} @bob"]
    assert [each["digest"] for each in files["notificationSettings.ndjson"]] == ["DAILY"]
    channels = {each["way"]: each["address"] or each["period"] for each in files["notificationChannels.ndjson"]}
    assert channels == {"PUSH": f"https://push.example/{WORD}/acme", "MAIL": "DAILY"}
    filled = {name for name, objects in files.items() if objects}
    assert {"posts.ndjson", "memberships.ndjson", "notifications.ndjson", "readMarks.ndjson"} <= filled
    assert ADDRESS not in json.dumps(files)  # entries of the audit log are exported without addresses


async def test_repeated_requests_give_one_export(stores: Stores) -> None:
    ann = await SignIn(stores)("ann")
    jobs = job_context(stores)
    requested = await asyncio.gather(*(ann.do(EXPORT) for _ in range(5)))
    assert len({each["id"] for each in requested}) == 1
    assert sum(await asyncio.gather(*(write_exports(jobs) for _ in range(3)))) == 1
    again = await ann.do(EXPORT)
    assert (again["id"], again["state"]) == (requested[0]["id"], "COMPLETED")
    assert again["filesDone"] == again["files"]
    # After an hour a new export replaces the old one.
    await stores.mongo["exports"].update_many({}, [{"$set": {"at": {"$subtract": ["$$NOW", 3_601_000]}}}])
    assert (await ann.do(EXPORT))["id"] != requested[0]["id"]
    assert await stores.mongo["export_chunks"].count_documents({}) == 0


async def test_export_of_a_killed_worker_is_written_by_another(stores: Stores) -> None:
    await SignIn(stores)("user-1")
    await stores.exports.request(CANARY)
    abandoned = await stores.exports.claim()
    assert abandoned is not None
    await stores.exports.add_chunk(abandoned, 0, b"x" * 100)
    assert await write_exports(job_context(stores)) == 0
    await make_due(stores)
    assert await stores.exports.claim() is not None
    with pytest.raises(ExportLost):
        await stores.exports.add_chunk(abandoned, 1, b"late")
    await make_due(stores)
    assert await write_exports(job_context(stores)) == 1
    assert (await exported_objects(stores))["user.ndjson"]
    # The first worker wakes up: it changes nothing, and its part is gone.
    for late in (stores.exports.add_chunk(abandoned, 1, b"late"), stores.exports.complete(abandoned)):
        with pytest.raises(ExportLost):
            await late
    assert (await exported_objects(stores))["user.ndjson"]
    assert await stores.mongo["export_chunks"].count_documents({"_id.f": abandoned.fence}) == 0


async def test_large_archive_has_several_parts(stores: Stores) -> None:
    await SignIn(stores)("user-1")
    noise = random.Random(1)
    texts = ["".join(map(chr, noise.choices(range(0x4E00, 0x9FFF), k=4000))) for _ in range(200)]
    posts = [
        {"_id": {"o": "acme", "ts": n + 1}, "author": "user-1", "text": text, "merged": False}
        for n, text in enumerate(texts)
    ]
    await stores.mongo["posts"].insert_many(posts)
    export = await stores.exports.request(CANARY)
    await write_exports(job_context(stores))
    assert [each["text"] for each in (await exported_objects(stores))["posts.ndjson"]] == texts
    sizes = [len(chunk["data"]) async for chunk in stores.mongo["export_chunks"].find({"_id.e": export.id})]
    assert len(sizes) > 1
    assert max(sizes) == CHUNK_BYTES


async def test_archives_are_compressed_outside_of_the_loop(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop of the worker also starts calls."""
    await SignIn(stores)("user-1")
    text = {"author": "user-1", "text": "a text " * 1400, "merged": False}
    await stores.mongo["posts"].insert_many([{"_id": {"o": "acme", "ts": n + 1}, **text} for n in range(200)])
    sizes: dict[int, list[int]] = {}

    class RecordingCompressor:
        """Compresses, and records how many bytes each thread compresses at a time."""

        def __init__(self, *options: Any) -> None:
            self._compressor = zlib.compressobj(*options)

        def compress(self, data: bytes) -> bytes:
            sizes.setdefault(threading.get_ident(), []).append(len(data))
            return self._compressor.compress(data)

        def flush(self) -> bytes:
            return self._compressor.flush()

    monkeypatch.setattr("zipfile.zlib", SimpleNamespace(**vars(zlib) | {"compressobj": RecordingCompressor}))
    await stores.exports.request(CANARY)
    await write_exports(job_context(stores))
    assert len((await exported_objects(stores))["posts.ndjson"]) == 200
    on_loop = sizes.pop(threading.get_ident(), [0])
    assert max(on_loop) < 10_000, "The loop compresses."
    assert max(map(max, sizes.values())) < 2 * PIECE_BYTES


async def test_only_the_person_sees_progress_and_archive(stores: Stores) -> None:
    sign_in = SignIn(stores)
    ann, bob = await sign_in("ann"), await sign_in("bob")
    async with ann.subscribed(EVENTS) as events, bob.subscribed(EVENTS) as others:
        export = await ann.do(EXPORT)
        await write_exports(job_context(stores))
        await until_outbox_is_empty(stores)
        event = await events.next_event()
        assert (event["type"], event["export"]["id"]) == ("DataExportChanged", export["id"])
        own = await bob.do(EXPORT)
        assert (await others.next_event())["export"]["id"] == own["id"]
    query = "{ myDataExport { id state downloadUrl } }"
    assert (await ann.run(query))["myDataExport"]["downloadUrl"]
    assert (await bob.run(query))["myDataExport"]["downloadUrl"] is None
    only = "subscription ($id: ID!) { jobEvents(jobId: $id) { __typename } }"
    assert (await anext(bob.answers(only, id=export["id"])))["errors"][0]["extensions"]["code"] == "FORBIDDEN"


async def test_erasure_removes_the_archive_and_ends_its_writer(stores: Stores) -> None:
    await SignIn(stores)("user-1")
    await stores.exports.request(CANARY)
    claimed = await stores.exports.claim()
    assert claimed is not None
    await stores.exports.add_chunk(claimed, 0, b"x")

    async def ignore(_changed: int) -> None:
        return

    await Eraser.erase_documents(stores.eraser, CANARY, ignore)
    with pytest.raises(ExportLost):
        await stores.exports.add_chunk(claimed, 1, b"x")
    assert await stores.mongo["export_chunks"].count_documents({}) == 0
    assert await erase_users(job_context(stores)) == 0


async def test_archive_holds_uploaded_files_up_to_a_size(canaries: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = canaries
    await stores.mongo["exports"].delete_many({})
    ids = [each["_id"] for each in await stores.mongo.find("files", {"org": "acme"}, None, [("_id", 1)])]
    await stores.exports.request(CANARY)
    await write_exports(job_context(stores))
    expected = {f"files/{id_}/{WORD}.txt": f"{WORD} words".encode() for id_ in ids}
    assert await uploaded_contents(stores, CANARY) == expected
    assert len(expected) > 1
    assert {each["fileName"] for each in (await exported_objects(stores))["files.ndjson"]} == {f"{WORD}.txt"}
    monkeypatch.setattr("storage.privacy.archives.MAX_FILE_BYTES", len(f"{WORD} words"))
    await stores.mongo["exports"].delete_many({})
    await stores.exports.request(CANARY)
    await write_exports(job_context(stores))
    assert list(await uploaded_contents(stores, CANARY)) == [f"files/{ids[-1]}/{WORD}.txt"]
    assert len((await exported_objects(stores))["files.ndjson"]) == len(ids)


async def test_lost_file_is_empty_and_the_others_are_exported(canaries: Stores) -> None:
    stores, person = canaries, UserKey("other", CANARY.user_id)
    files = await stores.mongo.find("files", {"org": "other"}, None, [("_id", 1)])
    lost = files[0]["_id"]
    await stores.file_objects.delete_all(lost)
    await stores.exports.request(person)
    await write_exports(job_context(stores))
    contents = await uploaded_contents(stores, person)
    assert contents.pop(f"files/{lost}/{WORD}.txt") == b""
    assert set(contents.values()) == {f"{WORD} words".encode()}
    assert len((await exported_objects(stores, person))["files.ndjson"]) == len(files)
