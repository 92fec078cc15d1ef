"""Rows of an older book in, and sources out again: the book then says what it would have said without them (ADR 25)."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from pymongo import DeleteOne

from storage.errors import BadUserInput
from storage.mail.addresses import AddressKeys, normalize
from storage.mail.aggregation import AddressDocuments, Write, domain_id, save_write
from storage.mail.counters import Facts, latest_import, new_domain, source_entry, summarize, summarize_domain
from storage.mail.epoch_time import epoch_ms
from storage.mongo import Document, Mongo, Session

CHUNK = 500
ROWS_OF_OLD_BOOKS = ""
"""The source under which a domain holds the sums of all rows that count at the moment."""

COUNTS = ("success", "soft", "hard")


@dataclass(frozen=True, slots=True)
class LegacyStanding:
    """A row of an older book."""

    address: str
    success: int
    soft_bounce: int
    hard_bounce: int


class Imports:
    """Takes sources in and out."""

    def __init__(self, mongo: Mongo, keys: AddressKeys) -> None:
        self._mongo = mongo
        self._keys = keys

    async def bring(self, organization_id: str, source: str, rows: Sequence[LegacyStanding]) -> None:
        """Takes rows in, 500 in a transaction; they replace what an earlier import said of the same addresses.

        Raises: BadUserInput for what is no address, before anything of its 500 rows is written.
        """
        note = {"_id": {"org": organization_id, "source": source}}
        await self._mongo["mail_sources"].update_one(note, {"$setOnInsert": note}, upsert=True)
        for start in range(0, len(rows), CHUNK):
            await self._bring(organization_id, source, rows[start : start + CHUNK])

    async def _bring(self, org: str, source: str, rows: Sequence[LegacyStanding]) -> None:
        found = [normalize(row.address) for row in rows]
        ids = [self._keys.ids(org, each.text) if each else [] for each in found]

        async def work(session: Session) -> None:
            now = epoch_ms(await self._mongo.now())
            addresses, domains = AddressDocuments(self._mongo, session), _DomainDocuments(self._mongo, session, org)
            await addresses.load({newest: older for newest, *older in filter(None, ids)})
            await domains.load({each.domain for each in found if each})
            for row, address, named in zip(rows, found, ids, strict=True):
                if address is None:
                    raise BadUserInput("address", "a mail address")
                document = addresses.get(named[0], org, address.domain)
                before = latest_import(document)
                source_entry(document, source)["import"] = {
                    "at": now,
                    "success": row.success,
                    "soft": row.soft_bounce,
                    "hard": row.hard_bounce,
                }
                domains.change(address.domain, before, latest_import(document))
            await addresses.save(now)
            await domains.save()

        await self._mongo.transact(work)

    async def sources(self, organization_id: str) -> list[str]:
        """Whatever ever told the book something, by name."""
        rows = await self._mongo["mail_sources"].find({"_id.org": organization_id}).to_list(None)
        return sorted(row["_id"]["source"] for row in rows)

    async def rebuild(self, organization_id: str, without: str | None, progress: Callable[[int], None]) -> int:
        """Concludes everything anew, without a source as if it had never been. Returns of how many addresses.

        Ids of its events are forgotten too, so what it should have said can be sent under the same ids. Running it
        again after it was cut off finishes it. `progress` is told how many addresses are done.
        """
        if without is not None:
            # First what could still be folded; a fold under way commits before its rows can be deleted. This reads the
            # whole ledger: an index would cost every event something, for what is done once in years.
            await self._mongo["mail_ledger"].delete_many({"org": organization_id, "source": without})
            await self._mongo["mail_days"].delete_many({"_id.org": organization_id, "_id.source": without})
        done = 0
        async for ids in self._chunks("mail_addresses", organization_id, without):
            await self._conclude_addresses(organization_id, ids, without)
            done += len(ids)
            progress(done)
        async for ids in self._chunks("mail_domains", organization_id, without):
            await self._conclude_domains(ids, without)
        await self._mongo["mail_sources"].delete_one({"_id": {"org": organization_id, "source": without}})
        return done

    async def _chunks(self, collection: str, org: str, without: str | None) -> AsyncIterator[list[object]]:
        wanted = {"org": org} if without is None else {"org": org, "by.source": without}
        ids: list[object] = []
        async for row in self._mongo[collection].find(wanted, {"_id": 1}):
            ids.append(row["_id"])
            if len(ids) == CHUNK:
                yield ids
                ids = []
        if ids:
            yield ids

    async def _conclude_addresses(self, org: str, ids: list[object], without: str | None) -> None:
        async def work(session: Session) -> None:
            rows = self._mongo["mail_addresses"].find({"_id": {"$in": ids}, "org": org}, session=session)
            documents = await rows.to_list(None)
            domains = _DomainDocuments(self._mongo, session, org)
            await domains.load({document["domain"] for document in documents})
            writes: list[Write] = []
            for document in documents:
                before = latest_import(document)
                writes.append(_without(document, without, "unblocked"))
                domains.change(document["domain"], before, latest_import(document))
                summarize(document)
            await self._mongo["mail_addresses"].bulk_write(writes, ordered=False, session=session)
            await domains.save()

        await self._mongo.transact(work)

    async def _conclude_domains(self, ids: list[object], without: str | None) -> None:
        async def work(session: Session) -> None:
            rows = await self._mongo["mail_domains"].find({"_id": {"$in": ids}}, session=session).to_list(None)
            writes = [_without(document, without, "hand") for document in rows]
            for document in rows:
                summarize_domain(document)
            if writes:
                await self._mongo["mail_domains"].bulk_write(writes, ordered=False, session=session)

        await self._mongo.transact(work)


def _without(document: Facts, source: str | None, by_hand: str) -> Write:
    """Takes a source out. The write saves the document, or removes it when nothing else told of it."""
    document["by"] = [entry for entry in document["by"] if entry["source"] != source]
    if not document["by"] and by_hand not in document:
        return DeleteOne({"_id": document["_id"]})
    return save_write(document, document["_id"])


class _DomainDocuments:
    """The domains of a chunk of rows, and how their sums of old rows change."""

    def __init__(self, mongo: Mongo, session: Session, organization_id: str) -> None:
        self._collection = mongo["mail_domains"]
        self._session = session
        self._org = organization_id
        self._found: dict[str, Facts] = {}
        self._changed: set[str] = set()

    async def load(self, domains: set[str]) -> None:
        ids = [domain_id(self._org, domain) for domain in domains]
        rows: list[Document] = await self._collection.find({"_id": {"$in": ids}}, session=self._session).to_list(None)
        self._found = {domain: new_domain(self._org, domain) for domain in domains}
        self._found |= {row["domain"]: row for row in rows}

    def change(self, domain: str, before: Facts, after: Facts) -> None:
        """Notes that one address's row says something else now."""
        changes = {name: after.get(name, 0) - before.get(name, 0) for name in COUNTS}
        if any(changes.values()):
            entry = source_entry(self._found[domain], ROWS_OF_OLD_BOOKS)
            for name, change in changes.items():
                entry[name] = entry.get(name, 0) + change
            self._changed.add(domain)

    async def save(self) -> None:
        writes: list[Write] = []
        for domain in sorted(self._changed):
            document = self._found[domain]
            entry = source_entry(document, ROWS_OF_OLD_BOOKS)
            if not any(entry.get(name) for name in COUNTS):
                document["by"].remove(entry)
            if document.get("_id") is not None and not document["by"] and "hand" not in document:
                writes.append(DeleteOne({"_id": document["_id"]}))
                continue
            summarize_domain(document)
            writes.append(save_write(document, domain_id(self._org, domain)))
        if writes:
            await self._collection.bulk_write(writes, ordered=False, session=self._session)
