"""Owners and moderators of communities: roles, removals, bans and mutes."""

from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import (
    find_community_without_owner,
    find_visible_community,
    require_member,
    require_moderator,
    require_role,
    require_visible_topics,
    viewer_role,
    visible_community,
)
from resolvers.arguments import (
    After,
    ListLimit,
    checked_limit,
    checked_text,
    instant_or_none,
    text_or_none,
)
from resolvers.chat.communities import CommunityId
from resolvers.context import Info
from storage.chat.records import Community, CommunityBan, CommunityMember
from storage.chat.roles import CommunityRole, Moderator, may_act_on
from storage.errors import BadUserInput, Conflict, Forbidden
from storage.identity.records import User
from storage.identity.roles import Role

MAX_REASON_CHARS = 500

UserId = Annotated[ID, strawberry.argument(description="Id of the person.")]
AfterUserId = Annotated[
    ID | None,
    strawberry.argument(description="Id of the last person of the previous page. Omitted or null: the first page."),
]


async def own_role(root: Parent[Community], info: Info) -> CommunityRole | None:
    """Returns the viewer's role in the community, or None."""
    return await viewer_role(info, root.id)


async def own_mute(root: Parent[Community], info: Info) -> datetime | None:
    """Returns when the viewer's mute ends, or None."""
    return await info.context.stores.moderation.muted_until(root.id, require_member(info).id)


async def community_members(
    info: Info,
    community_id: CommunityId,
    role: Annotated[
        CommunityRole | None,
        strawberry.argument(description="Only members with this role. Omitted or null: all members."),
    ] = UNSET,
    user_id: Annotated[
        ID | None,
        strawberry.argument(description="Only the person with this id, if a member. Omitted or null: all members."),
    ] = UNSET,
    after_user_id: AfterUserId = UNSET,
    limit: ListLimit = 50,
) -> list[CommunityMember]:
    """Lists the community's members with their roles, by handle."""
    viewer, stores = require_member(info), info.context.stores
    community = await find_community_without_owner(info, community_id)
    if community is None:
        community = await require_visible_topics(info, community_id)
    last_handle = await stores.users.last_handle(viewer.organization_id, text_or_none(after_user_id))
    only_role = role if isinstance(role, CommunityRole) else None
    only_id = text_or_none(user_id)
    if only_id is not None:
        await _require_user(info, only_id)
        member = await stores.moderation.member(community.id, only_id)
        return [member] if member is not None and only_role in (None, member.role) else []
    return await stores.moderation.members(community.id, only_role, last_handle, checked_limit(limit))


async def community_bans(
    info: Info, community_id: CommunityId, after_user_id: AfterUserId = UNSET, limit: ListLimit = 50
) -> list[CommunityBan]:
    """Lists the bans of a community that are in force, by user id."""
    community, _ = await require_moderator(info, community_id)
    last_id = text_or_none(after_user_id)
    if last_id is not None:
        await info.context.stores.users.get(community.organization_id, last_id)
    return await info.context.stores.moderation.bans(community.id, last_id, checked_limit(limit))


async def set_community_role(
    info: Info,
    community_id: CommunityId,
    user_id: UserId,
    role: Annotated[CommunityRole, strawberry.argument(description="New role of the member.")],
) -> CommunityMember:
    """Sets a member's role."""
    community, moderator = await _require_appointer(info, community_id, role)
    user = await _require_user(info, user_id)
    if role is CommunityRole.OWNER and user.is_deactivated:
        raise BadUserInput("userId", "the id of a member whose account is active")
    await info.context.stores.moderation.set_role(community, moderator, user_id, role)
    return await require_membership(info, community, user_id)


async def _require_appointer(info: Info, community_id: str, role: CommunityRole) -> tuple[Community, Moderator]:
    """Returns a community and the viewer as the one who sets a role there.

    An ADMIN appoints an owner of a community that nobody else can manage, also of a PRIVATE one.

    Raises: NotFound, Forbidden.
    """
    community = await find_community_without_owner(info, community_id)
    if community is None:
        return await require_moderator(info, community_id)
    if role is not CommunityRole.OWNER:
        raise Forbidden("The community has no owner. Make a member its owner, who sets the other roles.")
    return community, Moderator(require_member(info).id, True, info.context.actor)


async def communities_without_owner(info: Info, after: After = UNSET, limit: ListLimit = 50) -> list[Community]:
    """Lists communities that have members, but no active owner, by id."""
    viewer, communities = require_role(info, Role.ADMIN), info.context.stores.communities
    after_id = text_or_none(after)
    if after_id is not None and await find_community_without_owner(info, after_id) is None:
        await visible_community(info, after_id)
    return await communities.list_without_owner(viewer.organization_id, after_id, checked_limit(limit))


async def visible_name(root: Parent[Community], info: Info) -> str | None:
    """Returns the community's name, or None if the viewer may not see the community."""
    return None if await find_visible_community(info, root.id) is None else root.name


async def kick_member(info: Info, community_id: CommunityId, user_id: UserId) -> Community:
    """Removes a member."""
    community, moderator = await require_moderator(info, community_id)
    await _require_user(info, user_id)
    await info.context.stores.moderation.kick(community, moderator, user_id)
    return await _reread(info, community)


async def ban_member(
    info: Info,
    community_id: CommunityId,
    user_id: UserId,
    reason: Annotated[
        str, strawberry.argument(description="Reason, 1 to 500 characters. Moderators of the community see it.")
    ],
    until: Annotated[
        datetime | None,
        strawberry.argument(description="When the ban ends, in the future. Omitted or null: it does not end."),
    ] = UNSET,
) -> CommunityBan:
    """Bans a person and removes the membership."""
    community, moderator = await require_moderator(info, community_id)
    checked_text("reason", reason, 1, MAX_REASON_CHARS)
    await _require_user(info, user_id)
    ends_at = instant_or_none(until)
    return await info.context.stores.moderation.ban_member(community, moderator, user_id, ends_at, reason)


async def unban_member(info: Info, community_id: CommunityId, user_id: UserId) -> Community:
    """Ends a ban."""
    community, moderator = await require_moderator(info, community_id)
    await _require_user(info, user_id)
    await info.context.stores.moderation.unban(community, moderator, user_id)
    return community


async def mute_member(
    info: Info,
    community_id: CommunityId,
    user_id: UserId,
    until: Annotated[datetime, strawberry.argument(description="When the mute ends, in the future.")],
) -> CommunityMember:
    """Mutes a member until an instant."""
    community, moderator = await require_moderator(info, community_id)
    await _require_user(info, user_id)
    await info.context.stores.moderation.mute(community, moderator, user_id, until)
    return await require_membership(info, community, user_id)


async def unmute_member(info: Info, community_id: CommunityId, user_id: UserId) -> Community:
    """Ends a mute."""
    community, moderator = await require_moderator(info, community_id)
    await _require_user(info, user_id)
    await info.context.stores.moderation.mute(community, moderator, user_id, None)
    return community


async def member_user(root: Parent[CommunityMember], info: Info) -> User:
    """Returns the member."""
    return await info.context.stores.users.get(require_member(info).organization_id, root.user_id)


async def muted_until(root: Parent[CommunityMember], info: Info) -> datetime | None:
    """Returns when the member's mute ends, or None for a member who is not muted.

    For viewers who are neither the member nor a moderator or owner, returns None too.
    """
    viewer, moderation = require_member(info), info.context.stores.moderation
    if root.user_id != viewer.id and not may_act_on(await viewer_role(info, root.community_id), False, None):
        return None
    return await moderation.muted_until(root.community_id, root.user_id)


async def banned_user(root: Parent[CommunityBan], info: Info) -> User:
    """Returns the banned person."""
    return await info.context.stores.users.get(require_member(info).organization_id, root.user_id)


async def banned_by(root: Parent[CommunityBan], info: Info) -> User:
    """Returns the moderator who banned the person."""
    return await info.context.stores.users.get(require_member(info).organization_id, root.banned_by_id)


async def _reread(info: Info, community: Community) -> Community:
    """Returns the community as it is stored now."""
    return await info.context.stores.communities.get(community.organization_id, community.id)


async def _require_user(info: Info, user_id: str) -> User:
    """Returns a user of the viewer's organization. Raises: NotFound."""
    return await info.context.stores.users.get(require_member(info).organization_id, user_id)


async def require_membership(info: Info, community: Community, user_id: str) -> CommunityMember:
    """Returns the member. Raises: Conflict for a person who has just left."""
    member = await info.context.stores.moderation.member(community.id, user_id)
    if member is None:
        raise Conflict("The person has just left the community.")
    return member
