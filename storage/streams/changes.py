"""Changes, and the batch in which they are planned. The changes of a batch are committed together (group commit).

A change names the documents that it needs, and the rights without which it is refused. It is planned in memory, on the
documents as earlier changes left them. The sequencer reads and writes the documents of all changes at once. A change
that raises a DomainError fails alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

from bson import ObjectId
from pymongo import DeleteOne, InsertOne, ReplaceOne

from storage.idempotency import IdempotencyKey, IdempotencyKeyDocument
from storage.mongo import Mongo, Session, Write
from storage.streams.documents import OutboxDocument
from storage.streams.log import Event, Stream

Result = TypeVar("Result")
DocumentKey = tuple[str, Any]
"""Collection and _id of a document."""


TOPIC_ROWS = frozenset({"ThreadActivity", "CrossPost"})
"""Kinds of outbox rows that topics take. Their relays take timestamps for messages only."""


def require_outbox_target(stream: Stream, kind: str) -> None:
    """Raises ValueError for a topic, unless it takes rows of the kind.

    Other relays take timestamps for other things. In a topic, each would count as a message in the topic's heat.
    """
    if stream.kind == "topic" and kind not in TOPIC_ROWS:
        raise ValueError(
            f"{stream.name} takes no outbox rows of the kind {kind}; emit the event in a change of the topic instead."
        )


def document_key(collection: str, id_: Any) -> DocumentKey:
    """Returns a hashable key, also for an `_id` that is a document."""
    return collection, tuple(id_.values()) if isinstance(id_, dict) else id_


@dataclass(slots=True)
class Batch:
    """The planned writes and events of one transaction on one stream.

    The sequencer has already allocated the timestamps and event numbers of the whole batch; `head` is the stream's head
    after this allocation. Changes take timestamps and event numbers in the order in which they are planned.
    """

    stream: Stream
    head: Any
    """A HeadFields; for a topic's stream, the whole TopicDocument."""

    first_timestamp: int
    next_n: int
    taken: int = 0
    """Number of timestamps that changes took."""

    events: list[Event] = field(default_factory=list)
    outbox: list[OutboxDocument] = field(default_factory=list)
    idempotency_keys: list[IdempotencyKeyDocument] = field(default_factory=list)
    """Idempotency keys to store."""

    loaded: set[DocumentKey] = field(default_factory=set)
    """The documents that were read in the transaction."""

    written: dict[DocumentKey, Any] = field(default_factory=dict)
    """The _id of each document that was put or removed."""

    head_changes: dict[str, Any] = field(default_factory=dict)
    """Fields of the head that were changed, with their new values."""

    changes: Sequence["Change[Any]"] = ()
    """All changes of the batch, so that the first change to load can read documents for the other changes too."""

    shared: dict[str, Any] = field(default_factory=dict)
    """Other data that changes load and share, by a name that their area chooses."""

    _documents: dict[DocumentKey, Any] = field(default_factory=dict)
    """The documents as planned so far; None for a removed document."""
    _outbox_keys: set[tuple[str, str, Any]] = field(default_factory=set)

    @property
    def at(self) -> datetime:
        """The database's clock when the batch's timestamps and event numbers were allocated."""
        at: datetime = self.head["committed_at"]
        return at

    @property
    def last_n(self) -> int:
        """Number of the stream's last event so far. Before the batch emits an event, it is of an earlier batch."""
        return self.next_n - 1

    @property
    def last_timestamp(self) -> int:
        """The last timestamp that a change took. Meaningless while `taken` is 0."""
        return self.first_timestamp + self.taken - 1

    def take_timestamp(self) -> int:
        """Returns the next timestamp of the stream, in microseconds."""
        self.taken += 1
        return self.last_timestamp

    def change_head(self, **fields: Any) -> None:
        """Sets fields of the head other than those of `HeadFields`. Later changes of the batch see them in `head`."""
        self.head.update(fields)
        self.head_changes.update(fields)

    def emit(self, kind: str, ref: Any) -> None:
        """Appends an event to the stream."""
        self.events.append(Event(self.next_n, kind, ref, self.at))
        self.next_n += 1

    def add_outbox_row(self, stream: Stream, kind: str, ref: Any) -> None:
        """Adds a row for another stream. A later commit of that stream relays it. Equal rows are added once.

        Raises: ValueError for a topic that does not take the kind.
        """
        require_outbox_target(stream, kind)
        key = (stream.name, *document_key(kind, ref))
        if key in self._outbox_keys:
            return
        self._outbox_keys.add(key)
        self.outbox.append({"_id": ObjectId(), "stream": stream.name, "kind": kind, "ref": ref, "at": self.at})

    def add_loaded(self, collection: str, document: Mapping[str, Any]) -> None:
        """Registers a document that was read in the transaction."""
        key = document_key(collection, document["_id"])
        self._documents[key] = document
        self.loaded.add(key)

    def get(self, collection: str, id_: Any) -> Any:
        """Returns a loaded document as earlier changes of the batch left it; None if it does not exist."""
        return self._documents.get(document_key(collection, id_))

    def put(self, collection: str, document: Mapping[str, Any]) -> None:
        """Inserts the document, or replaces the loaded document with the same _id.

        Replacing a document that was not loaded fails with a duplicate key.
        """
        key = document_key(collection, document["_id"])
        self._documents[key] = document
        self.written[key] = document["_id"]

    def remove(self, collection: str, id_: Any) -> None:
        """Deletes a loaded document, or drops a document that the batch has put."""
        key = document_key(collection, id_)
        self._documents[key] = None
        self.written[key] = id_

    def changed_documents(self, collection: str) -> list[Any]:
        """Returns the documents of a collection that the batch put and did not remove."""
        keys = [key for key in self.written if key[0] == collection]
        return [document for key in keys if (document := self._documents[key]) is not None]

    def writes(self, collection: str, id_: Any) -> list[Write]:
        """Returns the write that turns the loaded document into the planned document. Empty if none is necessary."""
        key = document_key(collection, id_)
        document = self._documents[key]
        if document is None:
            return [DeleteOne({"_id": id_})] if key in self.loaded else []
        if key in self.loaded:
            return [ReplaceOne({"_id": id_}, document)]
        return [InsertOne(document)]


class Right(ABC):
    """A right of the person who makes a change, or a state of another person without which the change is refused.

    It is read and checked in the transaction that commits the change. So a right that was lost since the request was
    checked is refused.
    """

    def needs(self, batch: Batch) -> Sequence[DocumentKey]:
        """Returns the keys of the documents to read in the transaction. The batch has no documents yet."""
        return ()

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads documents by other criteria than their _id. Called when the documents of `needs` were read."""
        return

    @abstractmethod
    def check(self, batch: Batch) -> None:
        """Checks the right on the documents as earlier changes left them. Raises: DomainError, usually Forbidden."""


class Change(ABC, Generic[Result]):
    """One change of a batch. After a conflict the batch starts over, so a change may be planned more than once."""

    max_timestamps: ClassVar[int] = 0
    """Maximum number of timestamps that the change takes."""

    usual_events: ClassVar[int] = 1
    """Usual number of events that the change emits.

    The head is advanced by the sum of these numbers before the batch is planned. If the batch then emits more or fewer
    events, one more write corrects the head.
    """

    idempotency: IdempotencyKey | None = None

    @abstractmethod
    def rights(self) -> Sequence[Right]:
        """Returns the rights that the change needs, in the order in which they are checked, before `plan`."""

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the keys of the documents to read in the transaction."""
        return ()

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads documents by other criteria than their _id, and adds them to the batch. Most changes read none."""
        return

    @abstractmethod
    def plan(self, batch: Batch) -> Result:
        """Plans the change. Raises: DomainError to fail alone, before it puts or emits anything."""

    def result_id(self, result: Result) -> str:
        """Returns the id that the idempotency key stores. Called only if the change has a key."""
        raise NotImplementedError


class SystemChange(Change[Result]):
    """A change that workers, relays and erasures make on their own account. It needs no person's rights."""

    def rights(self) -> Sequence[Right]:
        """Returns no right."""
        return ()
