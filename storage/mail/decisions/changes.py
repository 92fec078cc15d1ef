"""The changes that operators made to the address book, the newest first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from bson import ObjectId

from storage.errors import NotFound
from storage.mail.decisions.documents import MailAuditDocument
from storage.mongo import Document, Mongo


class MailChangeKind(StrEnum):
    """Kind of a change by an operator."""

    ADDRESS_BLOCKED = "ADDRESS_BLOCKED"
    ADDRESS_UNBLOCKED = "ADDRESS_UNBLOCKED"
    DOMAIN_BLOCKED = "DOMAIN_BLOCKED"
    DOMAIN_ALLOWED = "DOMAIN_ALLOWED"
    DOMAIN_LEFT_TO_RULE = "DOMAIN_LEFT_TO_RULE"
    POLICY_SET = "POLICY_SET"


_KINDS = {
    (bytes, "block"): MailChangeKind.ADDRESS_BLOCKED,
    (bytes, "unblock"): MailChangeKind.ADDRESS_UNBLOCKED,
    (str, "block"): MailChangeKind.DOMAIN_BLOCKED,
    (str, "allow"): MailChangeKind.DOMAIN_ALLOWED,
    (str, "leave to the rule"): MailChangeKind.DOMAIN_LEFT_TO_RULE,
    (str, "set policy"): MailChangeKind.POLICY_SET,
}
"""Kinds by the type of the stored subject and the stored action."""


@dataclass(frozen=True, slots=True)
class MailChange:
    """A change, and its reason. `reason` is empty once the operator was erased."""

    organization_id: str
    id: str
    kind: MailChangeKind
    at: datetime
    by_id: str
    reason: str
    address_hash: str | None = None
    domain: str | None = None
    policy_version: int | None = None


class MailChanges:
    """Reads the changes of organizations."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo

    async def page(
        self, organization_id: str, subjects: Sequence[bytes | str], after: str | None, limit: int
    ) -> list[MailChange]:
        """Returns changes, the newest first: those after the change `after`, or from the newest if it is None.

        `subjects` are the keyed hashes of an address, or a domain; empty for all changes. Raises: NotFound if `after`
        does not exist.
        """
        query: Document = {"org": organization_id}
        if subjects:
            query["subject"] = {"$in": list(subjects)}
        if after is not None:
            last = await self._find(organization_id, after)
            query["$or"] = [{"at": {"$lt": last["at"]}}, {"at": last["at"], "_id": {"$lt": last["_id"]}}]
        documents = await self._mongo.find("mail_audit", query, sort=[("at", -1), ("_id", -1)], limit=limit)
        return [_change(each) for each in documents]

    async def _find(self, org: str, id_: str) -> Any:
        query = {"_id": ObjectId(id_), "org": org} if ObjectId.is_valid(id_) else None
        found = await self._mongo.find("mail_audit", query, {"at": 1}, limit=1) if query else []
        if not found:
            raise NotFound("change", id_)
        return found[0]


def _change(document: MailAuditDocument) -> MailChange:
    subject = document["subject"]
    is_address = isinstance(subject, bytes)
    return MailChange(
        organization_id=document["org"],
        id=str(document["_id"]),
        kind=_KINDS[bytes if is_address else str, document["action"]],
        at=document["at"],
        by_id=document["by"],
        reason=document["reason"],
        address_hash=subject.hex() if isinstance(subject, bytes) else None,
        domain=(subject or None) if isinstance(subject, str) else None,
        policy_version=document.get("version"),
    )
