"""The search of the log: it finds what is committed late, and repeats what a killed worker has not finished."""

import asyncio
from datetime import datetime, timedelta

import pytest

from jobs.webhooks.discovery import LOCK, find_webhook_events
from storage.webhooks import discovery
from storage.webhooks.discovery import SEARCH_ID, SEARCHES, WebhookReader
from tests.jobs.webhooks.conftest import WebhookScenario
from tests.resolvers.people import until_outbox_is_empty
from tests.twins.event_receiver import EventReceiver
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def settled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All commits of a test have ended when it searches."""
    monkeypatch.setattr(discovery, "SETTLED_S", 0.0)


async def test_event_with_earlier_time_is_found_by_settled_search(webhooks: WebhookScenario) -> None:
    """An event whose commit takes long becomes visible after later ones were found."""
    receiver, chat, search = await webhooks.receiver(), webhooks.chat, webhooks.stores.webhook_discovery
    await webhooks.create(receiver)
    other = await chat.ann.create_topic(chat.community)
    await until_outbox_is_empty(webhooks.stores)
    readers = await search.readers()
    started = await search.settled_at(readers)
    await chat.ann.post(chat.topic, "Later")
    new_since = await search.search_new(readers, started)
    await chat.ann.post(other, "Late")
    late = {"_id.s": f"topic:{other}", "kind": "MessagePosted"}
    await webhooks.stores.mongo["events"].update_many(late, {"$set": {"at": new_since - timedelta(milliseconds=1)}})
    await search.search_new(readers, new_since)
    while await webhooks.send():
        pass
    assert receiver.texts() == ["Later"]
    await search.search_settled(readers)
    while await webhooks.send():
        pass
    assert receiver.texts() == ["Later", "Late"]


async def test_search_continues_where_everything_was_found(webhooks: WebhookScenario) -> None:
    receiver, chat, search = await webhooks.receiver(), webhooks.chat, webhooks.stores.webhook_discovery
    await webhooks.create(receiver)
    readers = await search.readers()
    await chat.ann.post(chat.topic, "Hello")
    end = await search.search_settled(readers)
    (stored,) = await webhooks.stores.mongo.find(SEARCHES, {"_id": SEARCH_ID})
    assert stored["at"] == end == await search.settled_at(readers)
    while await webhooks.send():
        pass
    assert receiver.texts() == ["Hello"]
    await search.search_settled(readers)
    assert await webhooks.send() == 0


async def test_another_worker_searches_after_the_first(webhooks: WebhookScenario) -> None:
    receiver, chat, stores = await webhooks.receiver(), webhooks.chat, webhooks.stores
    await webhooks.create(receiver)
    first, second = [asyncio.create_task(find_webhook_events(webhooks.jobs)) for _ in range(2)]
    try:
        await chat.ann.post(chat.topic, "One")
        await until(lambda: _is_found(webhooks))
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await chat.ann.post(chat.topic, "Two")
        while len(receiver.texts()) < 2:
            await webhooks.send()
        assert receiver.texts() == ["One", "Two"]
        assert (await stores.locks.remaining_leases_s([LOCK])).keys() <= {LOCK}
    finally:
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)


async def _is_found(webhooks: WebhookScenario) -> bool:
    return bool(await webhooks.stores.mongo["webhooks"].count_documents({"due": {"$exists": True}}))


async def test_pages_of_the_log_are_all_searched(webhooks: WebhookScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "PAGE_SIZE", 3)
    receiver, chat = await webhooks.receiver(), webhooks.chat
    await webhooks.create(receiver)
    topics = [await chat.ann.create_topic(chat.community) for _ in range(12)]
    for topic in topics:
        await chat.ann.post(topic, topic)
    await webhooks.deliver()
    assert sorted(receiver.texts()) == sorted(topics)


async def test_webhooks_of_a_long_search_get_their_events(
    webhooks: WebhookScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A webhook is created, and a message posted, while the first search still reads the log page by page."""
    first, late, chat = await webhooks.receiver(), await webhooks.receiver(), webhooks.chat
    await webhooks.create(first)
    await chat.ann.post(chat.topic, "Before")
    search, reached, release = webhooks.stores.webhook_discovery.search_new, asyncio.Event(), asyncio.Event()

    async def held(readers: list[WebhookReader], after: datetime) -> datetime:
        if not reached.is_set():
            reached.set()
            await release.wait()
            # What is found now is not found for the webhook that the search does not know.
            await until_outbox_is_empty(webhooks.stores)
        return await search(readers, after)

    monkeypatch.setattr(webhooks.stores.webhook_discovery, "search_new", held)
    task = asyncio.create_task(find_webhook_events(webhooks.jobs))
    try:
        await reached.wait()
        await webhooks.create(late)
        await chat.ann.post(chat.topic, "Meanwhile")
        release.set()
        await until(lambda: _sends(webhooks, late, "Meanwhile"))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert first.texts() == ["Before", "Meanwhile"]


async def _sends(webhooks: WebhookScenario, receiver: EventReceiver, text: str) -> bool:
    await webhooks.send()
    return receiver.texts() == [text]


async def test_search_for_a_replay_renews_the_claim(webhooks: WebhookScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "PAGE_SIZE", 1)
    receiver, chat = await webhooks.receiver(), webhooks.chat
    id_ = await webhooks.create(receiver)
    for text in ("One", "Two"):
        await chat.ann.post(chat.topic, text)
    renewed = []

    async def renew() -> None:
        renewed.append(await webhooks.stores.webhook_claims.renew(claimed))

    await webhooks.find()
    (claimed,) = await webhooks.stores.webhook_claims.claim(1)
    await webhooks.stores.webhook_discovery.search_for(claimed.webhook, claimed.start, False, renew)
    assert claimed.id == id_
    assert len(renewed) > 1
    assert all(renewed)
