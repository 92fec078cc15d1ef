"""`noroshi calls ...` on a real server."""

import asyncio
import os

import pytest

from server.commands.cli import run
from storage.stores import open_stores
from tests.product import environment
from tests.storage.calls.stored_calls import queued_task, stored_job


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, mongodb_uri: str, database: str) -> None:
    for name in set(os.environ) - set(environment()):
        monkeypatch.delenv(name)
    monkeypatch.setenv("MONGODB_URI", mongodb_uri)
    monkeypatch.setenv("NOROSHI_DATABASE", database)


@pytest.fixture
def _stored_numbers(mongodb_uri: str, redis_url: str, database: str) -> None:
    async def store() -> None:
        async with open_stores(mongodb_uri, redis_url, database) as stores:
            await stores.do_not_call.add("acme", ["+819012345678", "+819012349999662453"])
            await stores.mongo["call_jobs"].insert_one(stored_job(org="acme"))
            for row, phone in ((2, "+81901234567800"), (3, "+819012345678")):
                await stores.mongo["call_tasks"].insert_one(queued_task(_id={"j": "job", "r": row}, phone=phone))

    asyncio.run(store())


@pytest.mark.usefixtures("_stored_numbers")
def test_numbers_that_are_not_assigned_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["calls", "check-numbers", "--org", "acme"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "+819012349999662453  do-not-call list",
        "+81901234567800  job job (Reminders), row 2",
        "4 numbers, 2 not assigned.",
    ]
    assert run(["calls", "check-numbers", "--org", "globex"]) == 0
    assert capsys.readouterr().out == "0 numbers, 0 not assigned.\n"
