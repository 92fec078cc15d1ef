"""Changes of a topic by moderators, committed to the topic's stream: pins and slow mode."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.chat.changes import MESSAGES, remove_pin
from storage.chat.documents import MessageDocument, PinDocument
from storage.chat.records import Message, message_record
from storage.errors import Conflict, NotFound
from storage.identity.audit import AUDIT, Actor, AuditAction, TargetKind, audit_document
from storage.ids import MessageKey
from storage.streams.changes import Batch, Change, DocumentKey, Result

MAX_PINS = 50


@dataclass(slots=True)
class TopicChange(Change[Result]):
    """Base of moderators' changes of a topic."""

    actor: Actor

    def audit(self, batch: Batch, action: AuditAction, **details: str) -> None:
        """Puts the entry of the audit log about the topic's community."""
        kind, community_id = TargetKind.COMMUNITY, batch.head["community"]
        batch.put(AUDIT, audit_document(self.actor, action, kind, community_id, batch.at, **details))


@dataclass(slots=True)
class PinMessage(TopicChange[Message]):
    """Pins a message above the earlier pins. Idempotent."""

    key: MessageKey

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the message."""
        return [(MESSAGES, self.key.document_id)]

    def plan(self, batch: Batch) -> Message:
        """Adds the pin to the head. Raises: NotFound; Conflict for a deleted message and for too many pins."""
        document: MessageDocument | None = batch.get(MESSAGES, self.key.document_id)
        if document is None:
            raise NotFound("message", self.key.id)
        pins: list[PinDocument] = batch.head.get("pins", [])
        if any(pin["ts"] == self.key.timestamp for pin in pins):
            return message_record(document)
        if document.get("deleted_at") is not None:
            raise Conflict("The message was deleted.")
        if len(pins) >= MAX_PINS:
            raise Conflict(f"The topic has {MAX_PINS} pinned messages. Unpin one first.")
        pin: PinDocument = {"ts": self.key.timestamp, "by": self.actor.user_id, "at": batch.at}
        batch.change_head(pins=[pin, *pins])
        batch.emit("MessagePinned", self.key.timestamp)
        self.audit(batch, AuditAction.MESSAGE_PINNED, message=self.key.id)
        return message_record(document)


@dataclass(slots=True)
class UnpinMessage(TopicChange[None]):
    """Removes a pin. Idempotent."""

    key: MessageKey

    def plan(self, batch: Batch) -> None:
        """Removes the pin from the head if there is one."""
        if remove_pin(batch, self.key.timestamp):
            batch.emit("MessageUnpinned", self.key.timestamp)
            self.audit(batch, AuditAction.MESSAGE_UNPINNED, message=self.key.id)


@dataclass(slots=True)
class SetSlowMode(TopicChange[None]):
    """Sets the seconds between messages of one person; 0 ends slow mode. Idempotent."""

    topic_id: str
    seconds: int

    def plan(self, batch: Batch) -> None:
        """Sets the field of the head."""
        if batch.head.get("slow_s", 0) == self.seconds:
            return
        batch.change_head(slow_s=self.seconds)
        self.audit(batch, AuditAction.TOPIC_SLOW_MODE_SET, topic=self.topic_id, seconds=str(self.seconds))
