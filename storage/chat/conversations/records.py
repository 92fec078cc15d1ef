"""Conversations as read from the database."""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from storage.chat.conversations.documents import DirectFields
from storage.chat.conversations.rules import people_of
from storage.chat.records import Topic


class ConversationState(Enum):
    """The state of a person who sees a conversation. The value is stored."""

    JOINED = "JOINED"
    REQUESTED = "REQUESTED"


@dataclass(frozen=True, slots=True)
class ConversationPerson:
    """A person of a conversation. `joined` is False for people who have not accepted or who have left a pair."""

    user_id: str
    joined: bool


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation with the topic of its messages, which has the same id."""

    topic: Topic
    direct: DirectFields

    @property
    def id(self) -> str:
        """The id of the conversation and of its topic."""
        return self.topic.id

    @property
    def name(self) -> str:
        """The name of a group; empty for a pair."""
        return self.topic.title

    @property
    def is_group(self) -> bool:
        """Whether people can be added."""
        return not self.direct["pair"]

    @property
    def created_at(self) -> datetime:
        """When the conversation was started."""
        return self.topic.created_at

    @property
    def people(self) -> list[ConversationPerson]:
        """Both people of a pair; the people of a group who have not left. People who have joined are listed first.

        All others follow in the order of their ids, so that nobody's position shows who has declined.
        """
        direct = self.direct
        others = [*direct["requested"], *direct["declined"], *(direct["left"] if direct["pair"] else ())]
        joined = [ConversationPerson(each, True) for each in direct["joined"]]
        return [*joined, *(ConversationPerson(each, False) for each in sorted(others))]

    def is_known_to(self, organization_id: str, user_id: str) -> bool:
        """Returns whether the person is or was in the conversation, or was asked."""
        return self.topic.organization_id == organization_id and user_id in people_of(self.direct)

    def state_of(self, user_id: str) -> ConversationState | None:
        """Returns the state of a person, or None for everybody who does not see the conversation."""
        if user_id in self.direct["joined"]:
            return ConversationState.JOINED
        return ConversationState.REQUESTED if user_id in self.direct["requested"] else None


@dataclass(frozen=True, slots=True)
class ChangedConversation:
    """The subject of an event in a person's stream: the conversation as it is now."""

    conversation: Conversation


def pair_id(organization_id: str, user_id: str, other_id: str) -> str:
    """Returns the id of the conversation of two people. It does not depend on which of them starts it."""
    key = json.dumps([organization_id, *sorted((user_id, other_id))])
    return hashlib.sha256(key.encode()).hexdigest()[:32]
