"""Tells brokers that something changed for their organization: at once in this process, by Redis pub/sub in others.

A hint only. Brokers look by themselves when what they wait for is due, and every few seconds while a call is active.
"""

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from storage.keys import Keys

MAX_WAITING = 10_000
SEND_TIMEOUT_S = 2.0
RECONNECT_S = (0.05, 2.0)
POLL_S = 5.0

WakeUpHandler = Callable[[str, bool], None]
"""Takes an organization's id, and whether its broker's lock was given back."""

NEWS, RELEASED = "=", "!"

log = structlog.get_logger(__name__)


class WakeUpChannel:
    """One for each process. Sending never waits."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._channel = keys.call_wake_ups()
        # Who sent something was told at once, and would only look twice.
        self._sender = secrets.token_hex(4)
        self._listeners: list[WakeUpHandler] = []
        self._waiting: dict[str, None] = {}
        self._sending: asyncio.Task[None] | None = None

    def wake(self, organization_id: str, released: bool = False) -> None:
        """Something may be dialled for the organization, or its jobs changed, or its lock is free now."""
        for heard in self._listeners:
            heard(organization_id, released)
        if len(self._waiting) < MAX_WAITING:
            self._waiting[f"{RELEASED if released else NEWS}{self._sender}:{organization_id}"] = None
        if self._sending is None:
            self._sending = asyncio.create_task(self._send(), name="call wakes")

    async def listen(self, heard: WakeUpHandler, missed: Callable[[], None] | None = None) -> None:
        """Calls `heard` for every wake of this process and of others, until it is cancelled.

        And `missed` whenever it begins to hear others: what they told before is not repeated.
        """
        self._listeners.append(heard)
        delay_s = RECONNECT_S[0]
        try:
            while True:
                with suppress(RedisError, OSError):
                    async with self._redis.pubsub() as pubsub:
                        await pubsub.subscribe(self._channel)
                        delay_s = RECONNECT_S[0]
                        while True:
                            message = await pubsub.get_message(timeout=POLL_S)
                            if message is not None and message["type"] == "message":
                                self._hear(message["data"].decode(), heard)
                            elif message is not None and missed is not None:
                                missed()
                await asyncio.sleep(delay_s)
                delay_s = min(delay_s * 2, RECONNECT_S[1])
        finally:
            self._listeners.remove(heard)

    def _hear(self, text: str, heard: WakeUpHandler) -> None:
        sender, _, organization_id = text[1:].partition(":")
        if sender != self._sender:
            heard(organization_id, text[0] == RELEASED)

    async def close(self) -> None:
        """Sends what waits."""
        if self._sending is not None:
            await asyncio.gather(self._sending, return_exceptions=True)

    async def _send(self) -> None:
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, {}
                try:
                    async with asyncio.timeout(SEND_TIMEOUT_S), self._redis.pipeline(transaction=False) as pipeline:
                        for text in waiting:
                            pipeline.publish(self._channel, text)
                        await pipeline.execute()
                except (RedisError, OSError, TimeoutError) as error:
                    log.warning("wakes_lost", count=len(waiting), error=repr(error))
        finally:
            self._sending = None
