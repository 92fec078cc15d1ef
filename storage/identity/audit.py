"""The audit log: who did what to whom, when and from where.

Each administrative change inserts its entry in its own transaction, so there is no change without an entry. Entries
are never changed. MongoDB deletes them two years later.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import NotFound
from storage.identity.documents import AuditDocument
from storage.ids import new_id
from storage.mongo import Document, Mongo, Session

AUDIT = "audit"
COMMAND_LINE = "command-line"
"""The id of the actor in entries about changes by the command `noroshi`."""


class AuditAction(Enum):
    """Kind of an administrative change. The value is stored."""

    USER_ROLES_SET = "USER_ROLES_SET"
    USER_DEACTIVATED = "USER_DEACTIVATED"
    USER_REACTIVATED = "USER_REACTIVATED"
    USER_ERASED = "USER_ERASED"
    COMMUNITY_ROLE_SET = "COMMUNITY_ROLE_SET"
    COMMUNITY_MEMBER_KICKED = "COMMUNITY_MEMBER_KICKED"
    COMMUNITY_MEMBER_BANNED = "COMMUNITY_MEMBER_BANNED"
    COMMUNITY_MEMBER_UNBANNED = "COMMUNITY_MEMBER_UNBANNED"
    COMMUNITY_MEMBER_MUTED = "COMMUNITY_MEMBER_MUTED"
    COMMUNITY_MEMBER_UNMUTED = "COMMUNITY_MEMBER_UNMUTED"
    COMMUNITY_MEMBER_ADDED = "COMMUNITY_MEMBER_ADDED"
    COMMUNITY_JOIN_REFUSED = "COMMUNITY_JOIN_REFUSED"
    COMMUNITY_CHANGED = "COMMUNITY_CHANGED"
    COMMUNITY_ARCHIVED = "COMMUNITY_ARCHIVED"
    COMMUNITY_UNARCHIVED = "COMMUNITY_UNARCHIVED"
    MESSAGE_PINNED = "MESSAGE_PINNED"
    MESSAGE_UNPINNED = "MESSAGE_UNPINNED"
    TOPIC_SLOW_MODE_SET = "TOPIC_SLOW_MODE_SET"
    MESSAGE_DELETED = "MESSAGE_DELETED"
    CONTENT_REPORT_DECIDED = "CONTENT_REPORT_DECIDED"
    FIRST_ADMIN_CREATED = "FIRST_ADMIN_CREATED"
    INVITATION_CREATED = "INVITATION_CREATED"
    INVITATION_REVOKED = "INVITATION_REVOKED"
    INVITATION_ACCEPTED = "INVITATION_ACCEPTED"
    PASSWORD_CHANGED = "PASSWORD_CHANGED"  # noqa: S105 - a kind of change
    SERVICE_KEY_CREATED = "SERVICE_KEY_CREATED"
    SERVICE_KEY_ROTATED = "SERVICE_KEY_ROTATED"
    SERVICE_KEY_REVOKED = "SERVICE_KEY_REVOKED"


class TargetKind(Enum):
    """Kind of the object that was changed. The value is stored."""

    USER = "USER"
    COMMUNITY = "COMMUNITY"
    INVITATION = "INVITATION"
    SERVICE_KEY = "SERVICE_KEY"


@dataclass(frozen=True, slots=True)
class Actor:
    """The user who does something, and where the request comes from."""

    organization_id: str
    user_id: str
    address: str | None = None
    """IP address of the client; None for the command line and for jobs."""

    user_agent: str | None = None
    is_command_line: bool = False
    """Whether an operator acts by the command `noroshi`, which needs no role."""


def command_line_actor(organization_id: str) -> Actor:
    """Returns the actor of changes that an operator makes by the command `noroshi`."""
    return Actor(organization_id, COMMAND_LINE, is_command_line=True)


@dataclass(frozen=True, slots=True)
class AuditDetail:
    """A value that describes a change."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry as read from the database."""

    id: str
    organization_id: str
    at: datetime
    actor_id: str
    action: AuditAction
    target_kind: TargetKind
    target_id: str
    details: Sequence[AuditDetail]
    address: str | None
    user_agent: str | None


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries to read. None selects all."""

    actor_id: str | None = None
    target_id: str | None = None
    action: AuditAction | None = None
    since: datetime | None = None
    """The earliest time, included."""

    until: datetime | None = None
    """The latest time, excluded."""


def audit_document(
    actor: Actor, action: AuditAction, kind: TargetKind, target_id: str, at: datetime, **details: str
) -> AuditDocument:
    """Returns the entry to insert in the transaction of the change."""
    return {
        "_id": new_id(),
        "org": actor.organization_id,
        "at": at,
        "actor": actor.user_id,
        "action": action.value,
        "kind": kind.value,
        "target": target_id,
        "details": details,
        "address": actor.address,
        "agent": actor.user_agent,
    }


class AuditLog:
    """Inserts and reads audit entries."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._entries: AsyncCollection[AuditDocument] = mongo[AUDIT]

    async def insert(self, document: AuditDocument, session: Session) -> None:
        """Inserts an entry in the transaction of the change that it describes."""
        await self._entries.insert_one(document, session=session)

    async def list_entries(
        self, organization_id: str, wanted: AuditFilter, after: str | None, limit: int
    ) -> list[AuditEntry]:
        """Returns entries, the newest first: those after the entry `after`, or from the newest if it is None.

        Raises: NotFound if `after` does not exist.
        """
        query = _query(organization_id, wanted)
        if after is not None:
            last = await self._find(organization_id, after)
            query["$or"] = [{"at": {"$lt": last["at"]}}, {"at": last["at"], "_id": {"$lt": last["_id"]}}]
        rows: list[AuditDocument] = await self._mongo.find(AUDIT, query, sort=[("at", -1), ("_id", -1)], limit=limit)
        return [_entry(row) for row in rows]

    async def _find(self, organization_id: str, id_: str) -> AuditDocument:
        found = await self._entries.find_one({"_id": id_, "org": organization_id})
        if found is None:
            raise NotFound("audit entry", id_)
        return found


def _query(organization_id: str, wanted: AuditFilter) -> Document:
    values = {
        "actor": wanted.actor_id,
        "target": wanted.target_id,
        "action": wanted.action and wanted.action.value,
    }
    query: Document = {"org": organization_id} | {key: value for key, value in values.items() if value is not None}
    between: dict[str, Any] = {"$gte": wanted.since, "$lt": wanted.until}
    between = {key: value for key, value in between.items() if value is not None}
    return query | ({"at": between} if between else {})


def _entry(row: AuditDocument) -> AuditEntry:
    return AuditEntry(
        id=row["_id"],
        organization_id=row["org"],
        at=row["at"],
        actor_id=row["actor"],
        action=AuditAction(row["action"]),
        target_kind=TargetKind(row["kind"]),
        target_id=row["target"],
        details=[AuditDetail(name, value) for name, value in row["details"].items()],
        address=row["address"],
        user_agent=row["agent"],
    )
