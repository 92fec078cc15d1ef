"""Events of subscriptions with their cursors, and the event sources that subscriptions return to the server."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, TypeVar

import structlog

from storage.errors import DomainError
from storage.identity.records import User
from storage.identity.roles import Role
from storage.streams.hub import EventHub, Hub, HydratedEvent
from storage.streams.log import Cursor, Stream, StreamPosition, format_cursor
from storage.streams.subscription import IdleTimeout, StreamEvent, SubscriptionStart, follow_events

RESTART_S = 0.5
"""The pause before a subscription continues after a failure."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events: the cursor to resume from, and the instant of the event."""

    cursor: Cursor
    at: datetime


@dataclass(frozen=True, slots=True)
class StreamReady(Event):
    """The position from which a subscription continues. `resumed` means that no event before it was missed."""

    resumed: bool


class ViewerEventSource(ABC):
    """A subscription whose events are for one viewer only."""

    viewer: User

    @abstractmethod
    def __aiter__(self) -> AsyncGenerator[Event, None]:
        """Yields events. Subclasses annotate their own event types, which the schema's tests check."""


@dataclass(frozen=True, slots=True)
class JobEventView:
    """Access rule, filter and record of one kind of job event. resolvers/job_events.py lists all kinds.

    `record` creates the record from the cursor, the instant, the kind and the subject. `may_see` decides from the
    viewer, the viewer's roles (with the roles that they include) and the subject. `job_ids` returns the values of the
    argument `jobId` that the event matches.
    """

    record: Callable[[Cursor, datetime, str, Any], Event]
    may_see: Callable[[User, frozenset[Role], Any], bool]
    job_ids: Callable[[Any], Collection[str]]


HiddenEvents = Mapping[str, tuple[int, ...]]
"""Indexes of the events that a viewer must not see, by the viewer's id. Viewers who may see all are left out."""


class SharedEventSource(ABC):
    """A subscription to a stream that many viewers may share.

    The server reads the stream once for all listeners, and calls `hidden_from` and `authorized_among` for them.
    """

    __slots__ = ()

    viewer: User
    stream: Stream
    since: StreamPosition | None

    is_open: ClassVar[bool] = False
    """Whether every viewer may subscribe to any number of such streams. They then count as the viewer's own."""

    @property
    @abstractmethod
    def hub(self) -> EventHub:
        """The hub that delivers the stream's events."""

    def __aiter__(self) -> AsyncIterator[Event]:
        """Raises TypeError: graphql-core only checks that the method exists."""
        raise TypeError("A shared event source is read by the server's broadcasts.")

    @abstractmethod
    def record(self, epoch: str, event: HydratedEvent) -> Event:
        """Returns the record of an event. Subclasses annotate their own types, which the schema's tests check."""

    def ready(self, start: SubscriptionStart) -> StreamReady:
        """Returns the record of a subscription's start."""
        return StreamReady(format_cursor(self.stream, start.position), start.at, start.resumed)

    @abstractmethod
    async def hidden_from(self, viewer_ids: Collection[str], events: Sequence[HydratedEvent]) -> HiddenEvents:
        """Returns which of the events each of the viewers must not see."""

    @abstractmethod
    async def renew(self) -> None:
        """Does what the stream needs while it is followed: before the start, with each event and each idle time."""

    @abstractmethod
    async def departures(self) -> int:
        """Returns a number that grows whenever a user loses the permission to subscribe."""

    @property
    @abstractmethod
    def departures_stream(self) -> Stream | None:
        """The stream of `hub` that has an event when the number of departures grows; None if there is none."""

    @abstractmethod
    async def authorized_among(self, user_ids: Collection[str]) -> AbstractSet[str]:
        """Returns those of the users who may receive the events now."""

    @abstractmethod
    def forbidden(self) -> DomainError:
        """Returns the error that ends the subscription of a viewer who lost the permission."""


async def hidden_by_viewer(
    people: Sequence[str | None], hiding: Callable[[str], Awaitable[AbstractSet[str]]]
) -> HiddenEvents:
    """Returns which events each viewer must not see. `people` are the persons of the events; None hides nothing.

    `hiding` returns the viewers from whom a person is hidden.
    """
    distinct = list({person for person in people if person is not None})
    viewers = dict(zip(distinct, await asyncio.gather(*(hiding(person) for person in distinct)), strict=True))
    hidden: dict[str, tuple[int, ...]] = {}
    for index, person in enumerate(people):
        for viewer_id in viewers[person] if person is not None else ():
            hidden[viewer_id] = (*hidden.get(viewer_id, ()), index)
    return hidden


Record = TypeVar("Record", bound=Event)
ToRecord = Callable[[Cursor, HydratedEvent], Awaitable[Record | None]]
"""Returns the event's record, or None if the viewer may not see the event."""


async def viewer_events(
    hub: Hub,
    stream: Stream,
    since: StreamPosition | None,
    to_record: ToRecord[Record],
    renew: Callable[[], Awaitable[None]] | None = None,
) -> AsyncGenerator[StreamReady | Record, None]:
    """Yields one viewer's events of one stream. After a failure it continues after the last event.

    `renew` is called before the subscription begins, and then with each event and after each idle time.
    """
    position = since
    while True:
        try:
            if renew is not None:
                await renew()
            async with aclosing(follow_events(hub, stream, position)) as items:
                async for item in items:
                    if renew is not None:
                        await renew()
                    if isinstance(item, IdleTimeout):
                        continue
                    event = await _record(stream, item, to_record)
                    # Set after the viewer's rights were read: if that read fails, the event must be read again.
                    position = item.position
                    if event is not None:
                        yield event
        except DomainError:
            raise
        except Exception as error:
            # The failure is temporary, and an error would end the subscription.
            log.warning("subscription_restarted", stream=stream.name, error=repr(error))
        await asyncio.sleep(RESTART_S)


async def _record(
    stream: Stream, item: SubscriptionStart | StreamEvent, to_record: ToRecord[Record]
) -> StreamReady | Record | None:
    cursor = format_cursor(stream, item.position)
    if isinstance(item, SubscriptionStart):
        return StreamReady(cursor, item.at, item.resumed)
    return await to_record(cursor, item.event)
