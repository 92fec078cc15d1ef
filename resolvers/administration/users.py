"""Use cases of administrators about the users of their organization: listing, roles, and access."""

from typing import Annotated

import strawberry
from strawberry import ID, UNSET

from resolvers.access import require_role
from resolvers.arguments import After, ListLimit, checked_limit, checked_text, text_or_none
from resolvers.context import Info
from storage.errors import BadUserInput
from storage.identity.administration import UserFilter
from storage.identity.records import User
from storage.identity.roles import Role
from storage.identity.session_records import UserSession

MAX_PREFIX_CHARS = 100
MAX_REASON_CHARS = 500

UserId = Annotated[ID, strawberry.argument(description="Id of a user of the viewer's organization.")]
OtherUserId = Annotated[ID, strawberry.argument(description="Id of another user of the viewer's organization.")]


async def organization_users(
    info: Info,
    query: Annotated[
        str | None,
        strawberry.argument(
            description="Prefix of a handle, a name or a word of a name: 1 to 100 characters. Omitted or null: all "
            "users."
        ),
    ] = UNSET,
    role: Annotated[
        Role | None,
        strawberry.argument(description="Only users with exactly this role. Omitted or null: any role."),
    ] = UNSET,
    deactivated: Annotated[
        bool | None,
        strawberry.argument(
            description="true: only deactivated users. false: only active users. Omitted or null: both."
        ),
    ] = UNSET,
    after: After = UNSET,
    limit: ListLimit = 50,
) -> list[User]:
    """Lists users of the organization by handle."""
    viewer = require_role(info, Role.ADMIN)
    stores = info.context.stores
    last_handle = await stores.users.last_handle(viewer.organization_id, text_or_none(after))
    user_filter = UserFilter(
        _prefix(query),
        role if isinstance(role, Role) else None,
        deactivated if isinstance(deactivated, bool) else None,
    )
    return await stores.user_administration.list_users(
        viewer.organization_id, user_filter, last_handle, checked_limit(limit)
    )


def _prefix(query: str | None) -> str | None:
    text = text_or_none(query)
    return None if text is None else checked_text("query", text.strip().removeprefix("@"), 1, MAX_PREFIX_CHARS)


async def set_user_roles(
    info: Info,
    user_id: OtherUserId,
    roles: Annotated[list[Role], strawberry.argument(description="All roles that the user is to have, at least one.")],
) -> User:
    """Replaces a user's roles."""
    require_role(info, Role.ADMIN)
    if not roles:
        raise BadUserInput("roles", "at least one role; to end the user's access use deactivateUser")
    return await info.context.stores.user_administration.set_roles(info.context.actor, user_id, set(roles))


async def deactivate_user(
    info: Info,
    user_id: OtherUserId,
    reason: Annotated[str, strawberry.argument(description="Reason for the audit log, 1 to 500 characters.")],
) -> User:
    """Ends a user's access."""
    require_role(info, Role.ADMIN)
    checked_text("reason", reason, 1, MAX_REASON_CHARS)
    stores = info.context.stores
    user = await stores.user_administration.deactivate(info.context.actor, user_id, reason)
    await stores.held_posts.hold_posts_of(user.organization_id, user.id)
    return user


async def user_sessions(info: Info, user_id: UserId) -> list[UserSession]:
    """Lists a user's sessions, the last used first."""
    viewer = require_role(info, Role.ADMIN)
    stores = info.context.stores
    user = await stores.users.get(viewer.organization_id, user_id)
    return await stores.sessions.list_of(user.key)


async def end_user_sessions(
    info: Info,
    user_id: UserId,
    reason: Annotated[str, strawberry.argument(description="Reason for the audit log, 1 to 500 characters.")],
    session_id: Annotated[
        ID | None,
        strawberry.argument(
            description="Id of one of the user's sessions, to end only this one. Omitted or null: all."
        ),
    ] = UNSET,
) -> int:
    """Signs a user out of all browsers, or of one, and returns their number."""
    require_role(info, Role.ADMIN)
    checked_text("reason", reason, 1, MAX_REASON_CHARS)
    return await info.context.stores.user_administration.end_sessions(
        info.context.actor, user_id, reason, text_or_none(session_id)
    )


async def reactivate_user(info: Info, user_id: OtherUserId) -> User:
    """Lets a deactivated user sign in again."""
    require_role(info, Role.ADMIN)
    return await info.context.stores.user_administration.reactivate(info.context.actor, user_id)
