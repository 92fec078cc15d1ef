"""Use cases of the audit log."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import require_role
from resolvers.arguments import After, ListLimit, checked_limit, text_or_none
from resolvers.context import Info
from storage.identity.audit import AuditAction, AuditEntry, AuditFilter, TargetKind
from storage.identity.records import User
from storage.identity.roles import Role


async def audit_log(
    info: Info,
    since: Annotated[
        datetime | None, strawberry.argument(description="Earliest time, included. Omitted or null: no bound.")
    ] = UNSET,
    until: Annotated[
        datetime | None, strawberry.argument(description="Latest time, excluded. Omitted or null: no bound.")
    ] = UNSET,
    actor_id: Annotated[
        ID | None, strawberry.argument(description="Only changes that this user made. Omitted or null: by all users.")
    ] = UNSET,
    target_id: Annotated[
        ID | None,
        strawberry.argument(description="Only changes of the object with this id. Omitted or null: of all objects."),
    ] = UNSET,
    action: Annotated[
        AuditAction | None, strawberry.argument(description="Only this kind of change. Omitted or null: all kinds.")
    ] = UNSET,
    after: After = UNSET,
    limit: ListLimit = 50,
) -> list[AuditEntry]:
    """Lists administrative changes, the newest first."""
    viewer = require_role(info, Role.ADMIN)
    entry_filter = AuditFilter(
        text_or_none(actor_id),
        text_or_none(target_id),
        action if isinstance(action, AuditAction) else None,
        since if isinstance(since, datetime) else None,
        until if isinstance(until, datetime) else None,
    )
    return await info.context.stores.audit.list_entries(
        viewer.organization_id, entry_filter, text_or_none(after), checked_limit(limit)
    )


async def actor(root: Parent[AuditEntry], info: Info) -> User | None:
    """Returns the user who made the change."""
    return await info.context.stores.users.find(root.organization_id, root.actor_id)


async def actors(entries: Sequence[AuditEntry], info: Info) -> list[User | None]:
    """Returns the user who made each change."""
    return await _users(entries, [entry.actor_id for entry in entries], info)


async def target_user(root: Parent[AuditEntry], info: Info) -> User | None:
    """Returns the user that was changed; None for objects of other kinds."""
    if root.target_kind is not TargetKind.USER:
        return None
    return await info.context.stores.users.find(root.organization_id, root.target_id)


async def target_users(entries: Sequence[AuditEntry], info: Info) -> list[User | None]:
    """Returns the user that each entry is about."""
    ids = [entry.target_id if entry.target_kind is TargetKind.USER else None for entry in entries]
    return await _users(entries, ids, info)


async def _users(entries: Sequence[AuditEntry], ids: Sequence[str | None], info: Info) -> list[User | None]:
    """Returns the user of each id, or None, in the organization of the entries."""
    if not entries:
        return []
    user_ids = {user_id for user_id in ids if user_id is not None}
    users = await info.context.stores.users.find_many(entries[0].organization_id, user_ids)
    by_id = {user.id: user for user in users}
    return [None if user_id is None else by_id.get(user_id) for user_id in ids]
