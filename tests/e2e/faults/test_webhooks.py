"""Webhooks send each message in order through killed workers, an election, and receivers that are slow or fail."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from starlette.requests import Request
from starlette.responses import Response

from storage.chat.changes import NewMessage
from storage.chat.messages import MessageStore
from storage.mongo import Mongo, Session
from storage.mongo.transactions import TRANSACTION_DEADLINE_S
from storage.streams.sequencer import Sequencer
from tests.databases import with_class
from tests.e2e.webhook_deployment import (
    ADMIN_EMAIL,
    TopicWriter,
    WebhookDeployment,
    broken_promises,
    closed_port,
    create_writers,
    reading,
    repeats,
    short_lease_worker,
    webhook_deployment,
)
from tests.twins.event_receiver import EventReceiver
from tests.twins.twin import running_twin
from tests.waiting import poll_until_true, until

pytestmark = pytest.mark.anyio

Result = TypeVar("Result")

TOPICS, MESSAGES = 4, 150
RETRY_S = 12.0
SLOW_S = 0.02
REFUSALS = 5
CALM_MESSAGES, VERY_SLOW_S = 30, 0.3
"""Together they last three times as long as a claim."""

DEADLINE_S = 90.0


class FlakyReceiver(EventReceiver):
    """Refuses every 40th request."""

    requests = 0

    async def receive(self, request: Request) -> Response:
        self.requests += 1
        return Response("busy", 503) if self.requests % 40 == 0 else await super().receive(request)


@dataclass
class Receivers:
    """A receiver of each kind. All but the last three receive the messages of all topics."""

    healthy: EventReceiver = field(default_factory=EventReceiver)
    slow: EventReceiver = field(default_factory=EventReceiver)
    failing: EventReceiver = field(default_factory=EventReceiver)
    flaky: EventReceiver = field(default_factory=FlakyReceiver)
    of_one_topic: EventReceiver = field(default_factory=EventReceiver)
    of_calm_topic: EventReceiver = field(default_factory=EventReceiver)
    down: EventReceiver = field(default_factory=EventReceiver)

    @property
    def of_all_topics(self) -> list[EventReceiver]:
        return [self.healthy, self.slow, self.failing, self.flaky]


@dataclass
class WebhookFaults:
    """Writers of topics, receivers of their messages, and faults."""

    deployment: WebhookDeployment
    writers: list[TopicWriter]
    calm: TopicWriter
    """A writer who posts later than the others."""

    receivers: Receivers
    down_id: str = ""

    @property
    def posted(self) -> dict[str, list[int]]:
        """The timestamps of the acknowledged messages, by topic."""
        return {writer.chat.topic: writer.timestamps for writer in self.writers}

    @property
    def posted_count(self) -> int:
        return sum(map(len, self.posted.values()))

    async def write(self) -> None:
        """Posts messages to all topics at the same time."""

        async def write_to(writer: TopicWriter) -> None:
            for _ in range(MESSAGES):
                await writer.post()

        await asyncio.gather(*map(write_to, self.writers))

    async def recover(self) -> None:
        """Lets the failing receiver work after it has refused some requests."""
        self.receivers.failing.status = 500
        await until(lambda: len(self.receivers.failing.refused) >= REFUSALS)
        self.receivers.failing.status = 200

    async def inject(self) -> None:
        """Kills the worker that searches, elects another primary, and kills two more workers."""
        total = TOPICS * MESSAGES
        await until(lambda: self.posted_count >= total // 5)
        await self.deployment.kill_worker(await self.deployment.searching_worker())
        await until(lambda: self.posted_count >= total // 2)
        await self.deployment.members.step_down()
        for share in (3, 6):
            await until(partial(self.has_slow_receiver, total * share // 10))
            await self.deployment.kill_worker(self.deployment.workers[0])

    def has_slow_receiver(self, count: int) -> bool:
        """Returns whether the slow receiver has so many messages."""
        return len(self.receivers.slow.messages) >= count

    def is_complete(self) -> bool:
        """Returns whether each receiver that lives has as many messages as it must get."""
        one, calm = len(self.writers[0].timestamps), len(self.calm.timestamps)
        expected = [self.posted_count] * len(self.receivers.of_all_topics) + [one, calm]
        receivers = [*self.receivers.of_all_topics, self.receivers.of_one_topic, self.receivers.of_calm_topic]
        return all(len(each.events()) >= count for each, count in zip(receivers, expected, strict=True))

    async def until_complete(self) -> None:
        """Waits until each receiver that lives has its messages."""
        if not await poll_until_true(self.is_complete, DEADLINE_S, 0.1):
            broken = {each.url: broken_promises(each, self.posted) for each in self.receivers.of_all_topics}
            pytest.fail(f"Some messages did not arrive: {broken}. Webhooks: {await self.deployment.webhooks()}")

    async def is_disabled(self) -> bool:
        return (await self.deployment.webhook(self.down_id))["disabledAt"] is not None

    async def write_calmly(self) -> None:
        """Posts messages whose receiver takes longer for them than a claim lasts without renewal."""
        self.writers.append(self.calm)
        for _ in range(CALM_MESSAGES):
            await self.calm.post()

    async def is_idle(self) -> bool:
        """Returns whether workers have nothing to do for any webhook."""
        query = {"$or": [{"due": {"$exists": True}}, {"notice_due": {"$exists": True}}]}
        return await self.deployment.mongo["webhooks"].find_one(query) is None

    async def late_commit(self) -> None:
        """Posts to a quiet topic. A later message of another topic arrives before the commit."""
        quiet, busy = (await create_writers(self.deployment, 1))[0], self.writers[0]
        await until(lambda: len(self.receivers.healthy.events()) >= self.posted_count, DEADLINE_S, 0.1)
        reached, release = asyncio.Event(), asyncio.Event()
        mongo = held_mongo(self.deployment.mongo, reached, release)
        store = MessageStore(mongo, Sequencer(mongo, lambda *_: None, lambda _: None))
        message = NewMessage(quiet.chat.topic, quiet.chat.community, "user0", "late", None, ())
        posting = asyncio.create_task(store.post(message, None))
        await reached.wait()
        await busy.post()
        await until(lambda: len(self.receivers.healthy.events()) >= self.posted_count, DEADLINE_S, 0.1)
        release.set()
        quiet.timestamps.append((await posting).timestamp)
        self.writers.append(quiet)

    async def post_while_marking_fails(self) -> None:
        """Posts a last message. The first worker that finds it cannot let a webhook know of it."""
        await until(self.is_idle)
        fail = {"failCommands": ["update"], "namespace": f"{self.deployment.web.database}.webhooks", "errorCode": 8}
        await self.deployment.mongo.client.admin.command(
            {"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": fail}
        )
        await self.writers[0].post()


def held_mongo(mongo: Mongo, reached: asyncio.Event, release: asyncio.Event) -> Mongo:
    """Returns a client whose transactions set `reached`, and wait for `release` before they commit."""

    class HeldMongo(Mongo):
        async def transact(
            self,
            work: Callable[[Session], Awaitable[Result]],
            deadline_s: float = TRANSACTION_DEADLINE_S,
            backoffs_s: Sequence[float] = (),
        ) -> Result:
            async def held(session: Session) -> Result:
                result = await work(session)
                reached.set()
                await release.wait()
                return result

            return await super().transact(held, deadline_s, backoffs_s)

    return with_class(mongo, HeldMongo)


@pytest.fixture
async def faults(tmp_path: Path) -> AsyncIterator[WebhookFaults]:
    async with AsyncExitStack() as stack:
        deployment = await stack.enter_async_context(webhook_deployment(tmp_path, short_lease_worker, RETRY_S))
        receivers = Receivers()
        receivers.slow.delay_s, receivers.of_calm_topic.delay_s = SLOW_S, VERY_SLOW_S
        *writers, calm = await create_writers(deployment, TOPICS + 1)
        faults = WebhookFaults(deployment, writers, calm, receivers)
        for receiver in receivers.of_all_topics:
            await stack.enter_async_context(running_twin(receiver))
            await deployment.create_webhook(receiver)
        for receiver, writer in ((receivers.of_one_topic, writers[0]), (receivers.of_calm_topic, calm)):
            await stack.enter_async_context(running_twin(receiver))
            await deployment.create_webhook(receiver, topicIds=[writer.chat.topic])
        receivers.down.url = stack.enter_context(closed_port())
        faults.down_id = await deployment.create_webhook(receivers.down)
        await asyncio.gather(deployment.start_worker(), deployment.start_worker())
        yield faults


@pytest.mark.timeout(600)
async def test_each_receiver_gets_each_message_in_order(faults: WebhookFaults) -> None:
    deployment, receivers, one = faults.deployment, faults.receivers, faults.writers[0]
    async with reading(one.chat, deployment.person("ann")) as read:
        await asyncio.gather(faults.write(), faults.recover(), faults.inject())
        await faults.until_complete()
        await faults.write_calmly()
        await faults.late_commit()
        await until(faults.is_disabled)
        await faults.until_complete()
        await faults.post_while_marking_fails()
        await faults.until_complete()
        assert read == one.timestamps, "The subscriber of the topic missed events."
    assert [broken_promises(each, faults.posted) for each in receivers.of_all_topics] == [[]] * 4
    for receiver, writer in ((receivers.of_one_topic, one), (receivers.of_calm_topic, faults.calm)):
        assert broken_promises(receiver, {writer.chat.topic: writer.timestamps}) == []
    # A worker that this machine holds up for three seconds may lose its claim once.
    assert repeats(receivers.of_calm_topic) <= 4, "The claim was not renewed."
    assert (await deployment.webhook(faults.down_id))["disabledReason"] == "FAILING"
    await until(lambda: any(ADMIN_EMAIL in mail.read_text() for mail in deployment.folder.glob("data/mail/*")))
