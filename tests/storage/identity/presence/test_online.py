"""People are online while a process renews them, and vanish with the process or with Redis."""

import pytest

from server.embedded import Valkey
from storage.identity.presence import online
from storage.ids import UserKey
from storage.stores import Stores
from tests.storage.topic_scenario import OpenStores
from tests.waiting import until

pytestmark = pytest.mark.anyio

ANN, BOB, OTHER_ANN = UserKey("acme", "ann"), UserKey("acme", "bob"), UserKey("elsewhere", "ann")


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online, "RENEW_EVERY_S", 0.1)
    monkeypatch.setattr(online, "ONLINE_S", 1.0)


async def until_online(stores: Stores, *expected: str) -> None:
    """Waits until exactly these people of the organization are online."""

    async def are_online() -> bool:
        return await stores.online.online_among("acme", ["ann", "bob"]) == set(expected)

    await until(are_online)


async def test_person_is_online_until_the_last_socket_closes(open_process: OpenStores) -> None:
    async with open_process() as one, open_process() as other:
        one.online.connect(ANN)
        other.online.connect(ANN)
        other.online.connect(OTHER_ANN)
        await until_online(other, "ann")
        one.online.disconnect(ANN)
        other.online.connect(BOB)
        await until_online(one, "ann", "bob")
        other.online.disconnect(ANN)
        await until_online(one, "bob")
        assert await one.online.online_among("elsewhere", ["ann", "bob"]) == {"ann"}


async def test_people_vanish_with_their_process(open_process: OpenStores) -> None:
    async with open_process() as reader:
        async with open_process() as stopping:
            stopping.online.connect(ANN)
            await until_online(reader, "ann")
        await until_online(reader)


async def test_presence_is_unknown_without_redis_and_returns(open_process: OpenStores, own_valkey: Valkey) -> None:
    async with open_process(own_valkey.url) as stores:
        stores.online.connect(ANN)
        await until_online(stores, "ann")
        await own_valkey.stop()
        assert await stores.online.online_among("acme", ["ann"]) is None
        await own_valkey.start()
        await until_online(stores, "ann")
