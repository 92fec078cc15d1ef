"""The audit log: an entry for each administrative change, with its actor, target, time, and the actor's client.

Each administrative change inserts its entry in its own transaction, so there is no change without an entry. Only an
erasure changes an entry: it removes details, address and client. MongoDB deletes entries after two years.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import NotFound
from storage.identity.documents import AuditEntryDocument
from storage.ids import new_id
from storage.mongo import Document, Mongo, Session
from storage.streams.changes import Batch

AUDIT = "audit"
COMMAND_LINE = "command-line"
"""The id of the actor in entries about changes by the command `noroshi`."""


class AuditAction(Enum):
    """Kind of an administrative change. The value is stored."""

    USER_ROLES_SET = "USER_ROLES_SET"
    USER_DEACTIVATED = "USER_DEACTIVATED"
    USER_REACTIVATED = "USER_REACTIVATED"
    USER_SESSIONS_ENDED = "USER_SESSIONS_ENDED"
    USER_ERASED = "USER_ERASED"
    RETENTION_RULE_SET = "RETENTION_RULE_SET"
    PRESENCE_SET = "PRESENCE_SET"
    STAMP_PACK_CREATED = "STAMP_PACK_CREATED"
    STAMP_PACK_REMOVED = "STAMP_PACK_REMOVED"
    STAMP_PACK_AVAILABILITY_SET = "STAMP_PACK_AVAILABILITY_SET"
    STAMP_PACK_GIVEN = "STAMP_PACK_GIVEN"
    STAMP_PACK_TAKEN_BACK = "STAMP_PACK_TAKEN_BACK"
    STAMP_ADDED = "STAMP_ADDED"
    STAMP_REMOVED = "STAMP_REMOVED"
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
    TOPIC_RENAMED = "TOPIC_RENAMED"
    TOPIC_ARCHIVED = "TOPIC_ARCHIVED"
    TOPIC_UNARCHIVED = "TOPIC_UNARCHIVED"
    MESSAGE_DELETED = "MESSAGE_DELETED"
    CONTENT_REPORT_DECIDED = "CONTENT_REPORT_DECIDED"
    FIRST_ADMIN_CREATED = "FIRST_ADMIN_CREATED"
    INVITATION_CREATED = "INVITATION_CREATED"
    INVITATION_REVOKED = "INVITATION_REVOKED"
    INVITATION_ACCEPTED = "INVITATION_ACCEPTED"
    PASSWORD_CHANGED = "PASSWORD_CHANGED"  # noqa: S105 - a kind of change
    POST_DELETED = "POST_DELETED"
    ACCOUNT_CONNECTED = "ACCOUNT_CONNECTED"
    ACCOUNT_DISCONNECTED = "ACCOUNT_DISCONNECTED"
    ACCOUNT_CREDENTIALS_REPLACED = "ACCOUNT_CREDENTIALS_REPLACED"
    SCHEDULED_POST_CANCELLED = "SCHEDULED_POST_CANCELLED"
    SCHEDULED_POST_RELEASED = "SCHEDULED_POST_RELEASED"
    PUBLICATION_RESOLVED = "PUBLICATION_RESOLVED"
    PUBLICATION_RETRIED = "PUBLICATION_RETRIED"
    CALL_LIMITS_SET = "CALL_LIMITS_SET"
    CALL_JOB_LAUNCHED = "CALL_JOB_LAUNCHED"
    CALL_JOB_PAUSED = "CALL_JOB_PAUSED"
    CALL_JOB_RESUMED = "CALL_JOB_RESUMED"
    CALL_JOB_CANCELLED = "CALL_JOB_CANCELLED"
    DO_NOT_CALL_ADDED = "DO_NOT_CALL_ADDED"
    DO_NOT_CALL_REMOVED = "DO_NOT_CALL_REMOVED"
    MAIL_ADDRESS_BLOCKED = "MAIL_ADDRESS_BLOCKED"
    MAIL_ADDRESS_UNBLOCKED = "MAIL_ADDRESS_UNBLOCKED"
    MAIL_DOMAIN_SET = "MAIL_DOMAIN_SET"
    MAIL_POLICY_SET = "MAIL_POLICY_SET"
    MAIL_SOURCE_REMOVED = "MAIL_SOURCE_REMOVED"
    PASSKEY_ADDED = "PASSKEY_ADDED"
    PASSKEY_REMOVED = "PASSKEY_REMOVED"
    SERVICE_KEY_CREATED = "SERVICE_KEY_CREATED"
    SERVICE_KEY_ROTATED = "SERVICE_KEY_ROTATED"
    SERVICE_KEY_REVOKED = "SERVICE_KEY_REVOKED"
    WEBHOOK_CREATED = "WEBHOOK_CREATED"
    WEBHOOK_CHANGED = "WEBHOOK_CHANGED"
    WEBHOOK_SECRET_ROTATED = "WEBHOOK_SECRET_ROTATED"  # noqa: S105 - a kind of change
    WEBHOOK_ENABLED = "WEBHOOK_ENABLED"
    WEBHOOK_DISABLED = "WEBHOOK_DISABLED"
    WEBHOOK_REPLAYED = "WEBHOOK_REPLAYED"
    WEBHOOK_DELETED = "WEBHOOK_DELETED"


class TargetKind(Enum):
    """Kind of the object that was changed. The value is stored."""

    USER = "USER"
    ORGANIZATION = "ORGANIZATION"
    COMMUNITY = "COMMUNITY"
    INVITATION = "INVITATION"
    SERVICE_KEY = "SERVICE_KEY"
    RETENTION_RULE = "RETENTION_RULE"
    STAMP_PACK = "STAMP_PACK"
    CONNECTED_ACCOUNT = "CONNECTED_ACCOUNT"
    SCHEDULED_POST = "SCHEDULED_POST"
    PUBLICATION = "PUBLICATION"
    CALL_LIMITS = "CALL_LIMITS"
    CALL_JOB = "CALL_JOB"
    DO_NOT_CALL_LIST = "DO_NOT_CALL_LIST"
    MAIL_ADDRESS = "MAIL_ADDRESS"
    MAIL_DOMAIN = "MAIL_DOMAIN"
    MAIL_POLICY = "MAIL_POLICY"
    MAIL_SOURCE = "MAIL_SOURCE"
    WEBHOOK = "WEBHOOK"


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
) -> AuditEntryDocument:
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


def put_entry(
    batch: Batch, actor: Actor | None, action: AuditAction, kind: TargetKind, target_id: str, **details: str
) -> None:
    """Puts the entry of a change that the batch commits. Does nothing without an actor, for changes of workers."""
    if actor is not None:
        batch.put(AUDIT, audit_document(actor, action, kind, target_id, batch.at, **details))


class AuditLog:
    """Inserts and reads audit entries."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._entries: AsyncCollection[AuditEntryDocument] = mongo[AUDIT]

    async def insert(self, document: AuditEntryDocument, session: Session) -> None:
        """Inserts an entry in the transaction of the change that it describes."""
        await self._entries.insert_one(document, session=session)

    async def list_entries(
        self, organization_id: str, entry_filter: AuditFilter, after: str | None, limit: int
    ) -> list[AuditEntry]:
        """Returns entries, the newest first: those after the entry `after`, or from the newest if it is None.

        Raises: NotFound if `after` does not exist.
        """
        query = _query(organization_id, entry_filter)
        if after is not None:
            last = await self._find(organization_id, after)
            query["$or"] = [{"at": {"$lt": last["at"]}}, {"at": last["at"], "_id": {"$lt": last["_id"]}}]
        rows: list[AuditEntryDocument] = await self._mongo.find(
            AUDIT, query, sort=[("at", -1), ("_id", -1)], limit=limit
        )
        return [_entry(row) for row in rows]

    async def _find(self, organization_id: str, id_: str) -> AuditEntryDocument:
        found = await self._entries.find_one({"_id": id_, "org": organization_id})
        if found is None:
            raise NotFound("audit entry", id_)
        return found


def _query(organization_id: str, entry_filter: AuditFilter) -> Document:
    values = {
        "actor": entry_filter.actor_id,
        "target": entry_filter.target_id,
        "action": entry_filter.action and entry_filter.action.value,
    }
    query: Document = {"org": organization_id} | {key: value for key, value in values.items() if value is not None}
    time_range: dict[str, Any] = {"$gte": entry_filter.since, "$lt": entry_filter.until}
    time_range = {key: value for key, value in time_range.items() if value is not None}
    return query | ({"at": time_range} if time_range else {})


def _entry(row: AuditEntryDocument) -> AuditEntry:
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
