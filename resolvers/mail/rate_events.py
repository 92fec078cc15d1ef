"""Subscription to an organization's bounce rates."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from strawberry import UNSET

from resolvers.access import granted_roles, require_role
from resolvers.arguments import Since, text_or_none
from resolvers.context import Context, Info
from resolvers.events import Event, StreamReady, ViewerEventSource, viewer_events
from storage.identity.records import User
from storage.identity.roles import Role
from storage.mail.rate_events import bounce_rates_stream
from storage.mail.records import BounceRate
from storage.streams.hub import HydratedEvent
from storage.streams.log import Cursor, StreamPosition, parse_cursor

ROLES = (Role.OPERATOR, Role.SERVICE)


@dataclass(frozen=True, slots=True)
class BounceRateEvent(Event):
    """A day's changed rate. `kind` is the event's GraphQL type."""

    kind: str
    rate: BounceRate


@dataclass(frozen=True, slots=True)
class BounceRateEventSource(ViewerEventSource):
    """The changes of an organization's bounce rates, while the viewer has a role that may read them."""

    context: Context
    viewer: User
    since: StreamPosition | None

    def __aiter__(self) -> AsyncGenerator[StreamReady | BounceRateEvent, None]:
        stream = bounce_rates_stream(self.viewer.organization_id)
        return viewer_events(self.context.stores.hub, stream, self.since, self._visible_record)

    async def _visible_record(self, cursor: Cursor, event: HydratedEvent) -> BounceRateEvent | None:
        """Returns the event's record, or None if the viewer has lost the role."""
        if granted_roles(self.context).isdisjoint(ROLES):
            return None
        return BounceRateEvent(cursor, event.event.at, event.event.kind, event.subject)


async def bounce_rate_events(info: Info, since: Since = UNSET) -> BounceRateEventSource:
    """Subscribes to changes of the organization's bounce rates."""
    viewer, cursor = require_role(info, *ROLES), text_or_none(since)
    position = None if cursor is None else parse_cursor(bounce_rates_stream(viewer.organization_id), cursor)
    return BounceRateEventSource(info.context, viewer, position)
