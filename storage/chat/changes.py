"""What can happen to a topic's messages, as changes that the sequencer commits to the topic's stream."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.chat.records import Message, message_record
from storage.errors import BadUserInput, Conflict, Forbidden, NotFound
from storage.idempotency import IdempotencyKey
from storage.identity.records import user_stream
from storage.link_previews import LinkPreview, first_url, preview_document
from storage.mongo import Document
from storage.notifications import NotificationKind, notify
from storage.references import MessageKey
from storage.streams.changes import Batch, Change, Need
from storage.streams.log import Stream

MAX_EMOJIS = 30
MESSAGES = "messages"
REACTIONS = "reactions"


@dataclass(frozen=True, slots=True)
class NewMessage:
    """What a message is made of, checked. `source` is unique: what made the message makes no second."""

    topic_id: str
    community_id: str
    author_id: str
    text: str
    stamp_id: str | None
    mention_ids: Sequence[str]
    source: str | None = None


@dataclass(slots=True)
class PostMessage(Change[Message]):
    """A new message: its place in the topic, its event, and word of it to the community."""

    timestamps = 1
    new: NewMessage
    idempotency: IdempotencyKey | None = None

    def plan(self, batch: Batch) -> Message:
        """Takes the next timestamp."""
        new = self.new
        timestamp = batch.take_timestamp()
        document = _kept(
            {
                "_id": {"t": new.topic_id, "ts": timestamp},
                "author": new.author_id,
                "text": new.text,
                "stamp": new.stamp_id,
                "mentions": list(new.mention_ids),
                "source": new.source,
            }
        )
        _await_preview(document, batch)
        batch.put(MESSAGES, document)
        batch.emit("MessagePosted", timestamp)
        batch.add_outbox_row(Stream("community", new.community_id), "TopicActivity", new.topic_id)
        _notify_mentioned(batch, MessageKey(new.topic_id, timestamp), new.author_id, new.mention_ids)
        return message_record(document)

    def result_id(self, result: Message) -> str:
        """The message's id."""
        return result.id


@dataclass(slots=True)
class _MessageChange(Change[Message]):
    """A change of one existing message."""

    key: MessageKey

    def needs(self) -> Sequence[Need]:
        """The message itself."""
        return [(MESSAGES, self.key.document_id)]

    def message(self, batch: Batch) -> Document:
        """A copy of the message, to be changed and put back. Raises: NotFound."""
        document = batch.get(MESSAGES, self.key.document_id)
        if document is None:
            raise NotFound("message", self.key.id)
        return dict(document)

    def living(self, batch: Batch) -> Document:
        """The same, for what can't be done to a tombstone. Raises: NotFound, Conflict."""
        document = self.message(batch)
        if document.get("deleted_at") is not None:
            raise Conflict("The message was deleted.")
        return document

    def keep(self, batch: Batch, document: Document, event: str) -> Message:
        """Puts the message back and tells of it."""
        document = _kept(document)
        batch.put(MESSAGES, document)
        batch.emit(event, self.key.timestamp)
        return message_record(document)


@dataclass(slots=True)
class EditMessage(_MessageChange):
    """New text by the author. The preview is fetched anew when the first link changed."""

    editor_id: str
    text: str
    mention_ids: Sequence[str]

    def plan(self, batch: Batch) -> Message:
        """Raises: NotFound, Conflict for a tombstone, Forbidden, BadUserInput when nothing would be left."""
        document = self.living(batch)
        if document["author"] != self.editor_id:
            raise Forbidden("Only its author edits a message.")
        if not self.text and document.get("stamp") is None:
            raise BadUserInput("text", "1 to 4000 characters, since the message has no stamp")
        moved = first_url(self.text) != first_url(document["text"])
        added = [user_id for user_id in self.mention_ids if user_id not in document.get("mentions", ())]
        _notify_mentioned(batch, self.key, self.editor_id, added)
        document |= {"text": self.text, "mentions": list(self.mention_ids), "edited_at": batch.at}
        if moved:
            document.pop("preview", None)
            document.pop("preview_due", None)
            _await_preview(document, batch)
        return self.keep(batch, document, "MessageEdited")


@dataclass(slots=True)
class DeleteMessage(_MessageChange):
    """Leaves a tombstone. By the author, or by whoever may delete any."""

    deleter_id: str
    may_delete_any: bool

    def plan(self, batch: Batch) -> Message:
        """Deleting twice changes nothing. Raises: NotFound, Forbidden."""
        document = self.message(batch)
        if not (self.may_delete_any or document["author"] == self.deleter_id):
            raise Forbidden("Only its author or an ADMIN deletes a message.")
        if document.get("deleted_at") is not None:
            return message_record(document)
        if document.get("reactions"):
            # Its author's stream has the last word on what was received of it.
            batch.add_outbox_row(user_stream(batch.head["org"], document["author"]), "Reaction", self.key.document_id)
        for field in ("preview", "preview_due", "edited_at", "stamp", "mentions", "reactions"):
            document.pop(field, None)
        document |= {"text": "", "deleted_at": batch.at}
        return self.keep(batch, document, "MessageDeleted")


@dataclass(slots=True)
class _ReactionChange(_MessageChange):
    """One user's one emoji under one message. Told to the author's own stream as "look again"."""

    organization_id: str
    user_id: str
    emoji: str

    @property
    def row_id(self) -> Document:
        """The reaction's _id: one per message, emoji and user."""
        return {"t": self.key.topic_id, "ts": self.key.timestamp, "e": self.emoji, "u": self.user_id}

    def needs(self) -> Sequence[Need]:
        """The message and the reaction."""
        return [(MESSAGES, self.key.document_id), (REACTIONS, self.row_id)]

    def recount(self, batch: Batch, document: Document, step: int) -> Message:
        """Moves the emoji's count and tells the author. An emoji that nobody uses any more goes away."""
        counts = {r["emoji"]: r["count"] for r in document.get("reactions", ())}
        counts[self.emoji] = counts.get(self.emoji, 0) + step
        document["reactions"] = [{"emoji": e, "count": c} for e, c in counts.items() if c > 0]
        if document["author"] != self.user_id:
            batch.add_outbox_row(user_stream(self.organization_id, document["author"]), "Reaction", self.row_id)
        return self.keep(batch, document, "ReactionsChanged")


@dataclass(slots=True)
class AddReaction(_ReactionChange):
    """Reacts; the same reaction twice changes nothing."""

    def plan(self, batch: Batch) -> Message:
        """Raises: NotFound, Conflict for a tombstone or a 31st emoji."""
        document = self.living(batch)
        if batch.get(REACTIONS, self.row_id) is not None:
            return message_record(document)
        emojis = {r["emoji"] for r in document.get("reactions", ())}
        if self.emoji not in emojis and len(emojis) >= MAX_EMOJIS:
            raise Conflict(f"A message has at most {MAX_EMOJIS} different reactions.")
        batch.put(REACTIONS, {"_id": self.row_id, "at": batch.at})
        return self.recount(batch, document, +1)


@dataclass(slots=True)
class RemoveReaction(_ReactionChange):
    """Takes a reaction back; without one nothing changes."""

    def plan(self, batch: Batch) -> Message:
        """Raises: NotFound."""
        document = self.message(batch)
        if batch.get(REACTIONS, self.row_id) is None:
            return message_record(document)
        batch.remove(REACTIONS, self.row_id)
        if document.get("deleted_at") is not None:
            return message_record(document)
        return self.recount(batch, document, -1)


@dataclass(slots=True)
class SetPreview(_MessageChange):
    """What the preview job found for a link; None when there is nothing to show."""

    url: str
    preview: LinkPreview | None

    def plan(self, batch: Batch) -> Message:
        """Changes nothing when the text has another first link by now, or is gone. Raises: NotFound."""
        document = self.message(batch)
        if document.get("deleted_at") is not None or first_url(document["text"]) != self.url:
            return message_record(document)
        document.pop("preview_due", None)
        if self.preview is None:
            batch.put(MESSAGES, document)
            return message_record(document)
        document["preview"] = preview_document(self.preview)
        return self.keep(batch, document, "MessageEdited")


def _kept(document: Document) -> Document:
    """What is stored of a message: nothing of what it does not have, which every page would have to read."""
    return {field: value for field, value in document.items() if value is not None and value != []}


def _notify_mentioned(batch: Batch, key: MessageKey, author_id: str, user_ids: Sequence[str]) -> None:
    for user_id in user_ids:
        notify(batch, batch.head["org"], user_id, NotificationKind.MENTION, author_id, message=key)


def _await_preview(document: Document, batch: Batch) -> None:
    """Marks the message as waiting for its preview; the mark is what the lifeline sweeper finds."""
    if first_url(document["text"]) is not None:
        document["preview_due"] = batch.at
