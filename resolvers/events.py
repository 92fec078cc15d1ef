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
from storage.identity.records import Role, User
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
class JobKind:
    """One kind of event of an organization's jobs (resolvers/job_events.py lists them).

    `may_see` decides from the viewer, their roles with those included, and what the event speaks of; `job_ids` are the
    ids under which the event is listened to; `record` makes the event of cursor, instant and subject.
    """

    record: Callable[[Cursor, datetime, Any], Any]
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
