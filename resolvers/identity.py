"""Users: the viewer and their profile, users by id, search, and blocks."""

from collections.abc import Sequence
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import require_member, require_signed_in, require_visible_topics
from resolvers.arguments import ListLimit, checked_limit, checked_name, checked_text, text_or_none
from resolvers.context import Info
from storage.errors import BadUserInput
from storage.identity.handles.names import ProfileFields
from storage.identity.handles.suggestions import HANDLE_FORMAT, is_handle
from storage.identity.records import User

MAX_QUERY_CHARS = 100
MAX_BIO_CHARS = 300
MAX_NAME_CHARS = 100


async def viewer(info: Info) -> User | None:
    """Returns the signed-in user as stored now, or None without a token.

    The context's copy may be a minute old, or as old as the socket.
    """
    viewer = info.context.viewer
    return None if viewer is None else await info.context.stores.users.get(viewer.organization_id, viewer.id)


async def user(info: Info, id: Annotated[ID, strawberry.argument(description="Id of the user.")]) -> User:
    """Returns a user of the viewer's organization."""
    return await info.context.stores.users.get(require_signed_in(info).organization_id, id)


async def users(
    info: Info,
    query: Annotated[
        str,
        strawberry.argument(
            description="Prefix of a handle, a name or a word of a name: 1 to 100 characters. A leading @ is ignored."
        ),
    ],
    community_id: Annotated[
        ID | None, strawberry.argument(description="Id of a community whose members are listed before other users.")
    ] = UNSET,
    limit: ListLimit = 10,
) -> list[User]:
    """Searches users by prefixes of their handle or name."""
    viewer = require_member(info)
    stores = info.context.stores
    prefix = query.strip().removeprefix("@")
    if not 1 <= len(prefix) <= MAX_QUERY_CHARS:
        raise BadUserInput("query", f"1 to {MAX_QUERY_CHARS} characters")
    first_community_id = text_or_none(community_id)
    if first_community_id is not None:
        await require_visible_topics(info, first_community_id)
    return await stores.users.search(viewer.organization_id, prefix, checked_limit(limit), first_community_id)


async def blocked_users(info: Info) -> list[User]:
    """Lists the users whom the viewer blocked, by handle."""
    viewer = require_signed_in(info)
    viewer_blocks = await info.context.viewer_blocks()
    users = await info.context.stores.users.find_many(viewer.organization_id, viewer_blocks.blocked)
    return sorted(users, key=lambda user: user.handle)


async def block_user(
    info: Info, user_id: Annotated[ID, strawberry.argument(description="Id of the user to block.")]
) -> User:
    """Blocks a user."""
    viewer = require_member(info)
    if user_id == viewer.id:
        raise BadUserInput("userId", "the id of another user; you cannot block yourself")
    stores = info.context.stores
    await stores.users.get(viewer.organization_id, user_id)
    await stores.relations.block(viewer.organization_id, viewer.id, user_id)
    await stores.conversations.leave_pair(viewer.organization_id, viewer.id, user_id)
    return await stores.users.get(viewer.organization_id, user_id)


async def unblock_user(
    info: Info, user_id: Annotated[ID, strawberry.argument(description="Id of the user to unblock.")]
) -> User:
    """Removes a block."""
    viewer = require_member(info)
    stores = info.context.stores
    unblocked = await stores.users.get(viewer.organization_id, user_id)
    await stores.relations.unblock(viewer.organization_id, viewer.id, user_id)
    return unblocked


@strawberry.input(description="New values of the viewer's profile. Omitted fields stay as they are.")
class UpdateProfileInput:
    name: str | None = strawberry.field(
        default=UNSET,
        description=f"The viewer's display name, 1 to {MAX_NAME_CHARS} characters. Spaces around it are left out. "
        "Later tokens no longer change the name. Null: the name stays as it is.",
    )
    bio: str | None = strawberry.field(
        default=UNSET,
        description=f"What the viewer writes about themselves, at most {MAX_BIO_CHARS} characters. Null or empty: "
        "removes it. Clients show it with the formatting of messages. @handle notifies nobody.",
    )


async def update_profile(
    info: Info, input: Annotated[UpdateProfileInput, strawberry.argument(description="The new values.")]
) -> User:
    """Changes the viewer's profile. Returns the viewer."""
    viewer, users, fields = require_member(info), info.context.stores.users, ProfileFields()
    name = text_or_none(input.name)
    if name is not None:
        fields["name"] = checked_name("name", name, MAX_NAME_CHARS)
    if input.bio is not UNSET:
        fields["bio"] = checked_text("bio", input.bio or "", 0, MAX_BIO_CHARS) or None
    return await users.change_profile(info.context.actor, fields) if fields else await users.get(*viewer.key)


async def change_handle(
    info: Info,
    handle: Annotated[
        str, strawberry.argument(description=f"The new handle: {HANDLE_FORMAT}. It is stored as it is sent, without @.")
    ],
) -> User:
    """Gives the viewer another handle. Returns the viewer."""
    require_member(info)
    if not is_handle(handle):
        raise BadUserInput("handle", HANDLE_FORMAT, f"handle: expected {HANDLE_FORMAT}; found {handle[:100]!r}.")
    return await info.context.stores.users.change_handle(info.context.actor, handle)


async def following(root: Parent[User], info: Info) -> bool:
    """Returns whether the viewer follows the user."""
    viewer = require_signed_in(info)
    return await info.context.stores.relations.follows(viewer.organization_id, viewer.id, root.id)


async def following_of_many(users: Sequence[User], info: Info) -> list[bool]:
    """Returns for each user whether the viewer follows the user."""
    viewer, ids = require_signed_in(info), {user.id for user in users}
    followed = await info.context.stores.relations.followed_among(viewer.organization_id, viewer.id, ids)
    return [user.id in followed for user in users]


async def blocked(root: Parent[User], info: Info) -> bool:
    """Returns whether the viewer has blocked the user."""
    return root.id in (await info.context.viewer_blocks()).blocked


async def blocked_of_many(users: Sequence[User], info: Info) -> list[bool]:
    """Returns for each user whether the viewer has blocked the user."""
    blocked_ids = (await info.context.viewer_blocks()).blocked
    return [user.id in blocked_ids for user in users]
