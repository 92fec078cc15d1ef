"""Connections that wait for a network: used once, by the session that has begun them, within 10 minutes."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from storage.ids import UserKey
from storage.mongo import Document
from storage.publishing.credentials.connections import (
    LIFETIME_S,
    ConnectionNotPending,
    ConnectionOwner,
    PendingConnection,
)
from storage.publishing.networks import Network
from tests.storage.publishing.scenario import PublishingScenario

pytestmark = pytest.mark.anyio

PENDING = PendingConnection(Network.MASTODON, "Ours", "https://social.example", None, "verifier", "id", "app-secret")


def owner(scenario: PublishingScenario, session: str = "session") -> ConnectionOwner:
    return ConnectionOwner(scenario.ann.key, session)


async def stored(scenario: PublishingScenario) -> list[Document]:
    return await scenario.stores.mongo.find("account_connections", {"org": scenario.organization_id})


@pytest.mark.parametrize(
    "pending",
    [PENDING, replace(PENDING, network=Network.X, base_url=None, account_id="account", client_secret=None)],
)
async def test_connection_is_returned_once(scenario: PublishingScenario, pending: PendingConnection) -> None:
    store = scenario.stores.account_connections
    state, _ = await store.begin(owner(scenario), pending)
    assert await store.take(owner(scenario), state) == pending
    with pytest.raises(ConnectionNotPending) as refused:
        await store.take(owner(scenario), state)
    assert not refused.value.is_foreign
    assert await stored(scenario) == []


async def test_concurrent_answers_use_a_state_once(scenario: PublishingScenario) -> None:
    store = scenario.stores.account_connections
    state, _ = await store.begin(owner(scenario), PENDING)
    results = await asyncio.gather(*[store.take(owner(scenario), state) for _ in range(8)], return_exceptions=True)
    assert [each for each in results if not isinstance(each, ConnectionNotPending)] == [PENDING]


async def test_state_of_others_is_refused_and_stays(scenario: PublishingScenario) -> None:
    store = scenario.stores.account_connections
    state, _ = await store.begin(owner(scenario), PENDING)
    strangers = [
        owner(scenario, "other session"),
        ConnectionOwner(UserKey(scenario.organization_id, "ben"), "session"),
        ConnectionOwner(UserKey("elsewhere", scenario.ann.id), "session"),
    ]
    for stranger in strangers:
        with pytest.raises(ConnectionNotPending) as refused:
            await store.take(stranger, state)
        assert refused.value.is_foreign
    assert await store.take(owner(scenario), state) == PENDING


async def test_connection_of_a_token_belongs_to_the_person(scenario: PublishingScenario) -> None:
    store = scenario.stores.account_connections
    state, _ = await store.begin(ConnectionOwner(scenario.ann.key, None), PENDING)
    with pytest.raises(ConnectionNotPending) as refused:
        await store.take(ConnectionOwner(UserKey(scenario.organization_id, "ben"), "session"), state)
    assert refused.value.is_foreign
    assert await store.take(owner(scenario), state) == PENDING


async def test_late_state_is_refused(scenario: PublishingScenario) -> None:
    store = scenario.stores.account_connections
    state, expires_at = await store.begin(owner(scenario), PENDING)
    assert timedelta() < expires_at - await scenario.now() <= timedelta(seconds=LIFETIME_S)
    change = {"$set": {"expires_at": await scenario.now()}}
    await scenario.stores.mongo["account_connections"].update_many({"org": scenario.organization_id}, change)
    with pytest.raises(ConnectionNotPending) as refused:
        await store.take(owner(scenario), state)
    assert not refused.value.is_foreign


async def test_stored_connection_shows_no_secrets(scenario: PublishingScenario) -> None:
    state, _ = await scenario.stores.account_connections.begin(owner(scenario), PENDING)
    (document,) = await stored(scenario)
    for secret in (state, "verifier", "app-secret"):
        assert secret not in repr(document)
        assert secret not in repr(PENDING)
    await scenario.stores.account_connections.take(owner(scenario), state)


async def test_secrets_of_another_connection_do_not_open(scenario: PublishingScenario) -> None:
    store, connections = scenario.stores.account_connections, scenario.stores.mongo["account_connections"]
    state, _ = await store.begin(owner(scenario), PENDING)
    (document,) = await stored(scenario)
    other_state, _ = await store.begin(owner(scenario), PENDING)
    await connections.update_many({"_id": {"$ne": document["_id"]}}, {"$set": {"sealed": document["sealed"]}})
    with pytest.raises(ConnectionNotPending):
        await store.take(owner(scenario), other_state)
    assert await store.take(owner(scenario), state) == PENDING
