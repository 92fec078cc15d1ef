"""Following and unfollowing."""

from typing import Annotated

import strawberry
from strawberry import ID

from resolvers.access import member
from resolvers.context import Info
from storage.errors import BadUserInput
from storage.feed.follows import FollowPair
from storage.identity.records import User

UserId = Annotated[ID, strawberry.argument(description="Whom.")]


async def follow(info: Info, user_id: UserId) -> User:
    """Follows somebody."""
    pair = await _pair(info, user_id)
    await info.context.stores.follows.follow(pair)
    return await info.context.stores.users.get(pair.organization_id, user_id)


async def unfollow(info: Info, user_id: UserId) -> User:
    """Follows somebody no more."""
    pair = await _pair(info, user_id)
    await info.context.stores.follows.unfollow(pair)
    return await info.context.stores.users.get(pair.organization_id, user_id)


async def _pair(info: Info, user_id: str) -> FollowPair:
    viewer = member(info)
    if user_id == viewer.id:
        raise BadUserInput("userId", "somebody else: one's own posts are in the home feed anyway")
    await info.context.stores.users.get(viewer.organization_id, user_id)
    return FollowPair(viewer.organization_id, viewer.id, user_id)
