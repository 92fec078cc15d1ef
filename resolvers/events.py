"""What every subscription gives: events with cursors. And subscriptions that are one viewer's own."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import structlog

from storage.errors import DomainError
from storage.identity.records import User
from storage.identity.roles import Role
from storage.streams.hub import Hub, HydratedEvent
from storage.streams.log import Cursor, Position, Stream, format_cursor
from storage.streams.subscription import IdleTimeout, StreamEvent, SubscriptionStart, follow_events

RESTART_S = 0.5

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """What every event carries: the cursor to resume from, and when."""

    cursor: Cursor
    at: datetime


@dataclass(frozen=True, slots=True)
class StreamReady(Event):
    """A position: the subscription goes on from here."""

    resumed: bool


class ViewerEventSource(ABC):
    """One viewer's own subscription: iterated, it gives that viewer's events, and nobody else's."""

    viewer: User

    @abstractmethod
    def __aiter__(self) -> AsyncGenerator[Event, None]:
        """The events. Each class names its own, from which the schema is checked."""


@dataclass(frozen=True, slots=True)
class JobEventView:
    """How viewers see one kind of job event; resolvers/job_events.py lists all kinds.

    `record` is called with the cursor, the instant, the kind and the subject. `may_see` decides from the viewer, the
    viewer's roles including implied ones, and the subject. `job_ids` returns the values of `jobId` that match.
    """

    record: Callable[[Cursor, datetime, str, Any], Event]
    may_see: Callable[[User, frozenset[Role], Any], bool]
    job_ids: Callable[[Any], Collection[str]]


Record = TypeVar("Record", bound=Event)
Show = Callable[[Cursor, HydratedEvent], Record | None]
"""The event's record; None where the viewer must not see it."""


async def viewer_events(
    hub: Hub, stream: Stream, since: Position | None, show: Show[Record]
) -> AsyncGenerator[StreamReady | Record, None]:
    """One viewer's events of one stream. After a failure it goes on from where it was."""
    position = since
    while True:
        try:
            async with aclosing(follow_events(hub, stream, position)) as steps:
                async for step in steps:
                    if isinstance(step, IdleTimeout):
                        continue
                    position = step.position
                    event = _shown(stream, step, show)
                    if event is not None:
                        yield event
        except DomainError:
            raise
        except Exception as error:
            # The log will be there again, and an error would end the subscription for good.
            log.warning("listener_waits", stream=stream.name, error=repr(error))
        await asyncio.sleep(RESTART_S)


def _shown(stream: Stream, step: SubscriptionStart | StreamEvent, show: Show[Record]) -> StreamReady | Record | None:
    cursor = format_cursor(stream, step.position)
    if isinstance(step, SubscriptionStart):
        return StreamReady(cursor, step.at, step.resumed)
    return show(cursor, step.event)
