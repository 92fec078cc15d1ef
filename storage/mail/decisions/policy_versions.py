"""The policies of organizations. Each change is an entry of `mail_audit`, with the next version (ADR 114)."""

import time
from datetime import timedelta
from typing import Any

from pymongo.errors import DuplicateKeyError

from storage.errors import Conflict
from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.rights import lock_operator
from storage.mail.decisions.bounce_classes import BounceClass
from storage.mail.decisions.documents import MailAuditDocument, PolicyFields
from storage.mail.decisions.policies import (
    DEFAULT_POLICY,
    DEFAULT_TREATMENTS,
    BounceTreatment,
    MailPolicy,
    MailPolicyVersion,
)
from storage.mongo import Mongo, Session

POLICY_TTL_S = 5.0
"""How long a policy is cached, in seconds. Other processes apply a change after this time at the latest."""

MAX_CACHED_POLICIES = 1000
"""Maximum number of policies in the cache. A larger cache is emptied."""

FORGET_FOR = timedelta(days=15)
"""How long readable addresses are looked for after an organization has ended keeping them.

An event that was recorded before may wait in the ledger for 14 days.
"""

POLICY_SUBJECT = ""


class MailPolicies:
    """Reads and changes policies."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._cache: dict[str, tuple[float, MailPolicyVersion]] = {}

    async def current(self, organization_id: str) -> MailPolicyVersion:
        """Returns the policy of the last 5 s, by which addresses are judged; version 0 if none was ever set."""
        now = time.monotonic()
        cached = self._cache.get(organization_id)
        if cached is not None and cached[0] > now:
            return cached[1]
        if len(self._cache) >= MAX_CACHED_POLICIES:
            self._cache = {}
        version = await self.present(organization_id)
        self._cache[organization_id] = now + POLICY_TTL_S, version
        return version

    async def present(self, organization_id: str, session: Session | None = None) -> MailPolicyVersion:
        """Returns the present policy, read now; version 0 if none was ever set."""
        documents = await self._documents(organization_id, 1, session)
        return _version(documents[0]) if documents else MailPolicyVersion(organization_id, 0, DEFAULT_POLICY)

    async def versions(self, organization_id: str, limit: int) -> list[MailPolicyVersion]:
        """Returns the latest versions, the newest first, without version 0."""
        return [_version(each) for each in await self._documents(organization_id, limit)]

    async def set(
        self,
        organization_id: str,
        policy: MailPolicy,
        after_version: int,
        by: str,
        reason: str,
        actor: Actor | None,
        *,
        keep_addresses: bool = False,
    ) -> MailPolicyVersion:
        """Stores the next version, if `after_version` is the present one. The same policy again changes nothing.

        Raises: Conflict if there is another version; Forbidden if the actor is no operator now.
        """

        async def work(session: Session) -> MailPolicyVersion:
            await lock_operator(self._mongo, actor, session)
            present = await self.present(organization_id, session)
            stored = (present.version, present.policy, present.keep_addresses, present.set_by_id)
            if stored == (after_version + 1, policy, keep_addresses, by):
                return present
            if present.version != after_version:
                raise _superseded(present.version)
            at = await self._mongo.now()
            added = MailPolicyVersion(organization_id, after_version + 1, policy, by, reason, at, keep_addresses)
            document = _document(added)
            if present.keep_addresses and not keep_addresses:
                document["forget_until"] = at + FORGET_FOR
            await self._mongo["mail_audit"].insert_one(document, session=session)
            await self._record(actor, added, session)
            return added

        try:
            version = await self._mongo.transact(work)
        except DuplicateKeyError:
            # Another change was first. This one either repeats it, or is refused.
            version = await self._mongo.transact(work)
        self._cache.pop(organization_id, None)
        return version

    async def _documents(self, org: str, limit: int, session: Session | None = None) -> list[Any]:
        query = {"org": org, "version": {"$gt": 0}}
        return await self._mongo.find("mail_audit", query, sort=[("version", -1)], limit=limit, session=session)

    async def _record(self, actor: Actor | None, added: MailPolicyVersion, session: Session) -> None:
        if actor is not None and added.set_at is not None:
            details = {"version": str(added.version), "reason": added.reason or ""}
            action, kind = AuditAction.MAIL_POLICY_SET, TargetKind.MAIL_POLICY
            entry = audit_document(actor, action, kind, actor.organization_id, added.set_at, **details)
            await AuditLog(self._mongo).insert(entry, session)


def _superseded(version: int) -> Conflict:
    return Conflict(f"The policy has version {version} now. Read it, and change that version.")


def _document(added: MailPolicyVersion) -> MailAuditDocument:
    assert added.set_by_id is not None
    assert added.set_at is not None
    return {
        "org": added.organization_id,
        "subject": POLICY_SUBJECT,
        "action": "set policy",
        "by": added.set_by_id,
        "reason": added.reason or "",
        "at": added.set_at,
        "version": added.version,
        "policy": _fields(added.policy) | ({"keep_addresses": True} if added.keep_addresses else {}),
    }


def _fields(policy: MailPolicy) -> PolicyFields:
    return {
        "treatments": {class_.value: treatment.value for class_, treatment in policy.treatments.items()},
        "hard_bounces": policy.hard_bounces,
        "soft_bounce_days": policy.soft_bounce_days,
        "soft_window_days": policy.soft_window_days,
        "soft_block_days": policy.soft_block_days,
        "complaints_block": policy.complaints_block,
    }


def _version(document: MailAuditDocument) -> MailPolicyVersion:
    fields = document["policy"]
    return MailPolicyVersion(
        document["org"],
        document["version"],
        _policy(fields),
        document["by"],
        document["reason"],
        document["at"],
        fields.get("keep_addresses", False),
    )


def _policy(fields: PolicyFields) -> MailPolicy:
    stored = {BounceClass(class_): BounceTreatment(each) for class_, each in fields["treatments"].items()}
    policy = MailPolicy(
        {**DEFAULT_TREATMENTS, **stored},
        fields["hard_bounces"],
        fields["soft_bounce_days"],
        fields["soft_window_days"],
        fields["soft_block_days"],
        fields["complaints_block"],
    )
    # Lookups recognize the default policy, whose verdicts are stored.
    return DEFAULT_POLICY if policy == DEFAULT_POLICY else policy
