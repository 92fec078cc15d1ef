"""Follows and unfollows users."""

from typing import Annotated

import strawberry
from strawberry import ID

from resolvers.access import require_member
from resolvers.context import Info
from storage.errors import BadUserInput, NotFound
from storage.feed.follows import FollowPair
from storage.identity.records import User

UserId = Annotated[ID, strawberry.argument(description="Id of the user.")]


async def follow(info: Info, user_id: UserId) -> User:
    """Follows a user."""
    pair = await _pair(info, user_id)
    await info.context.stores.follows.follow(pair)
    return await info.context.stores.users.get(pair.organization_id, user_id)


async def unfollow(info: Info, user_id: UserId) -> User:
    """Unfollows a user."""
    pair = await _pair(info, user_id)
    await info.context.stores.follows.unfollow(pair)
    return await info.context.stores.users.get(pair.organization_id, user_id)


async def _pair(info: Info, user_id: str) -> FollowPair:
    viewer = require_member(info)
    if user_id == viewer.id:
        raise BadUserInput("userId", "the id of another user; your own posts are always in your home feed")
    user = await info.context.stores.users.get(viewer.organization_id, user_id)
    if user.is_erased:
        raise NotFound("user", user_id)
    return FollowPair(viewer.organization_id, viewer.id, user_id)
