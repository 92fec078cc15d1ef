"""Changes of a topic's messages and reactions, committed by the sequencer to the topic's stream."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.chat.documents import (
    MessageDocument,
    PinDocument,
    ReactionCountDocument,
    ReactionDocument,
    ReactionDocumentId,
)
from storage.chat.memberships import community_stream
from storage.chat.records import Message, message_record
from storage.chat.restrictions import WriterChange, require_may_write, require_not_archived, require_not_removed
from storage.chat.slow_mode import load_last_posts, require_pause
from storage.chat.trends import count_poster
from storage.errors import BadUserInput, Conflict, Forbidden, NotFound
from storage.idempotency import IdempotencyKey
from storage.identity.audit import AUDIT, Actor, AuditAction, TargetKind, audit_document
from storage.identity.records import user_stream
from storage.ids import MessageKey
from storage.link_previews import LinkPreview, first_url, preview_document
from storage.mongo import Mongo, Session
from storage.notifications import NotificationKind, notify
from storage.streams.changes import Batch, Change, DocumentKey

MAX_EMOJIS = 30
MESSAGES = "messages"
REACTIONS = "reactions"


@dataclass(frozen=True, slots=True)
class NewMessage:
    """The validated content of a message to post.

    `source` is a unique name of the message's origin, such as a publication. Each origin posts at most one message.
    """

    topic_id: str
    community_id: str
    author_id: str
    text: str
    stamp_id: str | None
    mention_ids: Sequence[str]
    source: str | None = None
    ignores_slow_mode: bool = False
    """True for messages of moderators, and for scheduled messages."""


@dataclass(slots=True)
class PostMessage(WriterChange[Message]):
    """Posts a message: stores it, emits its event, and notifies the community and the mentioned users."""

    max_timestamps = 1
    new: NewMessage
    idempotency: IdempotencyKey | None = None

    @property
    def writer_id(self) -> str:
        """The author."""
        return self.new.author_id

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the restrictions of all writers of the batch, and in slow mode when they posted last."""
        # Explicit: dataclasses with slots are created anew, so `super()` without arguments would fail.
        await WriterChange.load(self, mongo, session, batch)
        writers = {change.writer_id for change in batch.changes if isinstance(change, PostMessage)}
        await load_last_posts(mongo, session, batch, writers)

    def plan(self, batch: Batch) -> Message:
        """Puts the message at the topic's next timestamp.

        Raises: Forbidden for a banned or muted author and in an archived community; RateLimited in slow mode.
        """
        new = self.new
        require_may_write(batch, new.author_id)
        if not new.ignores_slow_mode:
            require_pause(batch, new.author_id)
        timestamp = batch.take_timestamp()
        key = MessageKey(new.topic_id, timestamp)
        document = _new_document(key, new)
        _request_preview(document, batch)
        batch.put(MESSAGES, document)
        count_poster(batch, new.author_id)
        batch.emit("MessagePosted", timestamp)
        batch.add_outbox_row(community_stream(new.community_id), "TopicActivity", new.topic_id)
        _notify_mentioned(batch, key, new.author_id, new.mention_ids)
        return message_record(document)

    def result_id(self, result: Message) -> str:
        """Returns the message's id."""
        return result.id


@dataclass(slots=True)
class _MessageChange(Change[Message]):
    """A change of one existing message."""

    key: MessageKey

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the message."""
        return [(MESSAGES, self.key.document_id)]

    def copy_message(self, batch: Batch) -> MessageDocument:
        """Returns a copy of the message, to be changed and put back. Raises: NotFound."""
        document: MessageDocument | None = batch.get(MESSAGES, self.key.document_id)
        if document is None:
            raise NotFound("message", self.key.id)
        return document.copy()

    def copy_undeleted_message(self, batch: Batch) -> MessageDocument:
        """Returns a copy of the message, to be changed and put back. Raises: NotFound, Conflict for a tombstone."""
        document = self.copy_message(batch)
        if document.get("deleted_at") is not None:
            raise Conflict("The message was deleted.")
        return document

    def put_message(self, batch: Batch, document: MessageDocument, event: str) -> Message:
        """Puts the message back and emits the event."""
        batch.put(MESSAGES, document)
        batch.emit(event, self.key.timestamp)
        return message_record(document)


@dataclass(slots=True)
class EditMessage(_MessageChange, WriterChange[Message]):
    """Replaces the text of a message. A changed first link gets a new preview."""

    editor_id: str
    text: str
    mention_ids: Sequence[str]

    @property
    def writer_id(self) -> str:
        """The editor."""
        return self.editor_id

    def plan(self, batch: Batch) -> Message:
        """Puts the edited message, and notifies users whom the old text did not mention.

        Raises: NotFound, Conflict for a tombstone, Forbidden, BadUserInput for neither text nor stamp.
        """
        document = self.copy_undeleted_message(batch)
        if document["author"] != self.editor_id:
            raise Forbidden("Only the author can edit a message.")
        require_may_write(batch, self.editor_id)
        if not self.text and document.get("stamp") is None:
            raise BadUserInput("text", "1 to 4000 characters, since the message has no stamp")
        has_new_link = first_url(self.text) != first_url(document["text"])
        newly_mentioned = [user_id for user_id in self.mention_ids if user_id not in document.get("mentions", ())]
        _notify_mentioned(batch, self.key, self.editor_id, newly_mentioned)
        document["text"], document["edited_at"] = self.text, batch.at
        _set_mentions(document, self.mention_ids)
        if has_new_link:
            document.pop("preview", None)
            document.pop("preview_due", None)
            _request_preview(document, batch)
        return self.put_message(batch, document, "MessageEdited")


@dataclass(slots=True)
class DeleteMessage(_MessageChange, WriterChange[Message]):
    """Replaces a message by a tombstone."""

    deleter_id: str
    may_delete_any: bool
    actor: Actor | None = None
    """The deleter and the place of the request, for the audit log; None for a deletion without a request."""

    @property
    def writer_id(self) -> str:
        """The person who deletes."""
        return self.deleter_id

    def plan(self, batch: Batch) -> Message:
        """Puts the tombstone, unless the message is deleted already. Raises: NotFound, Forbidden."""
        document = self.copy_message(batch)
        if not (self.may_delete_any or document["author"] == self.deleter_id):
            raise Forbidden("Only the author, a moderator of the community or an ADMIN can delete a message.")
        if not self.may_delete_any:
            require_not_removed(batch, self.deleter_id)
        if document.get("deleted_at") is not None:
            return message_record(document)
        if document["author"] != self.deleter_id:
            self._audit(batch, document["author"])
        if document.get("reactions"):
            # The relay removes the received reactions in the author's stream.
            batch.add_outbox_row(user_stream(batch.head["org"], document["author"]), "Reaction", self.key.document_id)
        remove_pin(batch, self.key.timestamp)
        return self.put_message(batch, _tombstone(document, batch), "MessageDeleted")

    def _audit(self, batch: Batch, author_id: str) -> None:
        """Puts the entry of the audit log about the deletion of another person's message."""
        actor = self.actor or Actor(batch.head["org"], self.deleter_id)
        details = {"community": batch.head["community"], "message": self.key.id}
        entry = audit_document(actor, AuditAction.MESSAGE_DELETED, TargetKind.USER, author_id, batch.at, **details)
        batch.put(AUDIT, entry)


@dataclass(slots=True)
class _ReactionChange(_MessageChange, WriterChange[Message]):
    """A change of one user's reaction to a message with one emoji."""

    organization_id: str
    user_id: str
    emoji: str

    @property
    def writer_id(self) -> str:
        """The user."""
        return self.user_id

    @property
    def reaction_id(self) -> ReactionDocumentId:
        """The reaction's `_id`."""
        return {"t": self.key.topic_id, "ts": self.key.timestamp, "e": self.emoji, "u": self.user_id}

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the message and the reaction."""
        return [(MESSAGES, self.key.document_id), (REACTIONS, self.reaction_id)]

    def change_count(self, batch: Batch, document: MessageDocument, step: int) -> Message:
        """Changes the emoji's count by `step`, and adds an outbox row for the stream of the message's author.

        The row only identifies the reaction, since additions and removals may be relayed in any order. Reactions to the
        user's own messages have no row.
        """
        counts = {each["emoji"]: each["count"] for each in document.get("reactions", ())}
        counts[self.emoji] = counts.get(self.emoji, 0) + step
        reactions: list[ReactionCountDocument] = [{"emoji": e, "count": c} for e, c in counts.items() if c > 0]
        document.pop("reactions", None)
        if reactions:
            document["reactions"] = reactions
        if document["author"] != self.user_id:
            batch.add_outbox_row(user_stream(self.organization_id, document["author"]), "Reaction", self.reaction_id)
        return self.put_message(batch, document, "ReactionsChanged")


@dataclass(slots=True)
class AddReaction(_ReactionChange):
    """Adds a reaction. Idempotent."""

    def plan(self, batch: Batch) -> Message:
        """Puts the reaction, unless it exists. Raises: NotFound, Forbidden, Conflict (deleted, 31st emoji)."""
        document = self.copy_undeleted_message(batch)
        require_may_write(batch, self.user_id)
        if batch.get(REACTIONS, self.reaction_id) is not None:
            return message_record(document)
        emojis = {each["emoji"] for each in document.get("reactions", ())}
        if self.emoji not in emojis and len(emojis) >= MAX_EMOJIS:
            raise Conflict(f"The message already has {MAX_EMOJIS} different reactions. Use one of them.")
        reaction: ReactionDocument = {"_id": self.reaction_id, "at": batch.at}
        batch.put(REACTIONS, reaction)
        return self.change_count(batch, document, +1)


@dataclass(slots=True)
class RemoveReaction(_ReactionChange):
    """Removes a reaction. Idempotent."""

    def plan(self, batch: Batch) -> Message:
        """Removes the reaction if it exists. Raises: NotFound, Forbidden for a banned user."""
        document = self.copy_message(batch)
        require_not_removed(batch, self.user_id)
        require_not_archived(batch)
        if batch.get(REACTIONS, self.reaction_id) is None:
            return message_record(document)
        batch.remove(REACTIONS, self.reaction_id)
        if document.get("deleted_at") is not None:
            return message_record(document)
        return self.change_count(batch, document, -1)


@dataclass(slots=True)
class SetPreview(_MessageChange):
    """Stores the preview that a job fetched for a link. `preview` is None if the page has none."""

    url: str
    preview: LinkPreview | None

    def plan(self, batch: Batch) -> Message:
        """Stores the preview, unless the message was deleted or has another first link. Raises: NotFound."""
        document = self.copy_message(batch)
        if document.get("deleted_at") is not None or first_url(document["text"]) != self.url:
            return message_record(document)
        document.pop("preview_due", None)
        if self.preview is None:
            batch.put(MESSAGES, document)
            return message_record(document)
        document["preview"] = preview_document(self.preview)
        return self.put_message(batch, document, "MessageEdited")


def remove_pin(batch: Batch, timestamp: int) -> bool:
    """Removes the pin of a message from the topic. Returns whether the message was pinned."""
    pins: list[PinDocument] = batch.head.get("pins", [])
    others = [pin for pin in pins if pin["ts"] != timestamp]
    if len(others) == len(pins):
        return False
    batch.change_head(pins=others)
    return True


def _new_document(key: MessageKey, new: NewMessage) -> MessageDocument:
    document: MessageDocument = {"_id": key.document_id, "author": new.author_id, "text": new.text}
    if new.stamp_id is not None:
        document["stamp"] = new.stamp_id
    if new.source is not None:
        document["source"] = new.source
    _set_mentions(document, new.mention_ids)
    return document


def _tombstone(document: MessageDocument, batch: Batch) -> MessageDocument:
    tombstone: MessageDocument = {
        "_id": document["_id"],
        "author": document["author"],
        "text": "",
        "deleted_at": batch.at,
    }
    if "source" in document:
        tombstone["source"] = document["source"]
    return tombstone


def _set_mentions(document: MessageDocument, user_ids: Sequence[str]) -> None:
    # An empty list is not stored: every page reads the documents, so they should be small.
    document.pop("mentions", None)
    if user_ids:
        document["mentions"] = list(user_ids)


def _notify_mentioned(batch: Batch, key: MessageKey, author_id: str, user_ids: Sequence[str]) -> None:
    for user_id in user_ids:
        notify(batch, batch.head["org"], user_id, NotificationKind.MENTION, author_id, message=key)


def _request_preview(document: MessageDocument, batch: Batch) -> None:
    """Marks a message with a link as waiting for its preview, so that the sweeper finds it if its job is lost."""
    if first_url(document["text"]) is not None:
        document["preview_due"] = batch.at
