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

MAX_PREFIX_CHARS = 100
MAX_REASON_CHARS = 500

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
    last_id = text_or_none(after)
    last_handle = None if last_id is None else (await stores.users.get(viewer.organization_id, last_id)).handle
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
    return await info.context.stores.user_administration.deactivate(info.context.actor, user_id, reason)


async def reactivate_user(info: Info, user_id: OtherUserId) -> User:
    """Lets a deactivated user sign in again."""
    require_role(info, Role.ADMIN)
    return await info.context.stores.user_administration.reactivate(info.context.actor, user_id)
