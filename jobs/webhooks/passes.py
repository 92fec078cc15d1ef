"""One pass of a worker over a webhook: tests, requested repetitions, and the waiting events of its streams."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

from jobs.context import JobContext, WebhookTools
from jobs.webhooks.failures import ClaimEnded, DeliveryFailed
from jobs.webhooks.messages import MessageWriter
from jobs.webhooks.progress import Progress
from jobs.webhooks.requested import RequestedDeliveries
from storage.errors import NotFound
from storage.identity.keys.records import ServiceKey
from storage.identity.records import User
from storage.streams.hub import HydratedEvent, PositionExpired
from storage.streams.log import REPLAY_LIMIT, Stream, StreamPosition
from storage.webhooks.deliveries import SentMessage
from storage.webhooks.event_types import types_of_stream
from storage.webhooks.positions import MAX_WAITING
from storage.webhooks.records import ClaimedWebhook, DeliveryOutcome, DisabledReason, WaitingStream

STREAMS_AT_A_TIME = 4
"""Number of streams of a webhook whose events are sent at the same time. Each stream keeps its order."""

PASS_S = 10.0
"""After this time the webhook is read again, and another one may get its turn."""

ROUND_S = 1.0
"""Mean time between rounds. Events that come meanwhile are sent together, which takes fewer reads and writes."""

RENDERED_AT_A_TIME = 20
STATUS_GONE = 410


class WebhookPass:
    """Sends what waits for one webhook."""

    def __init__(self, jobs: JobContext, tools: WebhookTools, webhook: ClaimedWebhook) -> None:
        self._jobs, self._tools, self._webhook = jobs, tools, webhook
        self._requested = RequestedDeliveries(jobs, tools, webhook)
        self._progress = Progress(jobs.stores, webhook)
        self._ends_at_s = asyncio.get_running_loop().time() + PASS_S
        self._stop = False
        self.has_recovered = False
        """Whether the message that failed before was delivered."""

    async def run(self) -> bool:
        """Returns whether nothing waits any more. Raises: DeliveryFailed, ClaimEnded."""
        try:
            writer = MessageWriter(self._jobs, self._tools, self._webhook.webhook, await self._account())
        except DeliveryFailed as failure:
            await self._requested.refuse(failure.error)
            if self._is_disabled:
                return True
            raise
        if self._is_disabled:
            await self._requested.send(writer)
            return True
        if (scan := self._webhook.scan) is not None:
            search = self._jobs.stores.webhook_discovery.search_for
            await search(self._webhook.webhook, scan["since"], scan["rewinds"], self._renew)
            await self._jobs.stores.webhook_claims.end_scan(self._webhook)
        return await self._send_rounds(writer)

    @property
    def _is_disabled(self) -> bool:
        return self._webhook.webhook.disabled_at is not None

    async def _account(self) -> User:
        """Returns the account that reads the events. Raises: DeliveryFailed if its service key has ended."""
        if not self._webhook.secrets:
            raise DeliveryFailed("The secret cannot be decrypted: a key of NOROSHI_CREDENTIAL_KEYS is missing.")
        webhook, stores = self._webhook.webhook, self._jobs.stores
        key: ServiceKey | None = None
        with suppress(NotFound):
            key = await stores.service_keys.get(webhook.organization_id, webhook.key_id)
        if key is None or not key.is_active:
            raise DeliveryFailed("The service key has ended.", reason=DisabledReason.KEY_ENDED)
        return await stores.users.get(webhook.organization_id, webhook.key_id)

    async def _send_rounds(self, writer: MessageWriter) -> bool:
        """Sends what waits, once a second, until nothing does. Returns False if the pass ends before."""
        loop = asyncio.get_running_loop()
        while loop.time() < self._ends_at_s:
            # Webhooks whose first event was the same must not have all of their rounds at the same moments.
            next_at_s = loop.time() + random.uniform(0.5, 1.5) * ROUND_S  # noqa: S311
            await self._requested.send(writer)
            streams = await self._jobs.stores.webhook_positions.waiting(self._webhook.id)
            if not streams:
                return True
            await self._send_streams(writer, streams)
            if len(streams) < MAX_WAITING:
                await asyncio.sleep(next_at_s - loop.time())
        return False

    async def _send_streams(self, writer: MessageWriter, streams: Sequence[WaitingStream]) -> None:
        """Sends the events of streams, some at a time. Raises: the first failure, after the others have stopped."""
        room = asyncio.Semaphore(STREAMS_AT_A_TIME)

        async def send(waiting: WaitingStream) -> None:
            async with room:
                try:
                    await self._send_stream(writer, waiting)
                except Exception:
                    self._stop = True
                    raise

        results = await asyncio.gather(*map(send, streams), return_exceptions=True)
        await self._progress.record()
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _send_stream(self, writer: MessageWriter, waiting: WaitingStream) -> None:
        """Sends the waiting events of a stream in order, until all that are there now were sent, or the pass ends."""
        stream, position, loop = waiting.stream, waiting.position, asyncio.get_running_loop()
        kinds = types_of_stream(stream.kind, self._webhook.webhook.filter.types)
        while not self._stop and loop.time() < self._ends_at_s:
            try:
                events = await self._jobs.stores.hub.replay(stream, position, kinds)
            except PositionExpired:
                position = await self._send_gap(writer, stream, position)
                continue
            except NotFound:
                await self._jobs.stores.webhook_positions.forget(self._webhook.id, stream)
                return
            position = await self._send_events(writer, stream, position, events)
            if len(events) < REPLAY_LIMIT:
                return

    async def _send_events(
        self, writer: MessageWriter, stream: Stream, position: StreamPosition, events: Sequence[HydratedEvent]
    ) -> StreamPosition:
        """Returns the position of the last event that was sent or left out."""
        for start in range(0, len(events), RENDERED_AT_A_TIME):
            chunk = events[start : start + RENDERED_AT_A_TIME]
            messages = await writer.events(stream, position.epoch, chunk)
            by_number = {message.event_number: message for message in messages}
            for event in chunk:
                if self._stop:
                    return position
                if (message := by_number.get(event.event.n)) is not None:
                    await self._send(message)
                reached = StreamPosition(position.epoch, event.event.n)
                self._progress.move(stream, position, reached, event.event.at)
                position = reached
                # After each request: the claim must be renewed before it ends, however slow the receiver is.
                await self._progress.record_sometimes()
        return position

    async def _send_gap(self, writer: MessageWriter, stream: Stream, position: StreamPosition) -> StreamPosition:
        """Tells the receiver that events of the stream are lost. Returns the position before the oldest one left."""
        head = await self._jobs.stores.events.head(stream)
        reached = StreamPosition(head.epoch, head.floor)
        await self._send(await writer.gap(stream, reached))
        self._progress.move(stream, position, reached, await self._jobs.stores.clock.now())
        return reached

    async def _send(self, message: SentMessage) -> None:
        """Sends one message. Raises: DeliveryFailed."""
        result = await self._tools.sender.send(self._webhook.webhook.url, self._webhook.secrets, message)
        self._progress.add(message, result)
        if result.outcome is DeliveryOutcome.DELIVERED:
            await self._recover(message)
            return
        self._stop = True
        reason = DisabledReason.GONE if result.status == STATUS_GONE else None
        answer = result.answer if result.status is None else f"HTTP {result.status} {result.answer}".strip()
        raise DeliveryFailed(answer, message.message_id, result.retry_after_s, reason)

    async def _recover(self, message: SentMessage) -> None:
        """Records at once that the message was delivered that had failed: a killed worker can't do so later."""
        is_failing = self._webhook.webhook.failing_since is not None and not self.has_recovered
        if is_failing and self._webhook.failing_message in ("", message.message_id):
            await self._jobs.stores.webhook_claims.recover(self._webhook)
            self.has_recovered = True

    async def _renew(self) -> None:
        if not await self._jobs.stores.webhook_claims.renew(self._webhook):
            raise ClaimEnded
