"""Changes of a topic's messages, committed by the sequencer to the topic's stream."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.chat.conversations.rules import direct_fields, record_message
from storage.chat.documents import (
    MessageDocument,
    PinDocument,
)
from storage.chat.memberships import community_stream
from storage.chat.records import Message, Quote, message_record
from storage.chat.rights import MayDeleteMessage, MayWrite
from storage.chat.roles import Moderator
from storage.chat.search.terms import MESSAGE_TERMS, message_terms
from storage.chat.slow_mode import load_last_posts, record_post_in_slow_mode
from storage.chat.threads.followers import add_followers, load_hidden_authors, notify_followers
from storage.chat.threads.rules import count_reply, relay_reply, thread_fields
from storage.chat.trends import count_poster
from storage.errors import BadUserInput, Conflict, Forbidden, NotFound
from storage.files.attachments import NewAttachment, attach_files, check_attachable, file_keys, remove_files
from storage.files.link_previews import LinkPreview, first_url, put_preview
from storage.idempotency import IdempotencyKey
from storage.identity.audit import AuditAction, TargetKind, put_entry
from storage.identity.records import user_stream
from storage.identity.rights import IsActive
from storage.ids import MessageKey, UserKey
from storage.mongo import Mongo, Session
from storage.notifications import NotificationKind, notify
from storage.streams.changes import Batch, Change, DocumentKey, Right, SystemChange

MESSAGES = "messages"


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

    attachments: Sequence[NewAttachment] = ()
    quote: Quote | None = None
    also_in_topic: bool = False
    """True for a reply that is also sent to the topic of the thread's parent."""


@dataclass(slots=True)
class PostMessage(Change[Message]):
    """Posts a message: stores it, emits its event, and notifies the mentioned users and the followers of a thread.

    It also announces the activity to the community, to the people of a conversation, or in the topic of the parent.
    """

    max_timestamps = 1
    new: NewMessage
    idempotency: IdempotencyKey | None = None

    def rights(self) -> Sequence[Right]:
        """Returns the right to write to the topic."""
        return IsActive(self.new.author_id), MayWrite(self.new.author_id)

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the files to attach and the quoted message."""
        quote = self.new.quote
        quoted: list[DocumentKey] = [] if quote is None else [(MESSAGES, quote.key.document_id)]
        return [*file_keys(self.new.attachments), *quoted]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the last posts of all writers in slow mode, and the authors whom followers hide."""
        writers = {change.new.author_id for change in batch.changes if isinstance(change, PostMessage)}
        await load_last_posts(mongo, session, batch, writers)
        await load_hidden_authors(mongo, session, batch, writers)

    def plan(self, batch: Batch) -> Message:
        """Puts the message at the topic's next timestamp.

        Raises: Forbidden in a conversation where nobody would read the message. RateLimited in slow mode. NotFound,
        Conflict and BadUserInput for files that cannot be attached. NotFound and Conflict for a quoted
        message that does not exist or was deleted.
        """
        new = self.new
        check_attachable(batch, UserKey(batch.head["org"], new.author_id), new.attachments)
        _require_quotable(batch, new.quote)
        if not new.ignores_slow_mode:
            record_post_in_slow_mode(batch, new.author_id, new.also_in_topic)
        record_message(batch, new.author_id)
        timestamp = batch.take_timestamp()
        key = MessageKey(new.topic_id, timestamp)
        document = _new_document(key, new)
        if new.attachments:
            document["attachments"] = attach_files(batch, [message_place(key)], new.attachments)
        _request_preview(document, batch)
        batch.put(MESSAGES, document)
        batch.put(MESSAGE_TERMS, message_terms(document, new.community_id, thread_fields(batch)))
        batch.emit("MessagePosted", timestamp)
        if thread_fields(batch) is not None:
            count_reply(batch, +1)
            notify_followers(batch, key, new.author_id, new.mention_ids)
            add_followers(batch, (new.author_id, *new.mention_ids))
            relay_reply(batch, document)
        else:
            count_post_in_topic(batch, new.author_id)
        _notify_mentioned(batch, key, new.author_id, new.mention_ids)
        return message_record(document)

    def result_id(self, result: Message) -> str:
        """Returns the message's id."""
        return result.id


@dataclass(slots=True)
class MessageChange(Change[Message]):
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
        """Returns a copy of the message, to be changed and put back.

        Raises: NotFound; Conflict for a tombstone, and for a cross-post, which has no content of its own.
        """
        document = self.copy_message(batch)
        if document.get("deleted_at") is not None:
            raise Conflict("The message was deleted.")
        if "reply" in document:
            raise Conflict("The message shows a reply of a thread. Change the reply itself, or react to it.")
        return document

    def terms_key(self) -> DocumentKey:
        """Returns the key of the message's terms. Changes of the text need them."""
        return MESSAGE_TERMS, self.key.document_id

    def announce_new_text(self, batch: Batch) -> None:
        """Announces the topic's activity if the message is its last one, whose text is shown in lists of topics."""
        if thread_fields(batch) is None and self.key.timestamp >= batch.head["before"]["last"]:
            _announce_activity(batch, self.key.topic_id)

    def put_message(self, batch: Batch, document: MessageDocument, event: str) -> Message:
        """Puts the message back and emits the event. The relay brings a cross-post up to date."""
        batch.put(MESSAGES, document)
        relay_reply(batch, document)
        batch.emit(event, self.key.timestamp)
        return message_record(document)


@dataclass(slots=True)
class EditMessage(MessageChange):
    """Replaces the text of a message. A changed first link gets a new preview."""

    editor_id: str
    text: str
    mention_ids: Sequence[str]

    def rights(self) -> Sequence[Right]:
        """Returns the right to write to the topic."""
        return IsActive(self.editor_id), MayWrite(self.editor_id)

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the message and its terms."""
        return [(MESSAGES, self.key.document_id), self.terms_key()]

    def plan(self, batch: Batch) -> Message:
        """Puts the edited message, and notifies the users whom only the new text mentions.

        Raises: NotFound, Conflict for a tombstone, Forbidden, BadUserInput for neither text nor stamp.
        """
        document = self.copy_undeleted_message(batch)
        if document["author"] != self.editor_id:
            raise Forbidden("Only the author can edit a message.")
        if not (self.text or "stamp" in document or "attachments" in document):
            raise BadUserInput("text", "1 to 4000 characters, since the message has no stamp and no file")
        has_new_link = first_url(self.text) != first_url(document["text"])
        newly_mentioned = [user_id for user_id in self.mention_ids if user_id not in document.get("mentions", ())]
        _notify_mentioned(batch, self.key, self.editor_id, newly_mentioned)
        document["text"], document["edited_at"] = self.text, batch.at
        _set_mentions(document, self.mention_ids)
        if has_new_link:
            document.pop("preview", None)
            document.pop("preview_picture", None)
            document.pop("preview_due", None)
            _request_preview(document, batch)
        batch.put(MESSAGE_TERMS, message_terms(document, batch.head["community"], thread_fields(batch)))
        self.announce_new_text(batch)
        return self.put_message(batch, document, "MessageEdited")


@dataclass(slots=True)
class MessageRemoval(MessageChange):
    """Base of changes that replace a message by a tombstone."""

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the message and its terms."""
        return [(MESSAGES, self.key.document_id), self.terms_key()]

    def put_tombstone(self, batch: Batch, document: MessageDocument) -> Message:
        """Puts the tombstone, and removes everything that belongs to the message. Does nothing for a tombstone."""
        if document.get("deleted_at") is not None:
            return message_record(document)
        if document.get("reactions"):
            # The relay removes the received reactions in the author's stream.
            batch.add_outbox_row(user_stream(batch.head["org"], document["author"]), "Reaction", self.key.document_id)
        remove_pin(batch, self.key.timestamp)
        remove_files(batch, message_place(self.key), document.get("attachments", ()))
        count_reply(batch, -1)
        tombstone = _tombstone(document, batch)
        batch.put(MESSAGE_TERMS, message_terms(tombstone, batch.head["community"]))
        self.announce_new_text(batch)
        return self.put_message(batch, tombstone, "MessageDeleted")


@dataclass(slots=True)
class DeleteMessage(MessageRemoval):
    """Deletes a message for its author, or for a moderator of the author."""

    deleter: Moderator

    def rights(self) -> Sequence[Right]:
        """Returns the right to delete the message."""
        return (MayDeleteMessage((MESSAGES, self.key.document_id), self.deleter),)

    def plan(self, batch: Batch) -> Message:
        """Puts the tombstone, unless the message is deleted already. Raises: NotFound."""
        document = self.copy_message(batch)
        if document.get("deleted_at") is None and document["author"] != self.deleter.user_id:
            self._audit(batch, document["author"])
        return self.put_tombstone(batch, document)

    def _audit(self, batch: Batch, author_id: str) -> None:
        """Puts the entry of the audit log about the deletion of another person's message."""
        actor = self.deleter.actor_in(batch.head["org"])
        details = {"community": batch.head["community"], "message": self.key.id}
        put_entry(batch, actor, AuditAction.MESSAGE_DELETED, TargetKind.USER, author_id, **details)


@dataclass(slots=True)
class EraseMessage(MessageRemoval, SystemChange[Message]):
    """Deletes a message for an erasure of its author, or for a retention rule."""

    def plan(self, batch: Batch) -> Message:
        """Puts the tombstone, unless the message is deleted already. Raises: NotFound."""
        return self.put_tombstone(batch, self.copy_message(batch))


@dataclass(slots=True)
class SetPreview(MessageChange, SystemChange[Message]):
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
        put_preview(document, self.preview)
        return self.put_message(batch, document, "MessageEdited")


def count_post_in_topic(batch: Batch, author_id: str) -> None:
    """Counts a new message of a topic for trends, and announces the activity. Conversations have no trends."""
    if direct_fields(batch) is None:
        count_poster(batch, author_id)
    _announce_activity(batch, batch.stream.id)


def _announce_activity(batch: Batch, topic_id: str) -> None:
    """Adds the row that tells the community, or the people of a conversation, of a new state of the topic."""
    # A conversation has its own id as its community.
    stream = community_stream(batch.head["community"])
    if direct_fields(batch) is None:
        batch.add_outbox_row(stream, "TopicActivity", topic_id)
    else:
        batch.add_outbox_row(stream, "ConversationActivity", topic_id)


def message_place(key: MessageKey) -> str:
    """Returns the place of the files of a message."""
    return f"message:{key.id}"


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
    if new.quote is not None:
        quoted = new.quote.key
        document["quote"] = {"t": quoted.topic_id, "ts": quoted.timestamp, "c": new.quote.community_id}
    if new.also_in_topic:
        document["also_in_topic"] = True
    _set_mentions(document, new.mention_ids)
    return document


def _require_quotable(batch: Batch, quote: Quote | None) -> None:
    """Raises NotFound for a quoted message that does not exist, and Conflict for a deleted one."""
    if quote is None:
        return
    quoted: MessageDocument | None = batch.get(MESSAGES, quote.key.document_id)
    if quoted is None:
        raise NotFound("message", quote.key.id)
    if quoted.get("deleted_at") is not None:
        raise Conflict("The quoted message was deleted. Post your message without the quote.")


def _tombstone(document: MessageDocument, batch: Batch) -> MessageDocument:
    tombstone: MessageDocument = {
        "_id": document["_id"],
        "author": document["author"],
        "text": "",
        "deleted_at": batch.at,
    }
    if "source" in document:
        tombstone["source"] = document["source"]
    if "also_in_topic" in document:
        tombstone["also_in_topic"] = True
    if "thread" in document:
        tombstone["thread"] = document["thread"]
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
    """Marks a message with a link as waiting for its preview. If the preview's job is lost, a sweeper sees the mark."""
    if first_url(document["text"]) is not None:
        document["preview_due"] = batch.at
