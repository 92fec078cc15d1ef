"""Tries of a pass and positions of streams that are not recorded yet."""

import asyncio
from datetime import datetime

from jobs.webhooks.failures import ClaimEnded
from storage.stores import Stores
from storage.streams.log import Stream, StreamPosition
from storage.webhooks.deliveries import DeliveryResult, SentMessage
from storage.webhooks.positions import Move
from storage.webhooks.records import ClaimedWebhook

RECORD_EVERY_S = 1.0
MAX_UNRECORDED = 80
"""Number of tries after which they are recorded. A killed worker repeats at most about as many events."""


class Progress:
    """Records tries and moves of positions together, about once a second."""

    def __init__(self, stores: Stores, webhook: ClaimedWebhook) -> None:
        self._stores, self._webhook = stores, webhook
        self._sent: list[tuple[SentMessage, DeliveryResult]] = []
        self._moves: dict[Stream, Move] = {}
        self._lock = asyncio.Lock()
        self._recorded_at_s = asyncio.get_running_loop().time()

    def add(self, message: SentMessage, result: DeliveryResult) -> None:
        """Notes a try."""
        self._sent.append((message, result))

    def move(self, stream: Stream, old: StreamPosition, new: StreamPosition, at: datetime) -> None:
        """Notes that a stream has got from one position to the next, whose instant is `at`."""
        earlier = self._moves.get(stream)
        self._moves[stream] = Move(stream, old if earlier is None else earlier.old, new, at)

    async def record_sometimes(self) -> None:
        """Records if the last time was a second ago, or if many tries are not recorded. Raises: ClaimEnded."""
        is_old = asyncio.get_running_loop().time() - self._recorded_at_s > RECORD_EVERY_S
        if is_old or len(self._sent) >= MAX_UNRECORDED:
            await self.record()

    async def record(self) -> None:
        """Stores tries and positions. Raises: ClaimEnded if a position was moved, or the claim has ended.

        The claim is renewed after the events were read and before positions move. So a webhook that was changed
        before an event was posted does not leave this event out by its earlier filter.
        """
        async with self._lock:
            sent, moves = self._sent, list(self._moves.values())
            self._sent, self._moves = [], {}
            if not await self._stores.webhook_rounds.record(self._webhook, sent, moves):
                raise ClaimEnded
            self._recorded_at_s = asyncio.get_running_loop().time()
