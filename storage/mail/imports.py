"""Imports rows of the legacy book, and removes sources as if they had never existed (ADR 25)."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from pymongo import DeleteOne

from storage.errors import BadUserInput
from storage.identity.audit import AuditAction, AuditLog, TargetKind, audit_document, command_line_actor
from storage.mail.addresses import AddressKeys, normalize
from storage.mail.aggregation import AddressDocuments, Write, domain_id, save_write
from storage.mail.counters import latest_import, new_domain, source_entry, summarize, summarize_domain
from storage.mail.documents import (
    COUNTS,
    AddressDocument,
    DomainDocument,
    ImportedCounts,
    MailSourceId,
    SourceDocument,
)
from storage.mail.epoch_time import epoch_ms
from storage.mail.rereading import ReadBounces, reread_address, reread_domain
from storage.mongo import Mongo, Session

CHUNK = 500

MAX_SCAN_MS = 3_600_000
"""MongoDB's time for all batches of the scan of an organization's addresses, an hour. Each batch must arrive within
10 s."""

IMPORTED_ROWS = ""
"""The source under which a domain holds the sums of the latest imported row of each address."""


@dataclass(frozen=True, slots=True)
class LegacyBookRow:
    """A row of the legacy book: the counters of one address."""

    address: str
    success: int
    soft_bounce: int
    hard_bounce: int


@dataclass(frozen=True, slots=True)
class BookRebuild:
    """Result of a rebuild: the number of addresses, and what reading their bounces again has changed."""

    addresses: int
    bounces: ReadBounces


class BookImporter:
    """Imports rows of the legacy book, lists sources, and rebuilds the address book without a source."""

    def __init__(self, mongo: Mongo, keys: AddressKeys) -> None:
        self._mongo = mongo
        self._keys = keys

    async def add(self, organization_id: str, source: str, rows: Sequence[LegacyBookRow]) -> None:
        """Imports rows in transactions of 500. They replace the source's earlier rows of the same addresses.

        Raises: BadUserInput for an invalid address. No row of its transaction is then imported.
        """
        document: SourceDocument = {"_id": {"org": organization_id, "source": source}}
        await self._mongo["mail_sources"].update_one(document, {"$setOnInsert": document}, upsert=True)
        for start in range(0, len(rows), CHUNK):
            await self._add(organization_id, source, rows[start : start + CHUNK])

    async def _add(self, org: str, source: str, rows: Sequence[LegacyBookRow]) -> None:
        normalized = [normalize(row.address) for row in rows]
        ids = [self._keys.ids(org, each.text) if each else [] for each in normalized]

        async def work(session: Session) -> None:
            now = epoch_ms(await self._mongo.now())
            addresses, domains = AddressDocuments(self._mongo, session), _DomainDocuments(self._mongo, session, org)
            await addresses.load({newest: older for newest, *older in filter(None, ids)})
            await domains.load({each.domain for each in normalized if each})
            for row, address, ids_by_key in zip(rows, normalized, ids, strict=True):
                if address is None:
                    raise BadUserInput("address", "a mail address such as ann@example.org")
                document = addresses.get(ids_by_key[0], org, address.domain)
                row_before = latest_import(document)
                source_entry(document["by"], source)["import"] = {
                    "at": now,
                    "success": row.success,
                    "soft": row.soft_bounce,
                    "hard": row.hard_bounce,
                }
                domains.change(address.domain, row_before, latest_import(document))
            await addresses.save(now)
            await domains.save()

        await self._mongo.transact(work)

    async def sources(self, organization_id: str) -> list[str]:
        """Returns the names of an organization's sources, sorted."""
        sources: list[SourceDocument] = await self._mongo.find("mail_sources", {"_id.org": organization_id})
        return sorted(each["_id"]["source"] for each in sources)

    async def rebuild(
        self, organization_id: str, removed_source: str | None, progress: Callable[[int], None]
    ) -> BookRebuild:
        """Reads all stored bounces again and summarizes all addresses and domains. Removes the source `removed_source`.

        A removal is recorded in the audit log before anything is deleted, with the command line as the actor. It also
        deletes the source's events, so that corrected events can be sent under the same ids. Can be repeated after an
        interruption. The book is then as if the source had never existed. Calls `progress` with the number of
        addresses so far.
        """
        if removed_source is not None:
            await self._audit_removal({"org": organization_id, "source": removed_source})
            # Events are deleted first, so that no event is aggregated afterwards. MongoDB deletes the events of a
            # running aggregation after its commit. The deletion reads the whole ledger, since an index for this rare
            # operation would slow each insert.
            await self._mongo["mail_ledger"].delete_many({"org": organization_id, "source": removed_source})
            await self._mongo["mail_days"].delete_many({"_id.org": organization_id, "_id.source": removed_source})
        rebuilt, bounces = 0, ReadBounces()
        async for ids in self._chunks("mail_addresses", organization_id, removed_source):
            bounces += await self._rebuild_addresses(organization_id, ids, removed_source)
            rebuilt += len(ids)
            progress(rebuilt)
        async for ids in self._chunks("mail_domains", organization_id, removed_source):
            bounces += await self._rebuild_domains(ids, removed_source)
        await self._mongo["mail_sources"].delete_one({"_id": {"org": organization_id, "source": removed_source}})
        return BookRebuild(rebuilt, bounces)

    async def _audit_removal(self, source: MailSourceId) -> None:
        """Inserts the entry of the audit log, unless an interrupted removal of the source has left one."""
        query = {"_id": source, "removed_at": {"$exists": False}}

        async def work(session: Session) -> None:
            update = {"$currentDate": {"removed_at": True}}
            stored: SourceDocument | None = await self._mongo.find_one_and_update(
                "mail_sources", query, update, session
            )
            if stored is None:
                return
            actor, action = command_line_actor(source["org"]), AuditAction.MAIL_SOURCE_REMOVED
            entry = audit_document(actor, action, TargetKind.MAIL_SOURCE, source["source"], stored["removed_at"])
            await AuditLog(self._mongo).insert(entry, session)

        await self._mongo.transact(work)

    async def _chunks(self, collection: str, org: str, removed_source: str | None) -> AsyncIterator[list[object]]:
        query = {"org": org} if removed_source is None else {"org": org, "by.source": removed_source}
        ids: list[object] = []
        async for document in self._mongo[collection].find(query, {"_id": 1}, max_time_ms=MAX_SCAN_MS):
            ids.append(document["_id"])
            if len(ids) == CHUNK:
                yield ids
                ids = []
        if ids:
            yield ids

    async def _rebuild_addresses(self, org: str, ids: list[object], removed_source: str | None) -> ReadBounces:
        async def work(session: Session) -> ReadBounces:
            bounces = ReadBounces()
            cursor = self._mongo["mail_addresses"].find({"_id": {"$in": ids}, "org": org}, session=session)
            documents: list[AddressDocument] = await cursor.to_list(None)
            domains = _DomainDocuments(self._mongo, session, org)
            await domains.load({document["domain"] for document in documents})
            writes: list[Write] = []
            for document in documents:
                row_before = latest_import(document)
                bounces += reread_address(document)
                writes.append(_address_write(document, removed_source))
                domains.change(document["domain"], row_before, latest_import(document))
            await self._mongo["mail_addresses"].bulk_write(writes, ordered=False, session=session)
            await domains.save()
            return bounces

        return await self._mongo.transact(work)

    async def _rebuild_domains(self, ids: list[object], removed_source: str | None) -> ReadBounces:
        async def work(session: Session) -> ReadBounces:
            cursor = self._mongo["mail_domains"].find({"_id": {"$in": ids}}, session=session)
            documents: list[DomainDocument] = await cursor.to_list(None)
            bounces = sum(map(reread_domain, documents), ReadBounces())
            writes = [_domain_write(document, removed_source) for document in documents]
            if writes:
                await self._mongo["mail_domains"].bulk_write(writes, ordered=False, session=session)
            return bounces

        return await self._mongo.transact(work)


def _address_write(document: AddressDocument, removed_source: str | None) -> Write:
    """Removes a source from the document. Returns the write that saves the document, or deletes an empty document."""
    document["by"] = [entry for entry in document["by"] if entry["source"] != removed_source]
    if not document["by"] and not {"unblocked", "decision", "unsubscribed"} & document.keys():
        return DeleteOne({"_id": document["_id"]})
    summarize(document)
    return save_write(document, document["_id"])


def _domain_write(document: DomainDocument, removed_source: str | None) -> Write:
    """Removes a source from the document. Returns the write that saves the document, or deletes an empty document."""
    document["by"] = [entry for entry in document["by"] if entry["source"] != removed_source]
    if not document["by"] and "decision" not in document:
        return DeleteOne({"_id": document["_id"]})
    summarize_domain(document)
    return save_write(document, document["_id"])


class _DomainDocuments:
    """The documents of domains whose sums of imported rows change in a transaction."""

    def __init__(self, mongo: Mongo, session: Session, organization_id: str) -> None:
        self._collection = mongo["mail_domains"]
        self._session = session
        self._org = organization_id
        self._documents: dict[str, DomainDocument] = {}
        self._changed: set[str] = set()

    async def load(self, domains: set[str]) -> None:
        ids = [domain_id(self._org, domain) for domain in domains]
        cursor = self._collection.find({"_id": {"$in": ids}}, session=self._session)
        existing: list[DomainDocument] = await cursor.to_list(None)
        self._documents = {domain: new_domain(self._org, domain) for domain in domains}
        self._documents |= {document["domain"]: document for document in existing}

    def change(self, domain: str, row_before: ImportedCounts | None, row_after: ImportedCounts | None) -> None:
        """Adds the difference between an address's latest rows before and after the change to the domain's sums."""
        differences = [
            (name, (row_after[name] if row_after else 0) - (row_before[name] if row_before else 0)) for name in COUNTS
        ]
        if any(difference for _, difference in differences):
            entry = source_entry(self._documents[domain]["by"], IMPORTED_ROWS)
            for name, difference in differences:
                entry[name] = entry.get(name, 0) + difference
            self._changed.add(domain)

    async def save(self) -> None:
        writes: list[Write] = []
        for domain in sorted(self._changed):
            document = self._documents[domain]
            entry = source_entry(document["by"], IMPORTED_ROWS)
            if not any(entry.get(name) for name in COUNTS):
                document["by"].remove(entry)
            if "_id" in document and not document["by"] and "decision" not in document:
                writes.append(DeleteOne({"_id": document["_id"]}))
                continue
            summarize_domain(document)
            writes.append(save_write(document, domain_id(self._org, domain)))
        if writes:
            await self._collection.bulk_write(writes, ordered=False, session=self._session)
