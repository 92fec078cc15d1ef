"""Operators' decisions about addresses: to block them by hand, or to unblock them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.rights import lock_operator
from storage.mail.addresses import Address, AddressKeys
from storage.mail.aggregation import AddressDocuments
from storage.mail.counters import reset_counters
from storage.mail.decisions.documents import MailAuditDocument
from storage.mail.decisions.policy_versions import MailPolicies
from storage.mail.documents import AddressDocument
from storage.mail.epoch_time import epoch_ms
from storage.mongo import Mongo, Session

BATCH = 200
"""How many addresses a transaction changes."""


@dataclass(frozen=True, slots=True)
class AddressDecision:
    """A decision of an operator about addresses, and its reason."""

    organization_id: str
    blocked: bool
    by: str
    reason: str
    actor: Actor | None = None
    """The operator, who needs the role, or the command line."""


class AddressDecisions:
    """Stores decisions about addresses, with an entry in `mail_audit` and in the audit log for each."""

    def __init__(self, mongo: Mongo, keys: AddressKeys, policies: MailPolicies) -> None:
        self._mongo = mongo
        self._keys = keys
        self._policies = policies

    async def store(self, addresses: Sequence[Address], decision: AddressDecision) -> int:
        """Blocks or unblocks addresses, in transactions of 200. Returns how many it changed.

        An address that is blocked by hand for the same reason stays as it is. To unblock an address resets its
        counters, and does not unblock its domain. After a failure, the same call may be repeated. Raises: Forbidden if
        the actor is no operator now; Unavailable without address keys.
        """
        changed = 0
        unique = list({address.text: address for address in addresses}.values())
        for start in range(0, len(unique), BATCH):
            changed += await self._store(unique[start : start + BATCH], decision)
        return changed

    async def _store(self, addresses: Sequence[Address], decision: AddressDecision) -> int:
        org = decision.organization_id
        ids = [self._keys.ids(org, each.text) for each in addresses]
        keep_addresses = decision.blocked and (await self._policies.current(org)).keep_addresses

        async def work(session: Session) -> int:
            await lock_operator(self._mongo, decision.actor, session)
            at = await self._mongo.now()
            documents = AddressDocuments(self._mongo, session)
            await documents.load({newest: older for newest, *older in ids})
            changed: list[bytes] = []
            for address, (newest, *_) in zip(addresses, ids, strict=True):
                document = documents.get(newest, org, address.domain)
                if _apply(document, decision, at):
                    changed.append(newest)
                    if keep_addresses:
                        document["readable"] = self._keys.seal(org, address.text)
            if changed:
                await documents.save(epoch_ms(at))
                await self._record(changed, decision, at, session)
            return len(changed)

        return await self._mongo.transact(work)

    async def _record(self, hashes: Sequence[bytes], decision: AddressDecision, at: datetime, session: Session) -> None:
        entries: list[MailAuditDocument] = [
            {
                "org": decision.organization_id,
                "subject": hash_,
                "action": "block" if decision.blocked else "unblock",
                "by": decision.by,
                "reason": decision.reason,
                "at": at,
            }
            for hash_ in hashes
        ]
        await self._mongo["mail_audit"].insert_many(entries, session=session)
        if decision.actor is not None:
            blocked, unblocked = AuditAction.MAIL_ADDRESS_BLOCKED, AuditAction.MAIL_ADDRESS_UNBLOCKED
            action = blocked if decision.blocked else unblocked
            for hash_ in hashes:
                entry = audit_document(
                    decision.actor, action, TargetKind.MAIL_ADDRESS, hash_.hex(), at, reason=decision.reason
                )
                await AuditLog(self._mongo).insert(entry, session)


def _apply(document: AddressDocument, decision: AddressDecision, at: datetime) -> bool:
    """Changes an address. Returns whether the decision is a new one."""
    if not decision.blocked:
        document.pop("decision", None)
        reset_counters(document, epoch_ms(at))
        document["unblocked"]["by"], document["unblocked"]["reason"] = decision.by, decision.reason
        return True
    earlier = document.get("decision")
    if earlier is not None and earlier["reason"] == decision.reason:
        return False
    document["decision"] = {"blocked": True, "by": decision.by, "reason": decision.reason, "at": at}
    return True
