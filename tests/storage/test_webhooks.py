"""Positions, claims and the log of deliveries of webhooks, without workers."""

import asyncio
from datetime import datetime

import pytest

from storage.errors import Conflict, NotFound
from storage.identity.audit import command_line_actor
from storage.secrets.credentials import CredentialCipher
from storage.stores import Stores
from storage.streams.log import Stream, StreamPosition, reset_stream
from storage.webhooks import deliveries
from storage.webhooks.claims import WebhookClaims
from storage.webhooks.deliveries import DeliveryResult, SentMessage
from storage.webhooks.event_types import EVENT_TYPES
from storage.webhooks.positions import FoundEvents, Move, StreamStart
from storage.webhooks.records import DeliveryOutcome, IssuedWebhook, NewWebhook, WebhookFilter
from storage.webhooks.store import WebhookManager
from tests.databases import CREDENTIAL_KEYS

pytestmark = pytest.mark.anyio

STREAM = Stream("local", "acme")
MANAGER = WebhookManager(command_line_actor("acme"))


async def create(stores: Stores) -> IssuedWebhook:
    new = NewWebhook("Warehouse", "https://example.org", "key", WebhookFilter(sorted(EVENT_TYPES)))
    return await stores.webhooks.create(MANAGER, new, None)


async def set_head(stores: Stores, n: int) -> str:
    """Lets the stream have `n` events, of which the log has none. Returns its epoch."""
    head = await stores.events.head(STREAM)
    await stores.mongo["streams"].update_one({"_id": STREAM.name}, {"$set": {"n": n}})
    return head.epoch


async def mark(stores: Stores, last: int, at: datetime) -> bool:
    return await stores.webhook_positions.mark({StreamStart("w", at): {STREAM: FoundEvents(last, at)}}) == ["w"]


async def advance(stores: Stores, old: StreamPosition, new: StreamPosition, at: datetime) -> bool:
    return await stores.webhook_positions.advance("w", [Move(STREAM, old, new, at)])


def sent(message_id: str) -> tuple[SentMessage, DeliveryResult]:
    message = SentMessage(message_id, "MessagePosted", b"{}", STREAM, 1)
    return message, DeliveryResult(DeliveryOutcome.DELIVERED, 200, "thanks", 1)


async def test_found_events_are_marked_once(stores: Stores) -> None:
    at, positions = await stores.mongo.now(), stores.webhook_positions
    epoch = await set_head(stores, 3)
    assert await mark(stores, 2, at)
    assert await mark(stores, 1, at)
    (waiting,) = await positions.waiting("w")
    assert (waiting.stream, waiting.position) == (STREAM, StreamPosition(epoch, 0))
    assert await positions.oldest_waiting(["w"]) == at
    assert await advance(stores, waiting.position, StreamPosition(epoch, 2), at)
    assert await positions.waiting("w") == []
    assert not await mark(stores, 2, at)
    assert await mark(stores, 3, at)
    assert len(await positions.waiting("w")) == 1


async def test_position_is_moved_by_one_of_two_workers(stores: Stores) -> None:
    at, positions = await stores.mongo.now(), stores.webhook_positions
    epoch = await set_head(stores, 3)
    await mark(stores, 3, at)
    start, first = StreamPosition(epoch, 0), StreamPosition(epoch, 2)
    assert await advance(stores, start, first, at)
    assert not await advance(stores, start, StreamPosition(epoch, 3), at)
    assert (await positions.waiting("w"))[0].position == first


async def test_stream_that_was_created_again_waits(stores: Stores) -> None:
    """Its numbers start again, so that the last number that was found before says nothing."""
    at, positions = await stores.mongo.now(), stores.webhook_positions
    old_epoch = await set_head(stores, 500)
    await mark(stores, 500, at)
    await advance(stores, StreamPosition(old_epoch, 0), StreamPosition(old_epoch, 500), at)
    await stores.mongo.transact(lambda session: reset_stream(stores.mongo, STREAM, session))
    epoch = await set_head(stores, 2)
    assert await mark(stores, 2, at)
    (waiting,) = await positions.waiting("w")
    assert waiting.position == StreamPosition(old_epoch, 500)
    assert await advance(stores, waiting.position, StreamPosition(epoch, 2), at)
    assert await positions.waiting("w") == []


async def test_mark_during_a_claim_makes_webhook_due_again(stores: Stores) -> None:
    id_ = (await create(stores)).webhook.id
    claims = stores.webhook_claims
    await claims.make_due([id_])
    (claimed,) = await claims.claim(10)
    await claims.make_due([id_])
    await claims.finish(claimed, is_drained=True)
    (again,) = await claims.claim(10)
    await claims.finish(again, is_drained=True)
    assert await claims.claim(10) == []


async def test_ended_claim_changes_nothing(stores: Stores) -> None:
    id_ = (await create(stores)).webhook.id
    claims = stores.webhook_claims
    await claims.make_due([id_])
    (first,) = await claims.claim(10)
    await stores.mongo["webhooks"].update_one({"_id": id_}, {"$currentDate": {"due": True}})
    (second,) = await claims.claim(10)
    assert not await claims.renew(first)
    await claims.fail(first, "m", "late", 3600.0)
    await claims.finish(first, is_drained=True)
    assert await claims.renew(second)
    webhook = await stores.webhooks.get(MANAGER, id_)
    assert webhook.last_error is None


async def test_webhooks_of_dead_worker_are_claimed_at_once(stores: Stores) -> None:
    claims, dead = stores.webhook_claims, WebhookClaims(stores.mongo, CredentialCipher(CREDENTIAL_KEYS), "dead")
    await claims.make_due([(await create(stores)).webhook.id for _ in range(3)])
    lost, failed = await dead.claim(2)
    (kept,) = await claims.claim(2)
    # The next try of the second webhook is planned, and no claim holds it.
    await dead.fail(failed, "m", "busy", 30.0)
    assert await claims.release_of("dead") == 1
    (again,) = await claims.claim(3)
    assert again.id == lost.id
    assert not await dead.renew(lost)
    assert await claims.renew(again)
    assert await claims.renew(kept)
    assert await claims.release_of("dead") == 0


async def test_secret_that_cannot_be_decrypted_is_left_out(stores: Stores) -> None:
    id_ = (await create(stores)).webhook.id
    await stores.mongo["webhooks"].update_one({"_id": id_}, {"$set": {"secrets.0.secret.version": "lost"}})
    await stores.webhook_claims.make_due([id_])
    (claimed,) = await stores.webhook_claims.claim(10)
    assert claimed.secrets == []


async def test_requested_deliveries_have_a_limit(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "MAX_REQUESTED", 2)
    webhook, log = (await create(stores)).webhook, stores.webhook_deliveries
    for _ in range(2):
        await log.request_test(webhook)
    with pytest.raises(Conflict):
        await log.request_test(webhook)
    assert len(await log.list_deliveries(webhook, None, None, 1)) == 1
    newest, oldest = await log.list_deliveries(webhook, None, None, 10)
    assert await log.list_deliveries(webhook, None, newest.id, 10) == [oldest]
    with pytest.raises(NotFound):
        await log.get("other", newest.id)


async def test_searches_of_many_workers_create_one_position(stores: Stores) -> None:
    at = await stores.mongo.now()
    epoch = await set_head(stores, 20)
    assert all(await asyncio.gather(*(mark(stores, last, at) for last in range(1, 21))))
    (waiting,) = await stores.webhook_positions.waiting("w")
    assert await advance(stores, waiting.position, StreamPosition(epoch, 20), at)
    assert await stores.webhook_positions.waiting("w") == []


async def test_round_of_an_ended_claim_moves_nothing(stores: Stores) -> None:
    at, id_ = await stores.mongo.now(), (await create(stores)).webhook.id
    epoch = await set_head(stores, 2)
    await stores.webhook_positions.mark({StreamStart(id_, at): {STREAM: FoundEvents(2, at)}})
    await stores.webhook_claims.make_due([id_])
    (lost,) = await stores.webhook_claims.claim(10)
    await stores.mongo["webhooks"].update_one({"_id": id_}, {"$currentDate": {"due": True}})
    (kept,) = await stores.webhook_claims.claim(10)
    start, first = StreamPosition(epoch, 0), StreamPosition(epoch, 1)
    rounds, move = stores.webhook_rounds, Move(STREAM, start, first, at)
    assert not await rounds.record(lost, [sent("a")], [move])
    assert [each.position for each in await stores.webhook_positions.waiting(id_)] == [start]
    assert (await stores.webhooks.get(MANAGER, id_)).last_delivered_at is None
    assert await rounds.record(kept, [sent("b")], [move])
    assert [each.position for each in await stores.webhook_positions.waiting(id_)] == [first]
    assert (await stores.webhooks.get(MANAGER, id_)).last_delivered_at is not None
    assert not await rounds.record(kept, [sent("c")], [move])
    logged = await stores.webhook_deliveries.list_deliveries(kept.webhook, None, None, 10)
    assert [each.message_id for each in logged] == ["c", "b", "a"]
