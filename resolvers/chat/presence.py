"""Presence: who is online among the people of a community or conversation, and the switches that hide it."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import strawberry
import structlog
from strawberry import ID, UNSET

from resolvers.access import participants_among, require_member, require_participant, require_role
from resolvers.arguments import text_or_none
from resolvers.context import Context, Info
from resolvers.events import Event, StreamReady, ViewerEventSource
from storage.errors import BadUserInput, Forbidden
from storage.identity.records import User
from storage.identity.roles import Role
from storage.streams.log import Stream, StreamPosition, format_cursor

MAX_PEOPLE = 100
READ_EVERY_S = 5.0
"""How often a subscription reads who is online, in seconds."""

READ_TOGETHER_S = 0.5
"""Subscriptions read at multiples of this time, so that their lookups are batched."""

PRESENCE = "presence"
NO_POSITION = StreamPosition("", 0)

CommunityId = Annotated[
    ID | None,
    strawberry.argument(
        description="Id of a community or of a conversation. Omitted or null: people who have joined any community or "
        "conversation that the viewer has joined."
    ),
]
UserIds = Annotated[
    list[ID], strawberry.argument(description=f"Ids of the people to look for, at most {MAX_PEOPLE}, such as a page.")
]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PresenceSettings:
    """Whether others see the viewer's presence, and whether the viewer's organization has presence."""

    shown: bool
    enabled: bool


@dataclass(frozen=True, slots=True)
class OnlinePeopleEvent(Event):
    """The people of a subscription who are online now; None if they are not known."""

    kind: str
    online_user_ids: list[str] | None


async def online_user_ids(info: Info, user_ids: UserIds, community_id: CommunityId = UNSET) -> list[str] | None:
    """Returns those of the people who are online and visible to the viewer; None if it is not known."""
    place = text_or_none(community_id)
    viewer = await _require_viewer(info, place)
    return await _online(info.context, viewer, place, await _checked_people(info, user_ids))


async def presence_settings(info: Info) -> PresenceSettings:
    """Returns the switches of the viewer and of the organization."""
    viewer, stores = require_member(info), info.context.stores
    stored, is_enabled = await asyncio.gather(
        stores.users.get(*viewer.key), stores.presence_settings.is_enabled(viewer.organization_id)
    )
    return PresenceSettings(not stored.hides_presence, is_enabled)


async def set_presence_shown(
    info: Info,
    shown: Annotated[bool, strawberry.argument(description="Whether others see if the viewer is online and typing.")],
) -> PresenceSettings:
    """Shows or hides the viewer's presence."""
    await info.context.stores.presence_settings.set_shown(require_member(info).key, shown)
    return await presence_settings(info)


async def set_presence_enabled(
    info: Info,
    enabled: Annotated[bool, strawberry.argument(description="Whether people of the organization see presence.")],
) -> PresenceSettings:
    """Turns presence on or off for the organization."""
    require_role(info, Role.ADMIN)
    await info.context.stores.presence_settings.set_enabled(info.context.actor, enabled)
    return await presence_settings(info)


async def blocked_in_any_direction(context: Context, user: User, others: Collection[str]) -> frozenset[str]:
    """Returns those of the others whom the user blocked, or who blocked the user."""
    relations = context.stores.relations
    blocked, blockers = await asyncio.gather(
        relations.blocked_users_of(user.organization_id, user.id),
        relations.blockers_among(user.organization_id, user.id, others),
    )
    return blockers | blocked.intersection(others)


async def people_with_presence(
    context: Context, viewer: User, community_id: str | None, ids: Collection[str]
) -> list[User]:
    """Returns those of the people whose presence the viewer may see in the community or conversation; None: in any."""
    if community_id is None:
        participants = await context.stores.communities.people_met_by(viewer.key, ids)
    else:
        participants = await participants_among(context, viewer.organization_id, community_id, ids)
    users = await context.stores.users.find_many(viewer.organization_id, participants)
    hidden = await blocked_in_any_direction(context, viewer, participants)
    return [
        user
        for user in users
        if user.id not in hidden and not (user.hides_presence or user.is_deactivated or user.is_erased)
    ]


async def _require_viewer(info: Info, community_id: str | None) -> User:
    """Returns the viewer. Raises: NotFound, Forbidden unless the viewer has joined the community or conversation."""
    return require_member(info) if community_id is None else await require_participant(info, community_id)


async def _checked_people(info: Info, user_ids: Sequence[str]) -> list[str]:
    """Returns the ids, each once. Raises: BadUserInput; NotFound for an id of no user of the organization."""
    distinct = list(dict.fromkeys(user_ids))
    if not 1 <= len(distinct) <= MAX_PEOPLE:
        raise BadUserInput("userIds", f"1 to {MAX_PEOPLE} ids, not {len(distinct)}")
    await info.context.stores.users.get_all(require_member(info).organization_id, distinct)
    return distinct


async def _online(
    context: Context, viewer: User, community_id: str | None, user_ids: Sequence[str]
) -> list[str] | None:
    stores, organization_id = context.stores, viewer.organization_id
    if not await stores.presence_settings.is_enabled(organization_id):
        return None
    people = await people_with_presence(context, viewer, community_id, user_ids)
    online = await stores.online.online_among(organization_id, [user.id for user in people])
    return None if online is None else [user_id for user_id in user_ids if user_id in online]


@dataclass(frozen=True, slots=True)
class PresenceEventSource(ViewerEventSource):
    """A viewer's subscription to who is online among some people. Events follow when this changes."""

    context: Context
    viewer: User
    community_id: str | None
    user_ids: Sequence[str]

    def __aiter__(self) -> AsyncGenerator[StreamReady | OnlinePeopleEvent, None]:
        return self._events()

    async def _events(self) -> AsyncGenerator[StreamReady | OnlinePeopleEvent, None]:
        cursor = format_cursor(Stream(PRESENCE, self.community_id or self.viewer.id), NO_POSITION)
        yield StreamReady(cursor, datetime.now(UTC), False)
        last: list[str] | None = []
        is_first = True
        while True:
            online = await self._read()
            if is_first or online != last:
                yield OnlinePeopleEvent(cursor, datetime.now(UTC), "OnlinePeopleChanged", online)
            last, is_first = online, False
            await _pause()

    async def _read(self) -> list[str] | None:
        """Returns who is online; None if it cannot be read now. Raises: Forbidden for a viewer who has left."""
        try:
            viewer, place = self.viewer, self.community_id
            if place and not await participants_among(self.context, viewer.organization_id, place, [viewer.id]):
                raise Forbidden("You are no longer a member of the community.")
            return await _online(self.context, viewer, place, self.user_ids)
        except Forbidden:
            raise
        except Exception as error:
            # The failure is temporary, and an error would end the subscription.
            log.warning("presence_unread", error=repr(error))
            return None


async def _pause() -> None:
    """Waits for about READ_EVERY_S, until the next common time of reading."""
    now = asyncio.get_running_loop().time()
    await asyncio.sleep(READ_EVERY_S - (now % READ_TOGETHER_S) + READ_TOGETHER_S)


async def presence_events(info: Info, user_ids: UserIds, community_id: CommunityId = UNSET) -> PresenceEventSource:
    """Subscribes to who is online among some people of a community or conversation."""
    place = text_or_none(community_id)
    viewer = await _require_viewer(info, place)
    return PresenceEventSource(info.context, viewer, place, await _checked_people(info, user_ids))
