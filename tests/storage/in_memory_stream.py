"""A stream in memory: plans one change after another on a manual clock, and keeps the resulting documents."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from storage.errors import DomainError
from storage.identity.audit import AUDIT
from storage.mongo import Document
from storage.streams.changes import Batch, Change
from storage.streams.log import jobs_stream

ORG = "acme"
ADA: Document = {"_id": {"org": ORG, "id": "ada"}, "roles": ["ADMIN"], "roles_granted": True}
"""The account of the administrator."""

BEGIN = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
REMOVED = "removed"

Result = TypeVar("Result")


@dataclass
class InMemoryStream:
    """A stream of jobs without a database: documents by collection and _id, emitted events and outbox rows."""

    now: datetime = BEGIN
    documents: dict[tuple[str, Any], Document] = field(default_factory=lambda: {_key("users", ADA["_id"]): ADA})
    events: list[tuple[datetime, str, Any]] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)
    shared: dict[str, Any] = field(default_factory=dict)
    """Data that a real `load` would have put into each batch's `shared`."""

    def commit(self, change: Change[Result], *loaded: tuple[str, Any]) -> Result:
        """Plans the change and returns its result.

        Asserts that loaded documents are not changed in place, and that a DomainError changes nothing.
        """
        head = {"committed_at": self.now, "before": {}}
        batch = Batch(jobs_stream(ORG), head, first_timestamp=int(self.now.timestamp() * 1e6), next_n=1)
        batch.shared = self.shared
        rights = change.rights()
        for collection, id_ in [*(need for right in rights for need in right.needs(batch)), *change.needs(), *loaded]:
            if (document := self.get(collection, id_)) is not None:
                batch.add_loaded(collection, document)
        before = [(document, repr(document)) for document in self.documents.values()]
        for right in rights:
            right.check(batch)
        locked = list(batch.written)
        try:
            result = change.plan(batch)
        except DomainError:
            effects = [*[each for each in batch.written if each not in locked], *batch.events, *batch.outbox]
            assert effects == [], "A change that fails must change nothing."
            raise
        assert all(repr(document) == text for document, text in before), "Changes must copy what they load."
        for (collection, _), id_ in batch.written.items():
            self._write(collection, id_, batch)
        self.events += [(self.now, event.kind, event.ref) for event in batch.events]
        self.rows += batch.outbox
        return result

    def _write(self, collection: str, id_: Any, batch: Batch) -> None:
        document = batch.get(collection, id_)
        if document is None:
            self.documents.pop(_key(collection, id_), None)
        else:
            self.documents[_key(collection, id_)] = document

    def get(self, collection: str, id_: Any) -> Document | None:
        return self.documents.get(_key(collection, id_))

    def put(self, collection: str, document: Document) -> None:
        self.documents[_key(collection, document["_id"])] = document

    @property
    def emitted(self) -> list[tuple[str, Any]]:
        """Kind and reference of each event."""
        return [(kind, ref) for _, kind, ref in self.events]

    @property
    def audited(self) -> list[Document]:
        """Actor, action, target and details of each entry of the audit log."""
        names = ("actor", "action", "kind", "target", "details")
        entries = [each for (collection, _), each in self.documents.items() if collection == AUDIT]
        return [{name: entry[name] for name in names} for entry in entries]

    def wait(self, seconds: float) -> None:
        """Moves the clock forward, rounded to milliseconds."""
        self.now += timedelta(milliseconds=round(seconds * 1000))


def _key(collection: str, id_: Any) -> tuple[str, Any]:
    return collection, tuple(id_.values()) if isinstance(id_, dict) else id_


def in_s(seconds: float) -> datetime:
    """Returns the instant that many seconds after the stream's clock began."""
    return BEGIN + timedelta(seconds=seconds)


def without(document: Document, *names: str) -> Document:
    """Returns the document without some fields."""
    return {name: value for name, value in document.items() if name not in names}


def differences(before: Document, after: Document) -> Document:
    """Returns the fields that differ, with their new values. The value of a field that is absent now is REMOVED."""
    changed = {name: value for name, value in after.items() if name not in before or before[name] != value}
    return changed | {name: REMOVED for name in before if name not in after}
