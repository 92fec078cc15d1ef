"""Use cases of erasure: requests by administrators and by people themselves, and the progress of erasures."""

from collections.abc import Sequence
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import require_role, require_signed_in
from resolvers.arguments import ListLimit, checked_limit, text_or_none
from resolvers.context import Info
from storage.errors import Forbidden
from storage.identity.records import User
from storage.identity.roles import Role
from storage.privacy.erasures import UserErasure
from storage.privacy.steps import STEPS


async def erase_user(
    info: Info,
    user_id: Annotated[
        ID, strawberry.argument(description="Id of the viewer, or for an ADMIN of another user of the organization.")
    ],
    handle: Annotated[
        str, strawberry.argument(description="Handle of the same user, as a confirmation. It may begin with @.")
    ],
) -> UserErasure:
    """Ends a user's access for good, and requests the erasure of everything about the user."""
    viewer = require_signed_in(info)
    if user_id != viewer.id:
        require_role(info, Role.ADMIN)
    elif Role.ADMIN in info.context.roles:
        raise Forbidden("Another administrator has to erase your account.")
    return await info.context.stores.erasures.request(info.context.actor, user_id, handle)


async def erasures(
    info: Info,
    after_user_id: Annotated[
        ID | None,
        strawberry.argument(
            description="Only erasures after the erasure of this user. Omitted or null: from the newest."
        ),
    ] = UNSET,
    limit: ListLimit = 50,
) -> list[UserErasure]:
    """Lists erasures, the newest first."""
    viewer = require_role(info, Role.ADMIN)
    return await info.context.stores.erasures.list_erasures(
        viewer.organization_id, text_or_none(after_user_id), checked_limit(limit)
    )


async def steps(_root: Parent[UserErasure]) -> int:
    """Returns the number of steps of an erasure."""
    return len(STEPS)


async def changed_objects(_root: Parent[UserErasure]) -> int:
    """Returns 0: the number of changed objects includes the user's direct messages."""
    return 0


async def user(root: Parent[UserErasure], info: Info) -> User:
    """Returns the record that is left of the user."""
    return await info.context.stores.users.get(root.organization_id, root.user_id)


async def users(roots: Sequence[UserErasure], info: Info) -> list[User]:
    """Returns the record that is left of each user."""
    if not roots:
        return []
    return await info.context.stores.users.get_all(roots[0].organization_id, [root.user_id for root in roots])
