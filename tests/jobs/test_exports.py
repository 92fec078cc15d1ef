"""Exports of a person's data: complete, only the person's, written once, and continued after a worker is killed."""

import asyncio
import io
import json
import zipfile
from typing import Any

import pytest

from jobs.erasures import erase_users
from jobs.exports import write_exports
from storage.identity.privacy_rules import Person
from storage.privacy.exports import CHUNK_BYTES, ExportLost, ExportState
from storage.privacy.steps import Eraser
from storage.stores import Stores
from tests.canary import ADDRESS, WORD, create_canary
from tests.jobs.contexts import job_context
from tests.resolvers.people import SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

CANARY = Person("acme", "user-1")
EXPORT = "mutation { done: exportMyData { id state filesDone files } }"
EVENTS = """
subscription { jobEvents { type: __typename ... on DataExportChanged { export { id state } } } }
"""


async def downloaded(stores: Stores, person: Person = CANARY) -> dict[str, list[dict[str, Any]]]:
    """Returns the objects of each file of the person's archive, and checks the size that clients see."""
    export = await stores.exports.find(person)
    assert export is not None
    assert export.state is ExportState.COMPLETED
    data = b"".join([chunk async for chunk in stores.exports.read(export)])
    assert len(data) == export.size_bytes
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        names = [name for name in archive.namelist() if name != "README.txt"]
        return {name: [json.loads(line) for line in archive.read(name).splitlines()] for name in names}


async def make_due(stores: Stores) -> None:
    """Ends the claims of all exports."""
    past = {"$subtract": ["$$NOW", 1]}
    await stores.mongo["exports"].update_many({"due": {"$exists": True}}, [{"$set": {"due": past}}])


async def test_archive_holds_everything_of_the_person_and_nothing_else(stores: Stores) -> None:
    await create_canary(stores)
    await create_canary(stores, "other")
    await stores.exports.request(CANARY)
    assert await write_exports(job_context(stores)) == 1
    files = await downloaded(stores)
    (user,) = files["user.ndjson"]
    assert (user["handle"], user["email"], user["organizationId"]) == (f"{WORD}_q", f"{WORD}@example.net", "acme")
    texts = [message["text"] for message in files["messages.ndjson"] if not message["deletedAt"]]
    assert sorted(texts) == [f"{WORD} @bob https://example.org/{WORD}", f"{WORD} second"]
    assert [each["text"] for each in files["scheduledPosts.ndjson"]] == [f"{WORD} text"] * 3
    assert [each["userId"] for each in files["follows.ndjson"]] == ["bob"]
    assert [each["emoji"] for each in files["reactions.ndjson"]] == ["🐟"]
    filled = {name for name, objects in files.items() if objects}
    assert {"posts.ndjson", "memberships.ndjson", "notifications.ndjson", "readMarks.ndjson"} <= filled
    assert ADDRESS not in json.dumps(files)  # entries of the audit log are exported without places


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
    await create_canary(stores)
    await stores.exports.request(CANARY)
    dead = await stores.exports.claim()
    assert dead is not None
    await stores.exports.add_chunk(dead, 0, b"x" * 100)
    assert await write_exports(job_context(stores)) == 0
    await make_due(stores)
    assert await stores.exports.claim() is not None
    with pytest.raises(ExportLost):
        await stores.exports.add_chunk(dead, 1, b"late")
    await make_due(stores)
    assert await write_exports(job_context(stores)) == 1
    assert (await downloaded(stores))["user.ndjson"]
    # The first worker wakes up: it changes nothing, and its part is gone.
    for late in (stores.exports.add_chunk(dead, 1, b"late"), stores.exports.complete(dead)):
        with pytest.raises(ExportLost):
            await late
    assert (await downloaded(stores))["user.ndjson"]
    assert await stores.mongo["export_chunks"].count_documents({"_id.f": dead.fence}) == 0


async def test_large_archive_has_several_parts(stores: Stores) -> None:
    await SignIn(stores)("user-1")
    noise = __import__("random").Random(1)
    texts = ["".join(chr(noise.randrange(0x4E00, 0x9FFF)) for _ in range(4000)) for _ in range(200)]
    posts = [
        {"_id": {"o": "acme", "ts": n + 1}, "author": "user-1", "text": text, "merged": False}
        for n, text in enumerate(texts)
    ]
    await stores.mongo["posts"].insert_many(posts)
    export = await stores.exports.request(CANARY)
    await write_exports(job_context(stores))
    assert [each["text"] for each in (await downloaded(stores))["posts.ndjson"]] == texts
    sizes = [len(chunk["data"]) async for chunk in stores.mongo["export_chunks"].find({"_id.e": export.id})]
    assert len(sizes) > 1
    assert max(sizes) == CHUNK_BYTES


async def test_only_the_person_sees_progress_and_archive(stores: Stores) -> None:
    sign_in = SignIn(stores)
    ann, bob = await sign_in("ann"), await sign_in("bob")
    async with ann.subscribed(EVENTS) as events, bob.subscribed(EVENTS) as others:
        export = await ann.do(EXPORT)
        await write_exports(job_context(stores))
        await until_outbox_is_empty(stores)
        event = await events.event()
        assert (event["type"], event["export"]["id"]) == ("DataExportChanged", export["id"])
        own = await bob.do(EXPORT)
        assert (await others.event())["export"]["id"] == own["id"]
    query = "{ myDataExport { id state downloadUrl } }"
    assert (await ann.run(query))["myDataExport"]["downloadUrl"]
    assert (await bob.run(query))["myDataExport"]["downloadUrl"] is None
    only = "subscription ($id: ID!) { jobEvents(jobId: $id) { __typename } }"
    assert (await anext(bob.answers(only, id=export["id"])))["errors"][0]["extensions"]["code"] == "FORBIDDEN"


async def test_erasure_removes_the_archive_and_ends_its_writer(stores: Stores) -> None:
    await create_canary(stores)
    await stores.exports.request(CANARY)
    writer = await stores.exports.claim()
    assert writer is not None
    await stores.exports.add_chunk(writer, 0, b"x")

    async def ignore(_changed: int) -> None:
        return

    await Eraser.erase_documents(stores.eraser, CANARY, ignore)
    with pytest.raises(ExportLost):
        await stores.exports.add_chunk(writer, 1, b"x")
    assert await stores.mongo["export_chunks"].count_documents({}) == 0
    assert await erase_users(job_context(stores)) == 0
