"""Use cases of the audit log."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import require_role
from resolvers.arguments import After, ListLimit, checked_limit, instant_or_none, text_or_none
from resolvers.context import Info
from storage.identity.audit import AuditAction, AuditDetail, AuditEntry, AuditFilter, TargetKind
from storage.identity.records import User
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.stores import Stores

HIDDEN_ID = "hidden"
"""Stands for the id of a community that the viewer may not see."""


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
        instant_or_none(since),
        instant_or_none(until),
    )
    stores = info.context.stores
    if not await shows_target(stores, viewer.key, entry_filter.target_id):
        return []
    entries = await stores.audit.list_entries(
        viewer.organization_id, entry_filter, text_or_none(after), checked_limit(limit)
    )
    return await without_hidden_communities(stores, viewer.key, entries)


async def without_hidden_communities(
    stores: Stores, viewer: UserKey, entries: Sequence[AuditEntry]
) -> list[AuditEntry]:
    """Returns the entries, without what tells of communities and conversations that the viewer may not see.

    Of an act there, the viewer learns the kind, the time, the actor and the person concerned.
    """
    entries = [_without_hidden_subject(entry) for entry in entries]
    ids = {id_ for entry in entries if (id_ := _community_id(entry)) is not None}
    visible = await stores.communities.visible_among(viewer, ids) if ids else {}
    return [
        entry if (id_ := _community_id(entry)) is None or id_ in visible else _without_community(entry)
        for entry in entries
    ]


def _without_community(entry: AuditEntry) -> AuditEntry:
    if entry.target_kind is TargetKind.COMMUNITY:
        return replace(entry, target_id=HIDDEN_ID, details=())
    return replace(entry, details=[AuditDetail("community", HIDDEN_ID)])


def _without_hidden_subject(entry: AuditEntry) -> AuditEntry:
    """Returns the entry without the id of a message about which the ADMINs decided.

    Entries of an earlier release have this id, which contains the topic of a conversation or a PRIVATE community.
    """
    details = {detail.name: detail.value for detail in entry.details}
    is_of_message = entry.action is AuditAction.CONTENT_REPORT_DECIDED and details.get("subject") == "MESSAGE"
    if not is_of_message or "community" in details:
        return entry
    return replace(entry, details=[detail for detail in entry.details if detail.name != "id"])


def _community_id(entry: AuditEntry) -> str | None:
    """Returns the id of the community in which the act took place, or None for other acts."""
    if entry.target_kind is TargetKind.COMMUNITY:
        return entry.target_id
    return next((detail.value for detail in entry.details if detail.name == "community"), None)


async def shows_target(stores: Stores, viewer: UserKey, target_id: str | None) -> bool:
    """Returns whether entries about the object may be shown. False for a community that the viewer may not see."""
    if target_id is None or await stores.communities.find(viewer.organization_id, target_id) is None:
        return True
    return bool(await stores.communities.visible_among(viewer, [target_id]))


async def actor(root: Parent[AuditEntry], info: Info) -> User | None:
    """Returns the user who made the change; None if there is no such user, as for the command line."""
    return await info.context.stores.users.find(root.organization_id, root.actor_id)


async def actors(entries: Sequence[AuditEntry], info: Info) -> list[User | None]:
    """Returns the user who made each change; None if there is no such user, as for the command line."""
    return await _users(entries, [entry.actor_id for entry in entries], info)


async def target_user(root: Parent[AuditEntry], info: Info) -> User | None:
    """Returns the user that was changed; None for objects of other kinds."""
    if root.target_kind is not TargetKind.USER:
        return None
    return await info.context.stores.users.find(root.organization_id, root.target_id)


async def target_users(entries: Sequence[AuditEntry], info: Info) -> list[User | None]:
    """Returns for each entry the user that was changed; None for objects of other kinds."""
    ids = [entry.target_id if entry.target_kind is TargetKind.USER else None for entry in entries]
    return await _users(entries, ids, info)


async def _users(entries: Sequence[AuditEntry], ids: Sequence[str | None], info: Info) -> list[User | None]:
    """Returns the user of each id, or None, in the organization of the entries."""
    if not entries:
        return []
    return await info.context.stores.users.find_or_none(entries[0].organization_id, ids)
