"""What a member of a group commit is made of: the change, and the batch it is planned on.

A change names the documents it needs, then plans in memory on what the members before it left; the sequencer reads
and writes for all members at once. A member that raises a DomainError fails alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

from bson import ObjectId
from pymongo import DeleteOne, InsertOne, ReplaceOne

from storage.idempotency import IdempotencyKey
from storage.mongo import Document, Mongo, Session, Write
from storage.streams.log import Event, Stream

Result = TypeVar("Result")
Need = tuple[str, Any]
"""A document to read in the transaction: collection and _id."""


def _key(collection: str, id_: Any) -> tuple[str, Any]:
    return collection, tuple(id_.values()) if isinstance(id_, dict) else id_


@dataclass(slots=True)
class Batch:
    """One transaction's worth of changes to one stream, as planned so far.

    `head` is the stream's head after allocation; timestamps and numbers are handed out in the order of asking.
    """

    stream: Stream
    head: Document
    first_timestamp: int
    next_n: int
    taken: int = 0
    events: list[Event] = field(default_factory=list)
    outbox: list[Document] = field(default_factory=list)
    keys: list[Document] = field(default_factory=list)
    loaded: set[tuple[str, Any]] = field(default_factory=set)
    written: dict[tuple[str, Any], Any] = field(default_factory=dict)
    _documents: dict[tuple[str, Any], Any] = field(default_factory=dict)
    _told: set[tuple[str, str, Any]] = field(default_factory=set)

    @property
    def at(self) -> datetime:
        """The database's clock when this batch got its place."""
        at: datetime = self.head["committed_at"]
        return at

    def take_timestamp(self) -> int:
        """The next timestamp of the stream, in microseconds."""
        self.taken += 1
        return self.first_timestamp + self.taken - 1

    def emit(self, kind: str, ref: Any) -> None:
        """Appends an event to the stream."""
        self.events.append(Event(self.next_n, kind, ref, self.at))
        self.next_n += 1

    @property
    def end(self) -> Document:
        """Where the head belongs, once the members took what they needed."""
        last = {"last": self.first_timestamp + self.taken - 1} if self.taken else self.head["before"]
        return {"n": self.next_n - 1, **last}

    def add_outbox_row(self, stream: Stream, kind: str, ref: Any) -> None:
        """Leaves a row for another stream, to be moved there by that stream's own commit; once for the same thing."""
        told = (stream.name, *_key(kind, ref))
        if told in self._told:
            return
        self._told.add(told)
        self.outbox.append({"_id": ObjectId(), "stream": stream.name, "kind": kind, "ref": ref, "at": self.at})

    def add(self, collection: str, document: Mapping[str, Any]) -> None:
        """Makes a document that was read in the transaction known to the members."""
        key = _key(collection, document["_id"])
        self._documents[key] = document
        self.loaded.add(key)

    def get(self, collection: str, id_: Any) -> Any:
        """A needed document as the members before left it; None where there is none."""
        return self._documents.get(_key(collection, id_))

    def put(self, collection: str, document: Mapping[str, Any]) -> None:
        """Inserts the document, or replaces the one of the same _id, which must have been needed."""
        key = _key(collection, document["_id"])
        self._documents[key] = document
        self.written[key] = document["_id"]

    def remove(self, collection: str, id_: Any) -> None:
        """Deletes a needed document."""
        key = _key(collection, id_)
        self._documents[key] = None
        self.written[key] = id_

    def changed(self, collection: str) -> list[Any]:
        """The documents of a collection that the batch wrote, as they are now; without those it deleted."""
        keys = [key for key in self.written if key[0] == collection]
        return [document for key in keys if (document := self._documents[key]) is not None]

    def writes(self, collection: str, id_: Any) -> list[Write]:
        """The write that takes a document from how it was read to how it is now."""
        key = _key(collection, id_)
        document = self._documents[key]
        if document is None:
            return [DeleteOne({"_id": id_})] if key in self.loaded else []
        if key in self.loaded:
            return [ReplaceOne({"_id": id_}, document)]
        return [InsertOne(document)]


class Change(ABC, Generic[Result]):
    """One member of a batch. It may be planned more than once: after a conflict the batch starts over."""

    timestamps: ClassVar[int] = 0
    """How many timestamps it takes at most."""

    events: ClassVar[int] = 1
    """How many events it usually emits; where the guess is wrong the batch costs one more write."""

    idempotency: IdempotencyKey | None = None

    def needs(self) -> Sequence[Need]:
        """The documents to read in the transaction."""
        return ()

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads what can't be named by _id. Most changes need nothing here."""
        return

    @abstractmethod
    def plan(self, batch: Batch) -> Result:
        """Plans the change. Raises: DomainError to fail alone, before anything was put or emitted."""

    def result_id(self, result: Result) -> str:
        """What the idempotency key remembers. Only asked of changes that carry a key."""
        raise NotImplementedError
