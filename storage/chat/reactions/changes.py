"""Changes of the reactions to a message, committed by the sequencer to the topic's stream."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.chat.changes import MESSAGES, MessageChange
from storage.chat.documents import MessageDocument, ReactionCountDocument
from storage.chat.reactions.documents import ReactionDocument, ReactionDocumentId
from storage.chat.records import Message, message_record
from storage.chat.rights import MayWithdraw, MayWrite
from storage.errors import Conflict, NotFound
from storage.identity.records import user_stream
from storage.identity.rights import IsActive
from storage.streams.changes import Batch, DocumentKey, Right, SystemChange

MAX_EMOJIS = 30
REACTIONS = "reactions"


@dataclass(slots=True)
class _ReactionChange(MessageChange):
    """A change of one user's reaction to a message with one emoji."""

    organization_id: str
    user_id: str
    emoji: str
    blocked: frozenset[str] = frozenset()
    """The users whom the user has blocked. Their messages do not exist for the user."""

    @property
    def reaction_id(self) -> ReactionDocumentId:
        """The reaction's `_id`."""
        return {"t": self.key.topic_id, "ts": self.key.timestamp, "e": self.emoji, "u": self.user_id}

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the message and the reaction."""
        return [(MESSAGES, self.key.document_id), (REACTIONS, self.reaction_id)]

    def copy_message(self, batch: Batch) -> MessageDocument:
        """Returns a copy of the message. Raises: NotFound, also for a message of a blocked user."""
        # Not `super()`, which fails here: `dataclass(slots=True)` creates a new class.
        document = MessageChange.copy_message(self, batch)
        if document["author"] in self.blocked:
            raise NotFound("message", self.key.id)
        return document

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
        batch.put(MESSAGES, document)
        batch.emit("ReactionsChanged", self.key.timestamp)
        return message_record(document)

    def remove_reaction(self, batch: Batch, document: MessageDocument) -> Message:
        """Removes the reaction if it exists, and counts it unless the message was deleted."""
        if batch.get(REACTIONS, self.reaction_id) is None:
            return message_record(document)
        batch.remove(REACTIONS, self.reaction_id)
        if document.get("deleted_at") is not None:
            return message_record(document)
        return self.change_count(batch, document, -1)


@dataclass(slots=True)
class AddReaction(_ReactionChange):
    """Adds a reaction. Idempotent."""

    def rights(self) -> Sequence[Right]:
        """Returns the right to write to the topic."""
        return IsActive(self.user_id, self.organization_id), MayWrite(self.user_id)

    def plan(self, batch: Batch) -> Message:
        """Puts the reaction, unless it exists. Raises: NotFound, Conflict (deleted, 31st emoji)."""
        document = self.copy_undeleted_message(batch)
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
    """Removes a reaction of a user who takes it back. Idempotent."""

    def rights(self) -> Sequence[Right]:
        """Returns the right to take the reaction back."""
        return IsActive(self.user_id, self.organization_id), MayWithdraw(self.user_id)

    def plan(self, batch: Batch) -> Message:
        """Removes the reaction if it exists. Raises: NotFound."""
        document = self.copy_message(batch)
        return self.remove_reaction(batch, document)


@dataclass(slots=True)
class EraseReaction(_ReactionChange, SystemChange[Message]):
    """Removes a reaction of an erased person, wherever it is: the erasure needs no right to write. Idempotent."""

    def plan(self, batch: Batch) -> Message:
        """Removes the reaction if it exists. Raises: NotFound."""
        return self.remove_reaction(batch, self.copy_message(batch))
