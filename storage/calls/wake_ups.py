"""Wake-ups notify brokers of changes in their organization: directly in this process, through Redis in other processes.

A wake-up is only a hint. Without it, a broker plans its work again when the next start is due, and every few seconds.
While Redis does not answer, a broker plans more often.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from storage.redis.connections import MAX_RECONNECT_S, MIN_RECONNECT_S, messages
from storage.redis.keys import RedisKeys

MAX_PENDING = 10_000
SEND_TIMEOUT_S = 2.0

WakeUpHandler = Callable[[str, bool], None]
"""Called with an organization's id, and whether its broker's lock was released."""

CHANGED, RELEASED = "=", "!"
"""First character of a message: the organization's work changed, or its broker's lock was released."""

log = structlog.get_logger(__name__)


class WakeUpChannel:
    """Sends and receives wake-ups. One for each process. Sending never waits."""

    def __init__(self, redis: Redis, keys: RedisKeys) -> None:
        self._redis = redis
        self._channel = keys.call_wake_ups()
        self.is_receiving = False
        """Whether wake-ups of other processes arrive. False while Redis does not answer, and without a listener."""
        # A process ignores its own messages, since it has called its handlers directly.
        self._sender = secrets.token_hex(4)
        self._handlers: list[WakeUpHandler] = []
        self._pending: dict[str, None] = {}
        self._sending: asyncio.Task[None] | None = None

    def wake(self, organization_id: str, is_lock_released: bool = False) -> None:
        """Announces that the organization's jobs, limits or calls changed, or that its broker's lock was released."""
        for handler in self._handlers:
            handler(organization_id, is_lock_released)
        if len(self._pending) < MAX_PENDING:
            self._pending[f"{RELEASED if is_lock_released else CHANGED}{self._sender}:{organization_id}"] = None
        if self._sending is None:
            self._sending = asyncio.create_task(self._send(), name="call wake-ups")

    async def listen(self, handler: WakeUpHandler, on_subscribed: Callable[[], None] | None = None) -> None:
        """Calls `handler` for every wake-up of this and other processes, until cancelled.

        Calls `on_subscribed` after each subscription, since earlier wake-ups of other processes are lost.
        """
        self._handlers.append(handler)
        delay_s = MIN_RECONNECT_S
        try:
            while True:
                with suppress(RedisError, OSError), self._not_receiving_afterwards():
                    async with self._redis.pubsub() as pubsub:
                        async with asyncio.timeout(SEND_TIMEOUT_S):
                            await pubsub.subscribe(self._channel)
                        delay_s = MIN_RECONNECT_S
                        async for message in messages(pubsub):
                            if message["type"] == "message":
                                self._handle(message["data"].decode(), handler)
                                continue
                            self.is_receiving = True
                            if on_subscribed is not None:
                                on_subscribed()
                await asyncio.sleep(delay_s)
                delay_s = min(delay_s * 2, MAX_RECONNECT_S)
        finally:
            self._handlers.remove(handler)

    @contextmanager
    def _not_receiving_afterwards(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.is_receiving = False

    def _handle(self, text: str, handler: WakeUpHandler) -> None:
        sender, _, organization_id = text[1:].partition(":")
        if sender != self._sender:
            handler(organization_id, text[0] == RELEASED)

    async def close(self) -> None:
        """Waits until pending wake-ups are sent."""
        if self._sending is not None:
            await asyncio.gather(self._sending, return_exceptions=True)

    async def _send(self) -> None:
        try:
            while self._pending:
                pending, self._pending = self._pending, {}
                try:
                    async with asyncio.timeout(SEND_TIMEOUT_S), self._redis.pipeline(transaction=False) as pipeline:
                        for text in pending:
                            pipeline.publish(self._channel, text)
                        await pipeline.execute()
                except (RedisError, OSError, TimeoutError) as error:
                    log.warning("call_wake_ups_lost", count=len(pending), error=repr(error))
        finally:
            self._sending = None
