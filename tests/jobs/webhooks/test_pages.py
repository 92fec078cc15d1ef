"""Webhooks of one service key read and write a page together; those of another key see what their key may read."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import pytest

from jobs.webhooks import passes
from jobs.webhooks.delivery import deliver
from jobs.webhooks.pages import EventPages, Page, PageRequest
from server.webhook_payloads import WebhookPayloads
from storage.identity.records import User
from storage.streams.hub import HydratedEvent
from storage.streams.log import Stream
from storage.webhooks.records import ClaimedWebhook
from tests.jobs.webhooks.conftest import WebhookScenario, create_key
from tests.resolvers.chat.test_joining import ADD

pytestmark = pytest.mark.anyio

ONE_KEY = 3


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of events in each call that writes bodies."""
    counts: list[int] = []
    render = WebhookPayloads.render

    async def counted(
        self: WebhookPayloads,
        account: User,
        stream: Stream,
        epoch: str,
        events: Sequence[HydratedEvent],
        job_ids: Sequence[str],
    ) -> list[bytes | None]:
        counts.append(len(events))
        return await render(self, account, stream, epoch, events, job_ids)

    monkeypatch.setattr(WebhookPayloads, "render", counted)
    return counts


async def send_together(webhooks: WebhookScenario) -> list[ClaimedWebhook]:
    """Sends what is due, for all webhooks at the same time."""
    claimed = await webhooks.stores.webhook_claims.claim(100)
    tools = webhooks.jobs.webhooks
    assert tools is not None
    await asyncio.gather(*(deliver(webhooks.jobs, tools, each) for each in claimed))
    return claimed


async def test_webhooks_of_one_key_share_a_page(webhooks: WebhookScenario, written: list[int]) -> None:
    receivers, chat = [await webhooks.receiver() for _ in range(ONE_KEY)], webhooks.chat
    for receiver in receivers:
        await webhooks.create(receiver)
    texts = [str(number) for number in range(5)]
    for text in texts:
        await chat.ann.post(chat.topic, text)
    await webhooks.find()
    assert len(await send_together(webhooks)) == ONE_KEY
    assert [receiver.texts() for receiver in receivers] == [texts] * ONE_KEY
    assert sum(written) < ONE_KEY * len(texts)


async def test_webhook_of_another_key_sees_what_its_key_may(webhooks: WebhookScenario) -> None:
    member, stranger, chat = await webhooks.receiver(), await webhooks.receiver(), webhooks.chat
    private = await chat.ann.create_community(visibility="PRIVATE")
    topic = await chat.ann.create_topic(private)
    await chat.ann.run(ADD, id=private, user=webhooks.key)
    await webhooks.create(member)
    await webhooks.create(stranger, serviceKeyId=await create_key(webhooks.ada, "chat:read"))
    await chat.ann.post(topic, "Among members")
    await webhooks.find()
    assert len(await send_together(webhooks)) == 2
    assert (member.texts(), stranger.texts()) == (["Among members"], [])


async def test_end_of_one_pass_does_not_end_a_shared_page(
    webhooks: WebhookScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await webhooks.receiver(), await webhooks.receiver()
    for receiver in (first, second):
        await webhooks.create(receiver)
    await webhooks.chat.ann.post(webhooks.chat.topic, "Hello")
    await webhooks.find()
    claimed, tools = await webhooks.stores.webhook_claims.claim(2), webhooks.jobs.webhooks
    assert tools is not None
    read, reached, release = EventPages._read, asyncio.Event(), asyncio.Event()

    async def held(self: EventPages, account: User, request: PageRequest) -> Page:
        reached.set()
        await release.wait()
        return await read(self, account, request)

    monkeypatch.setattr(EventPages, "_read", held)
    ended, other = [asyncio.create_task(passes.WebhookPass(webhooks.jobs, tools, each).run()) for each in claimed]
    await reached.wait()
    ended.cancel()
    with suppress(asyncio.CancelledError):
        await ended
    release.set()
    await other
    assert sorted([first.texts(), second.texts()]) == [[], ["Hello"]]
