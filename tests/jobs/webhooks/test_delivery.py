"""Failures: requests are repeated in order, slow receivers delay no other, and what fails for too long is disabled."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from jobs.webhooks import delivery, passes
from jobs.webhooks.delivery import deliver, retry_pause_s, send_webhook_events
from jobs.webhooks.discovery import find_webhook_events
from jobs.webhooks.progress import Progress
from server.webhook_payloads import WebhookPayloads
from storage.errors import Unavailable
from storage.streams.log import Stream, StreamPosition
from storage.webhooks.positions import Move
from tests.jobs.webhooks.conftest import DISABLE, ENABLE, REPLAY, UPDATE, WebhookScenario
from tests.resolvers.people import REACT, Answer
from tests.twins.event_receiver import EventReceiver
from tests.waiting import until

pytestmark = pytest.mark.anyio

THREE_DAYS_S = 259_200.0


async def test_failed_event_is_repeated_before_later_ones(webhooks: WebhookScenario) -> None:
    receiver, chat = await webhooks.receiver(), webhooks.chat
    id_ = await webhooks.create(receiver)
    receiver.status = 500
    other = await chat.ann.create_topic(chat.community, "Other")
    for topic, text in ((chat.topic, "One"), (other, "Two"), (chat.topic, "Three")):
        await chat.ann.post(topic, text)
    await webhooks.deliver()
    failing = await webhooks.webhook(id_)
    assert failing["nextTryAt"] > failing["failingSince"]
    assert failing["lastError"] == "HTTP 500 no"
    receiver.status = 200
    assert await webhooks.send() == 0
    await webhooks.end_pauses()
    await webhooks.deliver()
    texts = receiver.texts()
    assert sorted(texts) == ["One", "Three", "Two"]
    assert texts.index("One") < texts.index("Three")
    assert set(receiver.refused) <= {message_id for message_id, _ in receiver.messages}
    assert (await webhooks.webhook(id_))["failingSince"] is None
    outcomes = [each["outcome"] for each in await webhooks.deliveries(id_)]
    assert (outcomes[0], outcomes[-1], outcomes.count("DELIVERED")) == ("DELIVERED", "FAILED", 3)


@pytest.mark.parametrize(
    ("status", "headers", "reason"), [(410, {}, "GONE"), (500, {}, None), (302, {"Location": "/events"}, None)]
)
async def test_answer_decides_whether_webhook_is_disabled(
    webhooks: WebhookScenario, status: int, headers: dict[str, str], reason: str | None
) -> None:
    receiver, chat = await webhooks.receiver(), webhooks.chat
    id_ = await webhooks.create(receiver)
    receiver.status, receiver.headers = status, headers
    await chat.ann.post(chat.topic, "Hello")
    await webhooks.deliver()
    assert (await webhooks.webhook(id_))["disabledReason"] == reason
    (tried,) = await webhooks.deliveries(id_)
    assert (tried["status"], tried["outcome"]) == (status, "FAILED")
    assert '"text":"Hello"' in tried["request"]


async def test_webhook_that_fails_too_long_is_disabled_and_resumes(webhooks: WebhookScenario) -> None:
    impatient, receiver, chat = webhooks.limited(0.05), await webhooks.receiver(), webhooks.chat
    id_ = await impatient.create(receiver)
    receiver.cuts = True
    await chat.ann.post(chat.topic, "One")
    await impatient.find()
    while (await impatient.webhook(id_))["disabledAt"] is None:
        await impatient.send()
    assert (await impatient.webhook(id_))["disabledReason"] == "FAILING"
    await chat.ann.post(chat.topic, "Two")
    await impatient.find()
    assert await impatient.send() == 0
    receiver.cuts = False
    enabled = await webhooks.ada.do(ENABLE, id=id_)
    assert (enabled["disabledAt"], enabled["lastError"]) == (None, None)
    await impatient.deliver()
    assert receiver.texts() == ["One", "Two"]


async def test_webhook_of_ended_key_is_disabled(webhooks: WebhookScenario) -> None:
    receiver, chat = await webhooks.receiver(), webhooks.chat
    id_ = await webhooks.create(receiver)
    await webhooks.ada.run("mutation ($id: ID!) { revokeServiceKey(serviceKeyId: $id) { id } }", id=webhooks.key)
    await chat.ann.post(chat.topic, "Hello")
    await webhooks.deliver()
    assert (await webhooks.webhook(id_))["disabledReason"] == "KEY_ENDED"
    await webhooks.ada.run("mutation ($id: ID!) { testWebhook(webhookId: $id) { id } }", id=id_)
    await webhooks.send()
    (tried,) = await webhooks.deliveries(id_)
    assert (tried["outcome"], tried["answer"]) == ("FAILED", "The service key has ended.")
    assert receiver.messages == []


async def send_without_recording(webhooks: WebhookScenario, receiver: EventReceiver, texts: list[str]) -> None:
    """Sends what is due, as a worker that is killed when the receiver has accepted the texts."""
    (claimed,) = await webhooks.stores.webhook_claims.claim(1)
    assert webhooks.jobs.webhooks is not None
    work = passes.WebhookPass(webhooks.jobs, webhooks.jobs.webhooks, claimed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Progress, "record", lambda _: asyncio.Event().wait())
        task = asyncio.create_task(work.run())
        await until(lambda: receiver.texts() == texts)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_killed_worker_loses_no_event(webhooks: WebhookScenario) -> None:
    """The worker dies after the receiver has accepted events, and before they are recorded."""
    receiver, chat = await webhooks.receiver(), webhooks.chat
    await webhooks.create(receiver)
    texts = [str(number) for number in range(5)]
    for text in texts:
        await chat.ann.post(chat.topic, text)
    await webhooks.find()
    await send_without_recording(webhooks, receiver, texts)
    assert await webhooks.send() == 0
    await webhooks.end_pauses()
    await webhooks.deliver()
    assert receiver.texts() == texts
    assert len(receiver.messages) == 2 * len(texts)


async def test_killed_worker_leaves_no_failure_that_has_ended(webhooks: WebhookScenario) -> None:
    """Otherwise receivers that refuse something now and then would be disabled after three days."""
    receiver, chat = await webhooks.receiver(), webhooks.chat
    id_ = await webhooks.create(receiver)
    receiver.status = 500
    for text in ("Refused", "Next"):
        await chat.ann.post(chat.topic, text)
    await webhooks.deliver()
    assert (await webhooks.webhook(id_))["failingSince"] is not None
    receiver.status = 200
    await webhooks.end_pauses()
    await send_without_recording(webhooks, receiver, ["Refused", "Next"])
    webhook = await webhooks.webhook(id_)
    assert (webhook["failingSince"], webhook["lastError"]) == (None, None)


async def test_change_of_filter_loses_no_later_event(webhooks: WebhookScenario) -> None:
    """The worker has claimed the webhook before the change, and reads an event that was posted after it."""
    receiver, chat = await webhooks.receiver(), webhooks.chat
    other = await chat.ann.create_topic(chat.community, "Other")
    id_ = await webhooks.create(receiver, "MessagePosted", topicIds=[chat.topic])
    first = await chat.ann.post(chat.topic, "First")
    await webhooks.find()
    (claimed,) = await webhooks.stores.webhook_claims.claim(1)
    wanted = {"eventTypes": ["MessagePosted", "ReactionsChanged"], "topicIds": [chat.topic, other]}
    await webhooks.ada.run(UPDATE, input={"webhookId": id_, **wanted})
    await chat.bob.run(REACT, id=first["id"], emoji="👍")
    assert webhooks.jobs.webhooks is not None
    await deliver(webhooks.jobs, webhooks.jobs.webhooks, claimed)
    await webhooks.deliver()
    assert [body["type"] for body in receiver.events()] == ["MessagePosted", "ReactionsChanged"]


async def test_replay_during_a_pass_is_sent_at_once(webhooks: WebhookScenario) -> None:
    """A claim that the replay has ended is not waited for."""
    receiver, chat = await webhooks.receiver(), webhooks.chat
    id_ = await webhooks.create(receiver)
    for text in ("One", "Two"):
        await chat.ann.post(chat.topic, text)
    await webhooks.deliver()
    await webhooks.stores.webhook_claims.make_due([id_])
    (claimed,) = await webhooks.stores.webhook_claims.claim(1)
    await webhooks.ada.run(REPLAY, input={"webhookId": id_, "cursor": receiver.messages[0][1]["data"]["cursor"]})
    assert not await webhooks.stores.webhook_claims.renew(claimed)
    assert await webhooks.send() == 1
    assert len(receiver.messages) == 3


async def test_error_of_this_server_is_followed_by_a_pause(webhooks: WebhookScenario) -> None:
    receiver, chat = await webhooks.receiver(), webhooks.chat
    id_ = await webhooks.create(receiver)
    await chat.ann.post(chat.topic, "Hello")
    await webhooks.find()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WebhookPayloads, "render", unavailable)
        assert await webhooks.send() == 1
    webhook = await webhooks.webhook(id_)
    assert (webhook["failingSince"], webhook["lastError"]) == (None, None)
    assert await webhooks.send() == 0
    await webhooks.end_pauses()
    await webhooks.send()
    assert receiver.texts() == ["Hello"]


async def unavailable(*_: object) -> list[bytes | None]:
    raise Unavailable("The event cannot be written.")


async def test_worker_whose_claim_ended_moves_no_position(webhooks: WebhookScenario) -> None:
    receiver, chat = await webhooks.receiver(), webhooks.chat
    id_ = await webhooks.create(receiver)
    for text in ("One", "Two"):
        await chat.ann.post(chat.topic, text)
    await webhooks.deliver()
    stream = Stream("topic", chat.topic)
    head = await webhooks.stores.events.head(stream)
    now, positions = await webhooks.stores.mongo.now(), webhooks.stores.webhook_positions
    old = StreamPosition(head.epoch, head.n - 2)
    move = Move(stream, old, StreamPosition(head.epoch, head.n - 1), now)
    assert not await positions.advance(id_, [move])
    claimed = await webhooks.stores.webhook_claims.claim(1)
    assert claimed == []


async def test_claim_ends_when_webhook_is_disabled(webhooks: WebhookScenario) -> None:
    receiver, chat = await webhooks.receiver(), webhooks.chat
    id_ = await webhooks.create(receiver)
    await chat.ann.post(chat.topic, "Hello")
    await webhooks.find()
    (claimed,) = await webhooks.stores.webhook_claims.claim(1)
    await webhooks.ada.run(DISABLE, id=id_)
    assert not await webhooks.stores.webhook_claims.renew(claimed)
    assert webhooks.jobs.webhooks is not None
    await deliver(webhooks.jobs, webhooks.jobs.webhooks, claimed)
    assert (await webhooks.webhook(id_))["disabledReason"] == "REQUESTED"


async def test_slow_receiver_delays_no_other(webhooks: WebhookScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "POLL_S", 0.01)
    slow, quick, chat = await webhooks.receiver(), await webhooks.receiver(), webhooks.chat
    slow.delay_s = 3600.0
    await webhooks.create(slow)
    await webhooks.create(quick)
    loops = [asyncio.create_task(each(webhooks.jobs)) for each in (find_webhook_events, send_webhook_events)]
    try:
        for number in range(30):
            await chat.ann.post(chat.topic, str(number))
        await until(lambda: len(quick.texts()) == 30)
        assert slow.messages == []
    finally:
        for task in loops:
            task.cancel()
        await asyncio.gather(*loops, return_exceptions=True)


async def test_many_workers_send_each_event_once_in_order(
    webhooks: WebhookScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "POLL_S", 0.01)
    receivers, chat = [await webhooks.receiver() for _ in range(3)], webhooks.chat
    for receiver in receivers:
        await webhooks.create(receiver)
    loops = [asyncio.create_task(find_webhook_events(webhooks.jobs)) for _ in range(2)]
    loops += [asyncio.create_task(send_webhook_events(replace(webhooks.jobs))) for _ in range(4)]
    texts = [str(number) for number in range(60)]
    try:
        for text in texts:
            await chat.ann.post(chat.topic, text)
        await until(lambda: all(len(receiver.texts()) == len(texts) for receiver in receivers))
    finally:
        for task in loops:
            task.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
    for receiver in receivers:
        assert receiver.texts() == texts
        assert len(receiver.messages) == len(texts)


def test_pauses_grow_to_an_hour_of_three_days() -> None:
    assert retry_pause_s(0.0, THREE_DAYS_S) == 1.0
    assert retry_pause_s(100.0, THREE_DAYS_S) == 50.0
    assert retry_pause_s(86_400.0, THREE_DAYS_S) == 3600.0
    assert retry_pause_s(1.0, THREE_DAYS_S, 120.0) == 120.0
    assert retry_pause_s(1.0, THREE_DAYS_S, 1e9) == 3600.0
    assert retry_pause_s(1.0, 36.0) == 0.5


async def test_refused_event_disables_webhook_although_others_succeed(webhooks: WebhookScenario) -> None:
    """Other events succeed during each try of the refused one, so that the webhook as a whole is not down."""
    impatient, receiver, chat = webhooks.limited(1.0), await webhooks.receiver(), webhooks.chat
    receiver.refusal_delay_s = 0.1
    id_ = await impatient.create(receiver)
    refused = await chat.ann.post(chat.topic, "Refused")
    receiver.refuses = lambda body: body["data"]["message"]["id"] == refused["id"]
    other = await chat.ann.create_topic(chat.community, "Other")
    sent = 0
    while (await impatient.webhook(id_))["disabledAt"] is None:
        await chat.ann.post(other, str(sent))
        sent += 1
        await impatient.find()
        await impatient.send()
    assert (await impatient.webhook(id_))["disabledReason"] == "FAILING"
    assert len(receiver.texts()) > 1
    assert "Refused" not in receiver.texts()


async def test_receiver_that_refuses_other_events_stays_enabled(webhooks: WebhookScenario) -> None:
    impatient, receiver, chat = webhooks.limited(0.05), await webhooks.receiver(), webhooks.chat
    id_ = await impatient.create(receiver)
    seen: set[str] = set()

    def is_new(body: Answer) -> bool:
        is_first = body["data"]["cursor"] not in seen
        seen.add(body["data"]["cursor"])
        return is_first

    receiver.refuses = is_new
    texts = [str(number) for number in range(10)]
    for text in texts:
        await chat.ann.post(chat.topic, text)
    await impatient.find()
    await until(lambda: _sent(impatient, receiver, len(texts)))
    assert receiver.texts() == texts
    assert (await impatient.webhook(id_))["disabledAt"] is None


async def _sent(webhooks: WebhookScenario, receiver: EventReceiver, count: int) -> bool:
    await webhooks.send()
    return len(receiver.texts()) == count
