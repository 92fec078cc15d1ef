"""Requests to join a community, moderators' decisions about them, and members that moderators add."""

from typing import Annotated

import strawberry
from strawberry import UNSET, Parent

from resolvers.access import require_member, require_moderator, visible_community
from resolvers.arguments import ListLimit, checked_limit, checked_text, text_or_none
from resolvers.chat.communities import CommunityId
from resolvers.chat.moderation import AfterUserId, UserId, require_membership
from resolvers.context import Info
from storage.chat.records import Community, CommunityMember, JoinRequest
from storage.identity.records import User

MAX_REQUEST_CHARS = 500


async def request_to_join(
    info: Info,
    community_id: CommunityId,
    message: Annotated[
        str, strawberry.argument(description="Text for the moderators of the community, at most 500 characters.")
    ] = "",
) -> Community:
    """Asks to join a listed community, or joins a public one."""
    viewer = require_member(info)
    checked_text("message", message, 0, MAX_REQUEST_CHARS)
    community = await visible_community(info, community_id)
    await info.context.stores.moderation.request_to_join(community, viewer, message)
    return await info.context.stores.communities.get(community.organization_id, community.id)


async def join_requests(
    info: Info, community_id: CommunityId, after_user_id: AfterUserId = UNSET, limit: ListLimit = 50
) -> list[JoinRequest]:
    """Lists the requests to join a community by user id."""
    community, _ = await require_moderator(info, community_id)
    last_id = text_or_none(after_user_id)
    if last_id is not None:
        await info.context.stores.users.get(community.organization_id, last_id)
    return await info.context.stores.moderation.join_requests(community.id, last_id, checked_limit(limit))


async def decide_join_request(
    info: Info,
    community_id: CommunityId,
    user_id: UserId,
    approve: Annotated[
        bool, strawberry.argument(description="true: the person becomes a member. false: the request is removed.")
    ],
) -> Community:
    """Approves or refuses a request to join."""
    community, moderator = await require_moderator(info, community_id)
    user = await info.context.stores.users.get(community.organization_id, user_id)
    await info.context.stores.moderation.decide_join_request(community, moderator, user, approve)
    return await info.context.stores.communities.get(community.organization_id, community.id)


async def add_member(info: Info, community_id: CommunityId, user_id: UserId) -> CommunityMember:
    """Makes a person a member."""
    community, moderator = await require_moderator(info, community_id)
    user = await info.context.stores.users.get(community.organization_id, user_id)
    await info.context.stores.moderation.add_member(community, moderator, user)
    return await require_membership(info, community, user_id)


async def requester(root: Parent[JoinRequest], info: Info) -> User:
    """Returns the person who requests to join."""
    return await info.context.stores.users.get(require_member(info).organization_id, root.user_id)
