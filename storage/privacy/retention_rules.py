"""Retention rules: how long an organization keeps data about people, and when a worker applies each rule next."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import DomainError
from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.rights import lock_actor
from storage.indexes.lifetimes import LEDGER_KEPT_S
from storage.mongo import Document, Mongo, Session, due_filter, seconds_from_now
from storage.privacy.documents import RetentionRuleDocument, RetentionRuleDocumentId

RULES = "retention_rules"
CLAIMED_S = 15
"""How long a worker's claim lasts. Each batch of documents renews it."""

AGAIN_AFTER_S = 3600
"""Seconds from one application of a rule to the next."""

MAX_DAYS = 3650


class RetainedData(Enum):
    """Data whose lifetime an organization chooses. The value is stored."""

    PHONE_NUMBERS = "PHONE_NUMBERS"
    CALL_VARIABLES = "CALL_VARIABLES"
    MAIL_LEDGER = "MAIL_LEDGER"
    DIRECT_MESSAGES = "DIRECT_MESSAGES"


@dataclass(frozen=True, slots=True)
class RetentionBounds:
    """The lifetimes in days that an organization may choose."""

    default: int | None
    """The lifetime without a rule; None if the data are kept for good."""

    maximum: int
    minimum: int = 1


BOUNDS: Mapping[RetainedData, RetentionBounds] = {
    RetainedData.PHONE_NUMBERS: RetentionBounds(None, MAX_DAYS),
    RetainedData.CALL_VARIABLES: RetentionBounds(None, MAX_DAYS),
    RetainedData.DIRECT_MESSAGES: RetentionBounds(None, MAX_DAYS),
    RetainedData.MAIL_LEDGER: RetentionBounds(LEDGER_KEPT_S // 86_400, LEDGER_KEPT_S // 86_400),
}


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """The lifetime of one kind of data in an organization."""

    organization_id: str
    data: RetainedData
    days: int | None
    """None: the data are kept for good."""

    set_at: datetime | None = None
    set_by_id: str | None = None
    """The administrator; None for the default."""

    done_until: datetime | None = None
    """The instant before which the rule was applied to all events (MAIL_LEDGER) or messages (DIRECT_MESSAGES).

    None before the first ones, and for other data.
    """

    @property
    def bounds(self) -> RetentionBounds:
        """The lifetimes that may be chosen."""
        return BOUNDS[self.data]


class RuleChanged(DomainError):
    """The rule was changed or removed while a worker applied it. The worker stops; a changed rule is due at once."""


class RetentionRuleStore:
    """Stores the rules that differ from the default. Workers claim rules that are due."""

    def __init__(self, mongo: Mongo, audit: AuditLog) -> None:
        self._mongo = mongo
        self._audit = audit
        self._rules: AsyncCollection[RetentionRuleDocument] = mongo[RULES]

    async def list_rules(self, organization_id: str) -> list[RetentionRule]:
        """Returns the rule of each kind of data, the default where none is stored."""
        ids = [_id(organization_id, data) for data in RetainedData]
        rows: list[RetentionRuleDocument] = await self._mongo.find(RULES, {"_id": {"$in": ids}})
        stored = {row["_id"]["data"]: row for row in rows}
        return [_record(organization_id, data, stored.get(data.value)) for data in RetainedData]

    async def set_rule(self, actor: Actor, data: RetainedData, days: int | None) -> RetentionRule:
        """Sets a lifetime, which a worker applies at once; None: the default. Idempotent.

        Raises: Forbidden if the actor is no administrator any more.
        """
        organization_id = actor.organization_id

        async def work(session: Session) -> RetentionRule:
            at = await lock_actor(self._mongo, actor, session)
            stored = await self._rules.find_one({"_id": _id(organization_id, data)}, session=session)
            before = _record(organization_id, data, stored)
            new_days = before.bounds.default if days is None else days
            if before.days == new_days:
                return before
            details = {"before": _text(before.days), "after": _text(new_days)}
            action, target = AuditAction.RETENTION_RULE_SET, TargetKind.RETENTION_RULE
            await self._audit.insert(audit_document(actor, action, target, data.value, at, **details), session)
            return await self._store(actor, data, new_days, at, session)

        return await self._mongo.transact(work)

    async def _store(
        self, actor: Actor, data: RetainedData, days: int | None, at: datetime, session: Session
    ) -> RetentionRule:
        key = {"_id": _id(actor.organization_id, data)}
        if days == BOUNDS[data].default:
            await self._rules.delete_one(key, session=session)
            return _record(actor.organization_id, data, None)
        update = {"$set": {"days": days, "by": actor.user_id, "at": at, "due": at}}
        stored = await self._mongo.find_one_and_update(RULES, key, update, session, upsert=True)
        return _record(actor.organization_id, data, stored)

    async def claim(self) -> RetentionRule | None:
        """Claims a rule that is due, or returns None."""
        query = due_filter("due")
        row = await self._mongo.write_past_orphans(
            lambda: self._rules.find_one_and_update(
                query, _due_in(CLAIMED_S), sort=[("due", 1)], return_document=ReturnDocument.AFTER
            )
        )
        return None if row is None else _record(row["_id"]["org"], RetainedData(row["_id"]["data"]), row)

    async def renew(self, rule: RetentionRule, done_until: datetime | None = None) -> None:
        """Renews the claim. Stores `done_until`, unless it is None. Raises: RuleChanged."""
        done: list[Document] = [] if done_until is None else [{"$set": {"done_until": done_until}}]
        await self._continue(rule, [*done, *_due_in(CLAIMED_S)])

    async def finish(self, rule: RetentionRule) -> None:
        """Makes the rule due again an hour later. Raises: RuleChanged."""
        await self._continue(rule, _due_in(AGAIN_AFTER_S))

    async def _continue(self, rule: RetentionRule, update: list[Document]) -> None:
        key = {"_id": _id(rule.organization_id, rule.data), "days": rule.days}
        updated = await self._mongo.write_past_orphans(lambda: self._rules.update_one(key, update))
        if updated.matched_count == 0:
            raise RuleChanged("The retention rule was changed.")


def _id(organization_id: str, data: RetainedData) -> RetentionRuleDocumentId:
    return {"org": organization_id, "data": data.value}


def _due_in(delay_s: int) -> list[Document]:
    return [{"$set": {"due": seconds_from_now(delay_s)}}]


def _text(days: int | None) -> str:
    return "for good" if days is None else f"{days} days"


def _record(organization_id: str, data: RetainedData, row: RetentionRuleDocument | None) -> RetentionRule:
    if row is None:
        return RetentionRule(organization_id, data, BOUNDS[data].default)
    return RetentionRule(organization_id, data, row["days"], row["at"], row["by"], row.get("done_until"))
