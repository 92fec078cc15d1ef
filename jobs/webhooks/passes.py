"""One pass of a worker over a webhook: tests, requested repetitions, and the waiting events of its streams."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC
from functools import partial

import orjson

from jobs.context import JobContext, WebhookTools
from jobs.webhooks.formats import formatted
from storage.errors import NotFound
from storage.identity.keys.records import ServiceKey
from storage.identity.records import User
from storage.streams.hub import HydratedEvent, PositionExpired
from storage.streams.log import Event, Stream, StreamPosition, format_cursor
from storage.webhooks.deliveries import DeliveryResult, SentMessage
from storage.webhooks.event_types import GAP_TYPE, TEST_TYPE, types_of_stream
from storage.webhooks.records import ClaimedWebhook, DeliveryOutcome, DisabledReason, WaitingStream, WebhookDelivery

STREAMS_AT_A_TIME = 4
"""Number of streams of a webhook whose events are sent at the same time. Each stream keeps its order."""

PASS_S = 30.0
"""After this time another webhook gets its turn."""

RENDERED_AT_A_TIME = 20
RECORD_EVERY_S = 1.0
STATUS_GONE = 410


class DeliveryFailed(Exception):
    """A request failed, or nothing can be sent: then `message_id` is empty. `reason` disables the webhook at once."""

    def __init__(
        self,
        error: str,
        message_id: str = "",
        retry_after_s: float | None = None,
        reason: DisabledReason | None = None,
    ) -> None:
        super().__init__(error)
        self.error, self.message_id = error, message_id
        self.retry_after_s, self.reason = retry_after_s, reason


class ClaimEnded(Exception):
    """Another worker may have claimed the webhook, or it was disabled, deleted or replayed."""


@dataclass(slots=True)
class _Progress:
    """Events of a stream that were sent and are not recorded yet."""

    recorded: StreamPosition
    reached: StreamPosition
    recorded_at_s: float
    last: Event | None = None
    sent: list[tuple[SentMessage, DeliveryResult]] = field(default_factory=list)


class WebhookPass:
    """Sends what waits for one webhook."""

    def __init__(self, jobs: JobContext, tools: WebhookTools, webhook: ClaimedWebhook) -> None:
        self._jobs, self._tools, self._webhook = jobs, tools, webhook
        self._stop = False
        self.has_delivered = False
        """Whether a request succeeded."""

        self.has_recovered = False
        """Whether the message that failed before was delivered."""

    async def run(self) -> bool:
        """Returns whether nothing waits any more. Raises: DeliveryFailed, ClaimEnded."""
        stores, webhook = self._jobs.stores, self._webhook
        ends_at_s = asyncio.get_running_loop().time() + PASS_S
        try:
            account = await self._account()
        except DeliveryFailed as failure:
            await self._refuse_requested(failure.error)
            if webhook.webhook.disabled_at is not None:
                return True
            raise
        await self._send_requested(account)
        if webhook.webhook.disabled_at is not None:
            return True
        if webhook.scan is not None:
            await stores.webhook_discovery.search_for(webhook.webhook, webhook.scan["since"], webhook.scan["rewinds"])
            await stores.webhook_claims.end_scan(webhook)
        while streams := await stores.webhook_positions.waiting(webhook.id):
            if asyncio.get_running_loop().time() > ends_at_s:
                return False
            await self._send_streams(account, streams, ends_at_s)
        return True

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

    async def _refuse_requested(self, error: str) -> None:
        """Records that tests and repetitions can't be sent."""
        deliveries = self._jobs.stores.webhook_deliveries
        for delivery in await deliveries.requested(self._webhook.id):
            message = SentMessage(delivery.message_id, delivery.event_type, b"")
            await deliveries.finish(delivery, message, DeliveryResult(DeliveryOutcome.FAILED, None, error, 0))

    async def _send_requested(self, account: User) -> None:
        """Sends tests and repetitions, each once. A failure is only recorded."""
        stores = self._jobs.stores
        for delivery in await stores.webhook_deliveries.requested(self._webhook.id):
            message = await self._requested_message(account, delivery)
            if message is None:
                message = SentMessage(delivery.message_id, delivery.event_type, b"", delivery.stream)
                result = DeliveryResult(DeliveryOutcome.FAILED, None, "The log no longer has the event.", 0)
            else:
                message = self._formatted(message)
                result = await self._post(message)
            await stores.webhook_deliveries.finish(delivery, message, result)
            await self._renew()

    async def _requested_message(self, account: User, delivery: WebhookDelivery) -> SentMessage | None:
        """Returns the message of a requested delivery; None if its event is gone, or may not be read any more."""
        if delivery.event_type == TEST_TYPE:
            at = await self._now()
            body = orjson.dumps({"type": TEST_TYPE, "timestamp": at, "organizationId": account.organization_id})
            return SentMessage(delivery.message_id, TEST_TYPE, body)
        stream, number = delivery.stream, delivery.event_number
        if stream is None or number is None or not await self._may_read(account, stream):
            return None
        stores = self._jobs.stores
        try:
            head = await stores.events.head(stream)
            events = await stores.hub.replay(stream, StreamPosition(head.epoch, number - 1), limit=1)
        except (PositionExpired, NotFound):
            return None
        messages = await self._messages(account, stream, head.epoch, events)
        return messages[0] if messages else None

    async def _send_streams(self, account: User, streams: Sequence[WaitingStream], ends_at_s: float) -> None:
        """Sends the events of streams, some at a time. Raises: the first failure, after the others have stopped."""
        room = asyncio.Semaphore(STREAMS_AT_A_TIME)

        async def send(waiting: WaitingStream) -> None:
            async with room:
                try:
                    await self._send_stream(account, waiting, ends_at_s)
                except Exception:
                    self._stop = True
                    raise

        results = await asyncio.gather(*map(send, streams), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _send_stream(self, account: User, waiting: WaitingStream, ends_at_s: float) -> None:
        """Sends the waiting events of a stream in order, until none waits or the pass ends."""
        stream, loop = waiting.stream, asyncio.get_running_loop()
        kinds = types_of_stream(stream.kind, self._webhook.webhook.filter.types)
        progress = _Progress(waiting.position, waiting.position, loop.time())
        while not self._stop and loop.time() < ends_at_s:
            try:
                events = await self._jobs.stores.hub.replay(stream, progress.reached, kinds)
            except PositionExpired:
                await self._send_gap(stream, progress)
                continue
            except NotFound:
                await self._jobs.stores.webhook_positions.forget(self._webhook.id, stream)
                return
            if not events:
                break
            await self._send_events(account, stream, events, progress)
        await self._record(stream, progress)

    async def _send_events(
        self, account: User, stream: Stream, events: Sequence[HydratedEvent], progress: _Progress
    ) -> None:
        for start in range(0, len(events), RENDERED_AT_A_TIME):
            chunk = events[start : start + RENDERED_AT_A_TIME]
            may_read = await self._may_read(account, stream)
            messages = await self._messages(account, stream, progress.reached.epoch, chunk) if may_read else []
            by_number = {message.event_number: message for message in messages}
            for event in chunk:
                if self._stop:
                    return
                if (message := by_number.get(event.event.n)) is not None:
                    await self._send(message, progress)
                progress.reached = StreamPosition(progress.reached.epoch, event.event.n)
                progress.last = event.event
                # After each request: the claim must be renewed before it ends, however slow the receiver is.
                is_old = asyncio.get_running_loop().time() - progress.recorded_at_s > RECORD_EVERY_S
                if is_old or len(progress.sent) >= RENDERED_AT_A_TIME:
                    await self._record(stream, progress)

    async def _send_gap(self, stream: Stream, progress: _Progress) -> None:
        """Tells the receiver that events of the stream are lost, and continues with the oldest that the log has."""
        head = await self._jobs.stores.events.head(stream)
        position = StreamPosition(head.epoch, head.floor)
        cursor = format_cursor(stream, position)
        at = await self._now()
        body = {
            "type": GAP_TYPE,
            "timestamp": at,
            "organizationId": self._webhook.webhook.organization_id,
            "stream": stream.name,
            "data": {"cursor": cursor, "at": at, "resumed": False},
        }
        await self._send(SentMessage(f"{cursor}.gap", GAP_TYPE, orjson.dumps(body)), progress)
        progress.reached = position

    async def _send(self, message: SentMessage, progress: _Progress) -> None:
        """Sends one message. Raises: DeliveryFailed, after what was sent before was recorded."""
        message = self._formatted(message)
        result = await self._post(message)
        progress.sent.append((message, result))
        if result.outcome is DeliveryOutcome.DELIVERED:
            self.has_delivered = True
            self.has_recovered |= message.message_id == self._webhook.failing_message
            return
        self._stop = True
        if message.stream is not None:
            await self._record(message.stream, progress)
        else:
            await self._jobs.stores.webhook_deliveries.record(self._webhook.webhook, progress.sent)
        reason = DisabledReason.GONE if result.status == STATUS_GONE else None
        answer = result.answer if result.status is None else f"HTTP {result.status} {result.answer}".strip()
        raise DeliveryFailed(answer, message.message_id, result.retry_after_s, reason)

    def _formatted(self, message: SentMessage) -> SentMessage:
        return formatted(message, self._webhook.webhook.format, self._jobs.base_url)

    async def _now(self) -> str:
        """Returns the time as the API writes it."""
        now = await self._jobs.stores.clock.now()
        return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    async def _post(self, message: SentMessage) -> DeliveryResult:
        return await self._tools.sender.send(self._webhook.webhook.url, self._webhook.secrets, message)

    async def _record(self, stream: Stream, progress: _Progress) -> None:
        """Stores the deliveries and the position. Raises: ClaimEnded if another worker or a replay has moved it."""
        stores, loop = self._jobs.stores, asyncio.get_running_loop()
        await stores.webhook_deliveries.record(self._webhook.webhook, progress.sent)
        progress.sent = []
        if progress.reached != progress.recorded or progress.last is None:
            await self._advance(stream, progress)
        progress.recorded, progress.recorded_at_s = progress.reached, loop.time()
        await self._renew()

    async def _advance(self, stream: Stream, progress: _Progress) -> None:
        stores = self._jobs.stores
        at = await stores.clock.now() if progress.last is None else progress.last.at
        if not await stores.webhook_positions.advance(
            self._webhook.id, stream, progress.recorded, progress.reached, at
        ):
            raise ClaimEnded

    async def _renew(self) -> None:
        if not await self._jobs.stores.webhook_claims.renew(self._webhook):
            raise ClaimEnded

    async def _may_read(self, account: User, stream: Stream) -> bool:
        """Returns whether the account may read the messages of the stream's community: it is PUBLIC, or joined."""
        if stream.kind not in ("topic", "community"):
            return True
        stores, community_id = self._jobs.stores, stream.id
        if stream.kind == "topic":
            topic = await stores.topics.find(account.organization_id, stream.id)
            if topic is None:
                return False
            community_id = topic.community_id
        joined = partial(stores.communities.joined_communities, user_id=account.id)
        return community_id in await stores.communities.with_visible_topics([community_id], joined)

    async def _messages(
        self, account: User, stream: Stream, epoch: str, events: Sequence[HydratedEvent]
    ) -> list[SentMessage]:
        """Returns the messages of those events that the webhook sends."""
        filter_ = self._webhook.webhook.filter
        wanted = types_of_stream(stream.kind, filter_.types)
        chosen = [each for each in events if each.subject is not None and each.event.kind in wanted]
        bodies = await self._tools.payloads.render(account, stream, epoch, chosen, filter_.job_ids)
        return [
            SentMessage(
                format_cursor(stream, StreamPosition(epoch, each.event.n)), each.event.kind, body, stream, each.event.n
            )
            for each, body in zip(chosen, bodies, strict=True)
            if body is not None
        ]
