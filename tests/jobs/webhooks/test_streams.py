"""The log keeps events that wait for webhooks, for three days, and gets posts although nobody is subscribed."""

from datetime import timedelta

import pytest

from jobs.streams import prune_events
from jobs.webhooks.streams import MARGIN_S, keep_local_feeds_open, kept_for_s
from storage.streams.log import KEPT_S
from storage.webhooks.discovery import SEARCH_ID, SEARCHES
from tests.jobs.webhooks.conftest import DISABLE, WebhookScenario

pytestmark = pytest.mark.anyio

DAY_S = 86_400.0


async def age_events(webhooks: WebhookScenario, days: float) -> None:
    """Makes all events, positions and searches older."""
    mongo, milliseconds = webhooks.stores.mongo, int(days * DAY_S * 1000)
    for collection, field in (("events", "at"), ("webhook_positions", "waiting_since"), ("webhooks", "start")):
        older = [{"$set": {field: {"$subtract": [f"${field}", milliseconds]}}}]
        await mongo[collection].update_many({field: {"$exists": True}}, older)


async def test_waiting_events_are_kept_for_three_days(webhooks: WebhookScenario) -> None:
    receiver, chat = await webhooks.receiver(), webhooks.chat
    await webhooks.create(receiver)
    receiver.status = 500
    await chat.ann.post(chat.topic, "Hello")
    await webhooks.deliver()
    await age_events(webhooks, 2.9)
    assert await prune_events(webhooks.jobs) == 0
    receiver.status = 200
    await webhooks.end_pauses()
    await webhooks.send()
    assert receiver.texts() == ["Hello"]


async def test_failed_tries_do_not_make_waiting_events_younger(webhooks: WebhookScenario) -> None:
    """The log was searched up to now, so that only the position keeps the events."""
    receiver, chat, search = await webhooks.receiver(), webhooks.chat, webhooks.stores.webhook_discovery
    await webhooks.create(receiver)
    receiver.status = 500
    await chat.ann.post(chat.topic, "Hello")
    await webhooks.deliver()
    await age_events(webhooks, 2.5)
    await webhooks.end_pauses()
    await webhooks.send()
    await webhooks.stores.mongo[SEARCHES].update_one(
        {"_id": SEARCH_ID}, {"$set": {"at": await webhooks.stores.mongo.now()}}, upsert=True
    )
    assert await search.settled_at(await search.readers()) > await webhooks.stores.mongo.now() - timedelta(hours=1)
    assert await prune_events(webhooks.jobs) == 0
    receiver.status = 200
    await webhooks.end_pauses()
    await webhooks.send()
    assert receiver.texts() == ["Hello"]


async def test_log_keeps_a_day_without_waiting_events(webhooks: WebhookScenario) -> None:
    receiver, chat = await webhooks.receiver(), webhooks.chat
    assert await kept_for_s(webhooks.jobs) == KEPT_S
    id_ = await webhooks.create(receiver)
    receiver.status = 500
    await chat.ann.post(chat.topic, "Hello")
    await webhooks.deliver()
    await age_events(webhooks, 30)
    assert await kept_for_s(webhooks.jobs) == KEPT_S + webhooks.jobs.webhook_retry_s + MARGIN_S
    await webhooks.ada.run(DISABLE, id=id_)
    assert await kept_for_s(webhooks.jobs) == KEPT_S
    assert await prune_events(webhooks.jobs) > 0


async def test_events_are_kept_until_they_were_searched(webhooks: WebhookScenario) -> None:
    """Workers that were away for two days search the log before it is pruned."""
    receiver, chat = await webhooks.receiver(), webhooks.chat
    await webhooks.create(receiver)
    await chat.ann.post(chat.topic, "Hello")
    await age_events(webhooks, 2)
    assert await prune_events(webhooks.jobs) == 0
    await webhooks.deliver()
    assert receiver.texts() == ["Hello"]


async def test_posts_are_sent_after_a_day_without_subscribers(webhooks: WebhookScenario) -> None:
    receiver, ann, mongo = await webhooks.receiver(), webhooks.chat.ann, webhooks.stores.mongo
    await webhooks.create(receiver, "PostArrived")
    day_ago = await mongo.now() - timedelta(hours=25)
    await mongo["streams"].update_one({"_id": "local:acme"}, {"$set": {"subscribed_at": day_ago}})
    await keep_local_feeds_open(webhooks.jobs)
    await mongo["streams"].update_one(
        {"_id": "local:acme", "subscribed_at": {"$gt": day_ago}}, {"$set": {"subscribed_at": day_ago}}
    )
    await ann.create_post("Still here")
    await webhooks.deliver()
    assert [body["data"]["post"]["text"] for body in receiver.events()] == ["Still here"]
