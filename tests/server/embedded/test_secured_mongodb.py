"""MongoDB with TLS, passwords and the documented rights: refusals, and the product on both drivers."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest

from server.embedded import StartupError, check_mongodb
from server.migration import check_data, migrate_data
from server.settings import Settings
from storage.migrations.migrator import MigrationProgress
from storage.mongo import Driver, Mongo, Session, connect
from storage.stores import open_stores
from tests.secured_mongod import PASSWORD, SecuredMongod, secured_mongod
from tests.server.refused_starts import refusal as refusal_of_process
from tests.storage.topic_scenario import create_topic_scenario

pytestmark = pytest.mark.anyio

DATABASE = "noroshi"
ROLES = {"product": [{"role": "readWrite", "db": DATABASE}], "stranger": []}
"""The user `product` has the rights that docs/operations.md asks for. The user `stranger` has no rights."""

RELEASE_DEADLINE_S = 20
"""Shorter than the minute after which MongoDB itself ends an orphaned transaction."""

CRASH_IN_TRANSACTION = """
import os, sys, pymongo
client = pymongo.MongoClient(sys.argv[1], appname="noroshi")
session = client.start_session()
session.start_transaction()
client[sys.argv[2]]["things"].update_one({"_id": "counter"}, {"$inc": {"n": 100}}, session=session)
os._exit(0)
"""


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SecuredMongod]:
    async with secured_mongod(tmp_path_factory.mktemp("secured"), ROLES) as server:
        yield server


@pytest.fixture(params=["pymongo", "motor"])
def driver(request: pytest.FixtureRequest) -> Driver:
    chosen: Driver = request.param
    return chosen


@pytest.fixture
async def mongo(server: SecuredMongod, driver: Driver) -> AsyncIterator[Mongo]:
    """The product's client, on a database with a counter."""
    mongo = connect(server.uri_for("product"), DATABASE, driver)
    await mongo["things"].update_one({"_id": "counter"}, {"$set": {"n": 0}}, upsert=True)
    yield mongo
    await mongo.close()


async def increment(mongo: Mongo, session: Session) -> None:
    await mongo["things"].update_one({"_id": "counter"}, {"$inc": {"n": 1}}, session=session)


async def counter_value(mongo: Mongo) -> int:
    (document,) = await mongo.find("things", {"_id": "counter"})
    return int(document["n"])


async def refusal(uri: str) -> str:
    """Returns the sentence by which a start refuses the address."""
    with pytest.raises(StartupError) as error:
        await check_mongodb(uri)
    assert "\n" not in str(error.value)
    assert "word" not in str(error.value).replace("the user or password", "")
    return str(error.value)


async def test_wrong_user_or_password_is_refused(server: SecuredMongod) -> None:
    expected = f"MONGODB_URI ({server.address}): the server refuses the user or password."
    assert await refusal(server.uri_for("product", "wrong password")) == expected
    assert await refusal(server.uri_for("nobody")) == expected


async def test_untrusted_certificate_is_refused_with_remedy(server: SecuredMongod) -> None:
    uri_without_certificate = f"mongodb://product:{quote(PASSWORD, safe='')}@{server.address}/?tls=true"
    assert (
        f"({server.address}): the server's certificate is not trusted (self-signed certificate). tlsCAFile="
    ) in await refusal(uri_without_certificate)
    other_name = server.uri_for("product").replace("127.0.0.1", "localhost")
    assert "(Hostname mismatch, certificate is not valid for 'localhost')" in await refusal(other_name)


async def test_connection_without_tls_is_refused_with_remedy(server: SecuredMongod) -> None:
    assert "Does it need TLS (tls=true)?" in await refusal(f"mongodb://{server.address}/")


async def test_unusable_certificate_file_is_refused(server: SecuredMongod, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    for file in (tmp_path / "missing.pem", empty):
        assert "a file of its TLS options can't be used" in await refusal(server.uri_for("product", certificate=file))


async def test_user_without_rights_is_refused_with_remedy(
    server: SecuredMongod, redis_url: str, tmp_path: Path
) -> None:
    uri = server.uri_for("stranger")
    await check_mongodb(uri)
    settings = Settings(mongodb_uri=uri, redis_url=redis_url, database=DATABASE)
    with pytest.raises(StartupError, match=f"needs the role readWrite on the database {DATABASE}"):
        await check_data(settings)
    variables = {"MONGODB_URI": uri, "REDIS_URL": redis_url, "NOROSHI_DATABASE": DATABASE}
    error = await asyncio.to_thread(refusal_of_process, tmp_path, "worker", **variables)
    assert f"needs the role readWrite on the database {DATABASE}" in error


async def test_documented_rights_suffice_for_the_product(
    server: SecuredMongod, redis_url: str, driver: Driver, mongo: Mongo
) -> None:
    async with open_stores(server.uri_for("product"), redis_url, DATABASE, driver) as stores:
        scenario = await create_topic_scenario(stores)
        message = await scenario.post()
        assert await stores.messages.get(message.key) == message
    await mongo["messages"].drop_index("source_1")
    settings = Settings(
        mongodb_uri=server.uri_for("product"), redis_url=redis_url, database=DATABASE, mongo_driver=driver
    )
    reports: list[MigrationProgress] = []
    await migrate_data(settings, reports.append)
    assert [each.title for each in reports] == ["build the indexes source_1 of messages"]


async def test_documented_rights_suffice_to_end_orphans(server: SecuredMongod, mongo: Mongo) -> None:
    command = [sys.executable, "-c", CRASH_IN_TRANSACTION, server.uri_for("product"), DATABASE]
    await asyncio.to_thread(subprocess.run, command, check=True)
    await mongo.transact(lambda session: increment(mongo, session), deadline_s=RELEASE_DEADLINE_S)
    assert await counter_value(mongo) == 1


async def test_slow_transaction_with_documented_rights_is_not_ended(server: SecuredMongod, mongo: Mongo) -> None:
    attempts, locked = [], asyncio.Event()

    async def slow_work(session: Session) -> None:
        attempts.append(1)
        await increment(mongo, session)
        locked.set()
        await asyncio.sleep(3)

    slow = asyncio.create_task(mongo.transact(slow_work))
    await locked.wait()
    await mongo.transact(lambda session: increment(mongo, session), deadline_s=RELEASE_DEADLINE_S)
    await slow
    assert (len(attempts), await counter_value(mongo)) == (1, 2)
