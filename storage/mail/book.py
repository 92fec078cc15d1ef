"""Lookups in the address book, and changes by operators, which are recorded with the operator and the reason.

A lookup is one query for the addresses, one for the domains that are not cached, and one for the policy every 5 s. An
index covers the first two. If
connections to some of these domains failed for days, a third query reads on which days their sources delivered mail.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pymongo import UpdateOne

from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.rights import lock_operator
from storage.mail.addresses import Address, AddressKeys, normalize, normalize_all, normalize_domain
from storage.mail.aggregation import AddressDocuments, day_id, domain_id, save_write
from storage.mail.counters import new_domain, summarize_domain
from storage.mail.decisions.address_decisions import AddressDecision, AddressDecisions
from storage.mail.decisions.changes import MailChanges
from storage.mail.decisions.documents import MailAuditDocument
from storage.mail.decisions.policies import DEFAULT_POLICY
from storage.mail.decisions.policy_versions import MailPolicies
from storage.mail.decisions.readable_addresses import ReadableAddresses
from storage.mail.documents import (
    AddressSummary,
    DayDocument,
    DifferenceDocument,
    DomainDocument,
    DomainSummary,
    ManualSetting,
)
from storage.mail.epoch_time import epoch_ms
from storage.mail.ledger import PARTITIONS
from storage.mail.records import AddressStanding, DomainStanding
from storage.mail.standings import address_standing, domain_standing, invalid_address_standing, invalid_domain_standing
from storage.mail.unreachable import FailedDay, SourceDay, dead_day
from storage.metrics import MAIL_COMPARISONS
from storage.mongo import Mongo, Session, literals
from storage.mongo.clock import DatabaseClock

DOMAIN_TTL_S = 5.0
"""How long the standings of domains are cached, in seconds."""

MAX_DOMAINS = 20_000
"""Maximum number of domains in the cache of an organization. A larger cache is emptied."""


@dataclass(slots=True)
class _DomainCache:
    """Cached standings of an organization's domains, valid until `until` (monotonic seconds)."""

    until: float
    standings: dict[str, DomainStanding] = field(default_factory=dict)


class AddressBook:
    """Standings of addresses and domains: whether they should get mail, and why. Also operators' decisions."""

    def __init__(self, mongo: Mongo, keys: AddressKeys) -> None:
        self._mongo = mongo
        self._keys = keys
        self._clock = DatabaseClock(mongo)
        self.policies = MailPolicies(mongo)
        self.decisions = AddressDecisions(mongo, keys, self.policies)
        self.readable = ReadableAddresses(mongo, keys, self.policies)
        self.changes = MailChanges(mongo)
        self._domains: dict[str, _DomainCache] = {}

    @property
    def has_keys(self) -> bool:
        """Whether the operator has set address keys. Without keys, no address can be looked up."""
        return self._keys.has_keys

    def hashes(self, organization_id: str, address: Address) -> list[bytes]:
        """Returns an address's keyed hashes, by the newest key first. Raises: Unavailable without address keys."""
        return self._keys.ids(organization_id, address.text)

    async def look_up(self, organization_id: str, written: Sequence[str]) -> list[AddressStanding]:
        """Returns the standing of each address, in order. Raises: Unavailable without address keys."""
        addresses = normalize_all(written)
        valid = [each for each in addresses if each is not None]
        summaries = iter(await self._summaries(organization_id, [text for text, _ in valid]))
        domains = await self._standings(organization_id, {domain for _, domain in valid})
        policy = (await self.policies.current(organization_id)).policy
        now = 0 if policy is DEFAULT_POLICY else epoch_ms(await self._clock.now())
        return [
            invalid_address_standing(text)
            if address is None
            else address_standing(text, address[0], next(summaries), domains[address[1]], policy, now)
            for text, address in zip(written, addresses, strict=True)
        ]

    async def domain_standings(self, organization_id: str, written: Sequence[str]) -> list[DomainStanding]:
        """Returns the standing of each domain, in order."""
        names = [normalize_domain(each) for each in written]
        standings = await self._standings(organization_id, {name for name in names if name is not None})
        return [
            invalid_domain_standing(text) if name is None else standings[name]
            for text, name in zip(written, names, strict=True)
        ]

    async def unblock(
        self, organization_id: str, address: Address, by: str, reason: str, actor: Actor | None = None
    ) -> AddressStanding:
        """Resets an address's counters, and records the operator and the reason. Does not unblock the domain.

        Raises: Forbidden if the actor is no operator now.
        """
        decision = AddressDecision(organization_id, False, by, reason, actor)
        await self.decisions.store([address], decision)
        return (await self.look_up(organization_id, [address.text]))[0]

    async def set_unsubscribed(self, organization_id: str, address: Address, is_unsubscribed: bool) -> None:
        """Records that the owner of an address ended digests by a link, or turned them on again. Idempotent.

        Until the owner turns them on again, the address is blocked. Raises: Unavailable without address keys.
        """
        newest, *older = self._keys.ids(organization_id, address.text)

        async def work(session: Session) -> None:
            addresses = AddressDocuments(self._mongo, session)
            await addresses.load({newest: older})
            document = addresses.get(newest, organization_id, address.domain)
            if ("unsubscribed" in document) == is_unsubscribed:
                return
            now = epoch_ms(await self._mongo.now())
            if is_unsubscribed:
                document["unsubscribed"] = now
            else:
                del document["unsubscribed"]
            await addresses.save(now)

        await self._mongo.transact(work)

    async def set_domain_blocked(
        self, organization_id: str, domain: str, blocked: bool | None, by: str, reason: str, actor: Actor | None = None
    ) -> DomainStanding:
        """Blocks or allows a normalized domain; None lets the rule decide again. Records operator and reason.

        Idempotent: the same decision for the same reason changes nothing. Raises: Forbidden as in `unblock`.
        """
        id_ = domain_id(organization_id, domain)

        async def work(session: Session) -> None:
            await lock_operator(self._mongo, actor, session)
            stored: DomainDocument | None = await self._mongo["mail_domains"].find_one({"_id": id_}, session=session)
            document = stored or new_domain(organization_id, domain)
            earlier = document.pop("decision", None)
            if _is_same_decision(earlier, blocked, reason):
                return
            if blocked is not None:
                document["decision"] = {"blocked": blocked, "by": by, "reason": reason, "at": await self._mongo.now()}
            summarize_domain(document)
            await self._mongo["mail_domains"].bulk_write([save_write(document, id_)], session=session)
            action = {True: "block", False: "allow", None: "leave to the rule"}[blocked]
            await self._audit(organization_id, domain, action, by, reason, session)
            details = {"decision": action, "reason": reason}
            await self._record(actor, AuditAction.MAIL_DOMAIN_SET, TargetKind.MAIL_DOMAIN, domain, session, **details)

        await self._mongo.transact(work)
        self._domains.pop(organization_id, None)
        return (await self._standings(organization_id, {domain}))[domain]

    async def record_differences(
        self, organization_id: str, standings: Sequence[AddressStanding], blocked_by_legacy: Mapping[str, bool]
    ) -> None:
        """Counts agreements and differences with the legacy book. Stores differences under the address's hash."""
        compared = [each for each in standings if each.normalized is not None and each.address in blocked_by_legacy]
        different = [each for each in compared if each.blocked != blocked_by_legacy[each.address]]
        MAIL_COMPARISONS.labels("same").inc(len(compared) - len(different))
        MAIL_COMPARISONS.labels("different").inc(len(different))
        org = literals({"org": organization_id})
        writes = [
            UpdateOne(
                {"_id": self._keys.id(organization_id, str(each.normalized))},
                [{"$set": {**org, "ours": each.blocked, "theirs": not each.blocked, "at": "$$NOW"}}],
                upsert=True,
            )
            for each in different
        ]
        if writes:
            await self._mongo["mail_differences"].bulk_write(writes, ordered=False)

    async def differences(self, organization_id: str, addresses: Sequence[str]) -> dict[str, bool]:
        """Returns, by address, whether this book blocked it. Leaves out addresses about which the books agreed."""
        ids = {self._keys.id(organization_id, each.text): each.text for each in map(normalize, addresses) if each}
        differences: list[DifferenceDocument] = await self._mongo.find("mail_differences", {"_id": {"$in": list(ids)}})
        return {ids[each["_id"]]: each["ours"] for each in differences}

    async def _audit(self, org: str, subject: bytes | str, action: str, by: str, reason: str, session: Session) -> None:
        at = await self._mongo.now()
        entry: MailAuditDocument = {
            "org": org,
            "subject": subject,
            "action": action,
            "by": by,
            "reason": reason,
            "at": at,
        }
        await self._mongo["mail_audit"].insert_one(entry, session=session)

    async def _record(
        self, actor: Actor | None, action: AuditAction, kind: TargetKind, target: str, session: Session, **details: str
    ) -> None:
        """Inserts the entry of the organization's audit log, which has no address."""
        if actor is not None:
            entry = audit_document(actor, action, kind, target, await self._mongo.now(), **details)
            await AuditLog(self._mongo).insert(entry, session)

    async def _summaries(self, org: str, addresses: Sequence[str]) -> list[AddressSummary | None]:
        """Returns the summary of each address, in order, or None. The summary under the newest key takes precedence."""
        newest, *older = self._keys.all_ids(org, addresses)
        summaries_by_id = await self._read("mail_addresses", [*newest, *chain(*older)])
        summaries: list[AddressSummary | None] = [summaries_by_id.get(id_) for id_ in newest]
        for ids in older:
            summaries = [
                summaries_by_id.get(id_) if each is None else each for each, id_ in zip(summaries, ids, strict=True)
            ]
        return summaries

    async def _standings(self, organization_id: str, domains: set[str]) -> dict[str, DomainStanding]:
        """Returns standings by domain, at most 5 s old. The result may contain other domains too."""
        now = time.monotonic()
        cached = self._domains.get(organization_id)
        if cached is None or cached.until < now or len(cached.standings) > MAX_DOMAINS:
            self._domains = {org: each for org, each in self._domains.items() if each.until >= now}
            cached = self._domains[organization_id] = _DomainCache(now + DOMAIN_TTL_S)
        if missing := domains - cached.standings.keys():
            cached.standings |= await self._read_domains(organization_id, missing)
        return cached.standings

    async def _read_domains(self, org: str, domains: set[str]) -> dict[str, DomainStanding]:
        ids = {domain: domain_id(org, domain) for domain in domains}
        summaries: dict[str, DomainSummary] = await self._read("mail_domains", list(ids.values()))
        failed = {
            id_: each["failed_days"]
            for id_, each in summaries.items()
            if "failed_days" in each and "decision" not in each
        }
        delivered = await self._delivered_days(org, chain.from_iterable(failed.values())) if failed else ()
        return {
            domain: domain_standing(domain, summaries.get(id_), dead_day(failed.get(id_, ()), delivered))
            for domain, id_ in ids.items()
        }

    async def _delivered_days(self, org: str, failed: Iterable[FailedDay]) -> set[SourceDay]:
        """Returns those of the days on which their source delivered mail to a server of any domain."""
        source_days = {(day, source) for day, source, _ in failed}
        partitions = range(PARTITIONS)
        ids = [day_id(org, *each, f"mail:{partition}") for each in source_days for partition in partitions]
        query = {"_id": {"$in": ids}, "replied": {"$gt": 0}}
        days: list[DayDocument] = await self._mongo.find("mail_days", query, {"_id": 1}, hint="_id_")
        return {(each["_id"]["day"], each["_id"]["source"]) for each in days}

    async def _read(self, collection: str, ids: list[Any]) -> dict[Any, Any]:
        """Returns the summaries of documents by id, in one round trip, from the index alone.

        A document that was moved to a newer key's hash has no summary.
        """
        documents = await self._mongo.find(collection, {"_id": {"$in": ids}}, {"summary": 1}, hint="summary")
        return {each["_id"]: summary for each in documents if (summary := each["summary"]) is not None}


def _is_same_decision(earlier: ManualSetting | None, blocked: bool | None, reason: str) -> bool:
    if earlier is None:
        return blocked is None
    return earlier["blocked"] == blocked and earlier["reason"] == reason
