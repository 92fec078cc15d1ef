"""Subscriptions that nobody shares, each executed for its one viewer, at the pace of its socket."""

import asyncio
from contextlib import aclosing

from server.graphql.broadcasts import Frames, Listener, Payload
from server.graphql.event_execution import Execution
from server.graphql.subscriptions import Own

NOBODY: frozenset[str] = frozenset()


async def play(own: Own, listener: Listener) -> None:
    """Writes every event of the source until it is cancelled. Raises: DomainError that ends the subscription."""
    execution = Execution(own.executor)
    async with aclosing(aiter(own.source)) as events:
        async for event in events:
            Frames([Payload(await execution.run(event), NOBODY)]).write(listener)
            await listener.wire.has_room()
            # What is at hand must not keep others from their turn.
            await asyncio.sleep(0)
