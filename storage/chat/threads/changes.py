"""Changes of threads: starting one, committed to the topic of the parent message, and following it."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from storage.chat.changes import MESSAGES
from storage.chat.conversations.rules import direct_fields
from storage.chat.documents import MessageDocument, TopicDocument
from storage.chat.rights import HasJoined, MayWrite
from storage.chat.threads.documents import ThreadFields
from storage.chat.threads.followers import MAX_FOLLOWERS, add_followers
from storage.chat.threads.rules import thread_fields, thread_id
from storage.errors import Conflict, NotFound
from storage.identity.rights import IsActive
from storage.ids import MessageKey
from storage.streams.changes import Batch, Change, DocumentKey, Right


@dataclass(slots=True)
class StartThread(Change[None]):
    """Creates the topic for the replies to a message, unless it exists."""

    usual_events: ClassVar[int] = 0

    parent: MessageKey
    starter_id: str

    def rights(self) -> Sequence[Right]:
        """Returns the right to write to the topic."""
        return IsActive(self.starter_id), MayWrite(self.starter_id)

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the message and the thread."""
        return [(MESSAGES, self.parent.document_id), ("topics", thread_id(self.parent))]

    def plan(self, batch: Batch) -> None:
        """Puts the topic. Raises: NotFound; Conflict for a deleted message."""
        message: MessageDocument | None = batch.get(MESSAGES, self.parent.document_id)
        if message is None:
            raise NotFound("message", self.parent.id)
        if batch.get("topics", thread_id(self.parent)) is not None:
            return
        if message.get("deleted_at") is not None:
            raise Conflict("The message was deleted. Nobody can reply to it.")
        batch.put("topics", self._topic(batch, message["author"]))

    def _topic(self, batch: Batch, author_id: str) -> TopicDocument:
        thread: ThreadFields = {
            "topic": self.parent.topic_id,
            "ts": self.parent.timestamp,
            "replies": 0,
            "followers": [author_id],
        }
        if direct_fields(batch) is not None:
            thread["direct"] = True
        return {
            "_id": thread_id(self.parent),
            "org": batch.head["org"],
            "community": batch.head["community"],
            "thread": thread,
            "title": "",
            "creator": self.starter_id,
            "created_at": batch.at,
            "last": int(batch.at.timestamp() * 1000) * 1000,
            "n": 0,
            "floor": 0,
            "epoch": secrets.token_hex(4),
        }


@dataclass(slots=True)
class FollowThread(Change[None]):
    """Makes a person follow a thread. Idempotent."""

    usual_events: ClassVar[int] = 0

    user_id: str

    def rights(self) -> Sequence[Right]:
        """Returns that the person has joined the community or the conversation."""
        return IsActive(self.user_id), HasJoined(self.user_id)

    def plan(self, batch: Batch) -> None:
        """Adds the person to the head. Raises: NotFound for another topic; Conflict for too many followers."""
        followers = _followers(batch)
        if self.user_id not in followers and len(followers) >= MAX_FOLLOWERS:
            raise Conflict(f"The thread has {MAX_FOLLOWERS} followers. Read it without following it.")
        add_followers(batch, [self.user_id])


@dataclass(slots=True)
class UnfollowThread(Change[None]):
    """Ends the following of a thread. Idempotent."""

    usual_events: ClassVar[int] = 0

    user_id: str

    def rights(self) -> Sequence[Right]:
        """Returns no right: everybody may end what they follow."""
        return ()

    def plan(self, batch: Batch) -> None:
        """Removes the person from the head. Raises: NotFound for another topic."""
        followers, thread = _followers(batch), thread_fields(batch)
        if self.user_id in followers:
            batch.change_head(
                thread={**(thread or {}), "followers": [each for each in followers if each != self.user_id]}
            )


def _followers(batch: Batch) -> Sequence[str]:
    """Returns the people who follow the thread. Raises: NotFound for a topic that is no thread."""
    thread = thread_fields(batch)
    if thread is None:
        raise NotFound("thread", batch.stream.id)
    return thread.get("followers", ())
