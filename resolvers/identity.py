"""Users: who asks, finding others, blocking."""

from typing import Annotated

import strawberry
from strawberry import ID, Parent

from resolvers.access import member, signed_in
from resolvers.arguments import ListLimit, checked_limit, given
from resolvers.context import Info
from storage.errors import BadUserInput
from storage.identity.records import User

MAX_QUERY = 100


async def viewer(info: Info) -> User | None:
    """The signed-in user, as stored now: what is in the context may be a minute old, on a socket as old as that."""
    viewer = info.context.viewer
    return None if viewer is None else await info.context.stores.users.get(viewer.organization_id, viewer.id)


async def user(info: Info, id: Annotated[ID, strawberry.argument(description="The user's id.")]) -> User:
    """A user of the viewer's organization."""
    return await info.context.stores.users.get(signed_in(info).organization_id, id)


async def users(
    info: Info,
    query: Annotated[str, strawberry.argument(description="The beginning of a handle, a name, or a word of it.")],
    community_id: Annotated[
        ID | None, strawberry.argument(description="Members of this community come first.")
    ] = strawberry.UNSET,
    limit: ListLimit = 10,
) -> list[User]:
    """Users by the beginning of their handle or name."""
    asker = member(info)
    stores = info.context.stores
    wanted = query.strip().removeprefix("@")
    if not 1 <= len(wanted) <= MAX_QUERY:
        raise BadUserInput("query", f"1 to {MAX_QUERY} characters")
    community = given(community_id)
    if community is not None:
        await stores.communities.get(asker.organization_id, community)
    return await stores.users.search(asker.organization_id, wanted, checked_limit(limit), community)


async def blocked_users(info: Info) -> list[User]:
    """Whom the viewer blocked, by handle."""
    asker = signed_in(info)
    visibility = await info.context.visibility()
    found = await info.context.stores.users.find_many(asker.organization_id, visibility.blocked)
    return sorted(found, key=lambda user: user.handle)


async def block_user(info: Info, user_id: Annotated[ID, strawberry.argument(description="Whom to block.")]) -> User:
    """Blocks somebody."""
    asker = member(info)
    if user_id == asker.id:
        raise BadUserInput("userId", "somebody else: nobody can block themselves")
    stores = info.context.stores
    await stores.users.get(asker.organization_id, user_id)
    await stores.relations.block(asker.organization_id, asker.id, user_id)
    return await stores.users.get(asker.organization_id, user_id)


async def unblock_user(info: Info, user_id: Annotated[ID, strawberry.argument(description="Whom to unblock.")]) -> User:
    """Ends a block."""
    asker = member(info)
    stores = info.context.stores
    found = await stores.users.get(asker.organization_id, user_id)
    await stores.relations.unblock(asker.organization_id, asker.id, user_id)
    return found


async def following(root: Parent[User], info: Info) -> bool:
    """Whether the viewer follows this user."""
    asker = signed_in(info)
    return await info.context.stores.relations.follows(asker.organization_id, asker.id, root.id)


async def blocked(root: Parent[User], info: Info) -> bool:
    """Whether the viewer has blocked this user."""
    return root.id in (await info.context.visibility()).blocked
