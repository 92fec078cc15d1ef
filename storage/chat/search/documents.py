"""Stored documents of the search of messages and topics."""

from typing import TypedDict

from storage.ids import MessageDocumentId


class TopicTermsId(TypedDict):
    """The `_id` of the terms of a topic."""

    t: str
    """Topic id."""

    ts: int
    """When the topic was created, in microseconds since the Unix epoch. Results are in this order."""


class MessageTermsDocument(TypedDict):
    """The terms by which a message is found, in `message_terms`, written in the transaction of the message.

    The document of a deleted message has no terms. It makes a migration that adds the terms conflict with the deletion.
    """

    _id: MessageDocumentId
    """The `_id` of the message."""

    place: str
    """Id of the community or of the conversation. Its members find the message."""

    terms: list[str]
    """Terms of the text, and filters such as `from:<user id>`; empty for a tombstone."""


class TopicTermsDocument(TypedDict):
    """The terms by which a topic is found, in `topic_terms`, written in the transaction of the topic.

    Conversations and threads have none.
    """

    _id: TopicTermsId
    """Topic id and creation."""

    place: str
    """Id of the community. Its members find the topic."""

    terms: list[str]
    """Terms of the title."""
