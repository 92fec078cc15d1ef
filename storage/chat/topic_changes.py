"""Changes of a topic by moderators, committed to the topic's stream: title, archive, pins and slow mode."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from storage.chat.changes import MESSAGES, remove_pin
from storage.chat.documents import MessageDocument, PinDocument
from storage.chat.memberships import community_stream
from storage.chat.records import Message, message_record
from storage.chat.rights import MayModerate
from storage.chat.roles import Moderator
from storage.chat.search.terms import TOPIC_TERMS, topic_terms, topic_terms_id
from storage.errors import Conflict, NotFound
from storage.identity.audit import AuditAction, TargetKind, put_entry
from storage.ids import MessageKey
from storage.streams.changes import Batch, Change, DocumentKey, Result, Right

MAX_PINS = 50


@dataclass(slots=True)
class TopicChange(Change[Result]):
    """Base of moderators' changes of a topic."""

    moderator: Moderator

    def rights(self) -> Sequence[Right]:
        """Returns the right to moderate the topic's community."""
        return (MayModerate(self.moderator),)

    def audit(self, batch: Batch, action: AuditAction, **details: str) -> None:
        """Puts the entry of the audit log about the topic's community."""
        kind, community_id = TargetKind.COMMUNITY, batch.head["community"]
        actor = self.moderator.actor_in(batch.head["org"])
        put_entry(batch, actor, action, kind, community_id, **details)


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
        pin: PinDocument = {"ts": self.key.timestamp, "by": self.moderator.user_id, "at": batch.at}
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
class TopicSettingChange(TopicChange[None]):
    """Base of changes of a topic's settings. Subscribers of the topic and of its community receive TopicChanged."""

    topic_id: str

    def put_setting(self, batch: Batch, action: AuditAction, details: Mapping[str, str], **fields: Any) -> None:
        """Sets the fields of the head, and puts the events and the entry of the audit log."""
        batch.change_head(**fields)
        batch.emit("TopicChanged", self.topic_id)
        batch.add_outbox_row(community_stream(batch.head["community"]), "TopicChanged", self.topic_id)
        self.audit(batch, action, topic=self.topic_id, **details)


@dataclass(slots=True)
class RenameTopic(TopicSettingChange):
    """Replaces the title. Idempotent."""

    title: str
    created_at: datetime

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the terms of the title."""
        return [(TOPIC_TERMS, topic_terms_id(self.topic_id, self.created_at))]

    def plan(self, batch: Batch) -> None:
        """Sets the title of the head.

        Every ADMIN reads the audit log, but not every ADMIN may see a private community. So the entry has no title.
        """
        if batch.head["title"] == self.title:
            return
        self.put_setting(batch, AuditAction.TOPIC_RENAMED, {}, title=self.title)
        batch.put(TOPIC_TERMS, topic_terms(self.topic_id, self.created_at, batch.head["community"], self.title))


@dataclass(slots=True)
class SetTopicArchived(TopicSettingChange):
    """Archives or unarchives a topic. Every write to the topic checks the head, so none commits later. Idempotent."""

    is_archived: bool

    def plan(self, batch: Batch) -> None:
        """Sets the field of the head."""
        if self.is_archived == (batch.head.get("archived_at") is not None):
            return
        action = AuditAction.TOPIC_ARCHIVED if self.is_archived else AuditAction.TOPIC_UNARCHIVED
        self.put_setting(batch, action, {}, archived_at=batch.at if self.is_archived else None)


@dataclass(slots=True)
class SetSlowMode(TopicSettingChange):
    """Sets the seconds between messages of one person; 0 ends slow mode. Idempotent."""

    seconds: int

    def plan(self, batch: Batch) -> None:
        """Sets the field of the head."""
        if batch.head.get("slow_s", 0) == self.seconds:
            return
        details = {"seconds": str(self.seconds)}
        self.put_setting(batch, AuditAction.TOPIC_SLOW_MODE_SET, details, slow_s=self.seconds)
