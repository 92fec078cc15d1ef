"""The address book as it is read, and what people change in it by hand, each change with who and why.

A lookup is one read of addresses and one of those domains that this process has not seen for 5 s, from indexes alone.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pymongo import UpdateOne

from storage.mail.addresses import Address, AddressKeys, normalize, normalize_all, normalize_domain
from storage.mail.aggregation import AddressDocuments, domain_id, save_write
from storage.mail.counters import Facts, new_domain, reset_counters, summarize_domain
from storage.mail.epoch_time import epoch_ms
from storage.mail.records import AddressStanding, DomainStanding
from storage.mail.standings import domain_standing, invalid, invalid_domain, standing
from storage.metrics import MAIL_COMPARISONS
from storage.mongo import Mongo, Session

DOMAIN_TTL_S = 5.0
MAX_DOMAINS = 20_000


@dataclass(slots=True)
class _DomainCache:
    """An organization's domains as this process has read them; all are forgotten together."""

    until: float
    known: dict[str, DomainStanding] = field(default_factory=dict)


class AddressBook:
    """Who should not be sent mail, and why."""

    def __init__(self, mongo: Mongo, keys: AddressKeys) -> None:
        self._mongo = mongo
        self._keys = keys
        self._domains: dict[str, _DomainCache] = {}

    async def look_up(self, organization_id: str, asked: Sequence[str]) -> list[AddressStanding]:
        """A standing for each, in the order of asking. Raises: Unavailable without address keys."""
        addresses = normalize_all(asked)
        valid = [each for each in addresses if each is not None]
        told = iter(await self._told(organization_id, [text for text, _ in valid]))
        domains = await self._standings(organization_id, {domain for _, domain in valid})
        return [
            invalid(written) if address is None else standing(written, address[0], next(told), domains[address[1]])
            for written, address in zip(asked, addresses, strict=True)
        ]

    async def domain_standings(self, organization_id: str, asked: Sequence[str]) -> list[DomainStanding]:
        """A standing for each domain, in the order of asking."""
        names = [normalize_domain(each) for each in asked]
        known = await self._standings(organization_id, {name for name in names if name is not None})
        return [invalid_domain(each) if name is None else known[name] for each, name in zip(asked, names, strict=True)]

    async def unblock(self, organization_id: str, address: Address, by: str, reason: str) -> AddressStanding:
        """Starts an address's counters over, and keeps who did it and why. A domain's block stays."""
        newest, *older = self._keys.ids(organization_id, address.text)

        async def work(session: Session) -> None:
            now = epoch_ms(await self._mongo.now())
            addresses = AddressDocuments(self._mongo, session)
            await addresses.load({newest: older})
            document = addresses.get(newest, organization_id, address.domain)
            reset_counters(document, now)
            document["unblocked"] |= {"by": by, "reason": reason}
            await addresses.save(now)
            await self._note(organization_id, newest, "unblock", by, reason, session)

        await self._mongo.transact(work)
        return (await self.look_up(organization_id, [address.text]))[0]

    async def set_domain_blocked(
        self, organization_id: str, domain: str, blocked: bool | None, by: str, reason: str
    ) -> DomainStanding:
        """Blocks or allows a normalized domain by hand; None lets the rule decide again. Keeps who and why."""
        id_ = domain_id(organization_id, domain)

        async def work(session: Session) -> None:
            found = await self._mongo["mail_domains"].find_one({"_id": id_}, session=session)
            document = found or new_domain(organization_id, domain)
            document.pop("hand", None)
            if blocked is not None:
                document["hand"] = {"blocked": blocked, "by": by, "reason": reason, "at": await self._mongo.now()}
            summarize_domain(document)
            await self._mongo["mail_domains"].bulk_write([save_write(document, id_)], session=session)
            does = {True: "block", False: "allow", None: "leave to the rule"}[blocked]
            await self._note(organization_id, domain, does, by, reason, session)

        await self._mongo.transact(work)
        self._domains.pop(organization_id, None)
        return (await self._standings(organization_id, {domain}))[domain]

    async def note_differences(
        self, organization_id: str, ours: Sequence[AddressStanding], theirs: Mapping[str, bool]
    ) -> None:
        """Counts where an older book agrees and keeps where it does not, by the address's hash, for 30 days."""
        both = [each for each in ours if each.normalized is not None and each.address in theirs]
        different = [each for each in both if each.blocked != theirs[each.address]]
        MAIL_COMPARISONS.labels("same").inc(len(both) - len(different))
        MAIL_COMPARISONS.labels("different").inc(len(different))
        writes = [
            UpdateOne(
                {"_id": self._keys.id(organization_id, str(each.normalized))},
                [{"$set": {"org": organization_id, "ours": each.blocked, "theirs": not each.blocked, "at": "$$NOW"}}],
                upsert=True,
            )
            for each in different
        ]
        if writes:
            await self._mongo["mail_differences"].bulk_write(writes, ordered=False)

    async def differences(self, organization_id: str, asked: Sequence[str]) -> dict[str, bool]:
        """Of these addresses those on which lookups found both books to differ, and whether ours blocked them."""
        ids = {self._keys.id(organization_id, each.text): each.text for each in map(normalize, asked) if each}
        rows = await self._mongo["mail_differences"].find({"_id": {"$in": list(ids)}}).to_list(None)
        return {ids[row["_id"]]: row["ours"] for row in rows}

    async def _note(self, org: str, subject: bytes | str, does: str, by: str, reason: str, session: Session) -> None:
        at = await self._mongo.now()
        row = {"org": org, "subject": subject, "does": does, "by": by, "reason": reason, "at": at}
        await self._mongo["mail_audit"].insert_one(row, session=session)

    async def _told(self, org: str, addresses: Sequence[str]) -> list[Facts | None]:
        """What stands in the book of each address, in their order; what the newest key finds counts."""
        newest, *older = self._keys.all_ids(org, addresses)
        found = await self._read("mail_addresses", [*newest, *chain(*older)])
        told = [found.get(id_) for id_ in newest]
        for ids in older:
            told = [found.get(id_) if each is None else each for each, id_ in zip(told, ids, strict=True)]
        return told

    async def _standings(self, organization_id: str, domains: set[str]) -> dict[str, DomainStanding]:
        """By domain, and maybe of more than were asked for; as of at most 5 s ago."""
        now = time.monotonic()
        cached = self._domains.get(organization_id)
        if cached is None or cached.until < now or len(cached.known) > MAX_DOMAINS:
            self._domains = {org: each for org, each in self._domains.items() if each.until >= now}
            cached = self._domains[organization_id] = _DomainCache(now + DOMAIN_TTL_S)
        if missing := domains - cached.known.keys():
            cached.known |= await self._read_domains(organization_id, missing)
        return cached.known

    async def _read_domains(self, org: str, domains: set[str]) -> dict[str, DomainStanding]:
        ids = {domain: domain_id(org, domain) for domain in domains}
        told = await self._read("mail_domains", list(ids.values()))
        return {domain: domain_standing(domain, told.get(id_)) for domain, id_ in ids.items()}

    async def _read(self, collection: str, ids: list[Any]) -> dict[Any, Facts]:
        """What is told under these ids: one answer, from the index alone. Words of where an address went are none."""
        rows = await self._mongo.find(collection, {"_id": {"$in": ids}}, {"told": 1}, hint="told")
        return {row["_id"]: told for row in rows if (told := row["told"]) is not None}
