"""Stored documents of reactions.

Instants are aware UTC datetimes. Timestamps are int64 microseconds since the Unix epoch.
"""

from datetime import datetime
from typing import TypedDict


class ReactionDocumentId(TypedDict):
    """The `_id` of a reaction: one per message, emoji and user."""

    t: str
    """Topic id."""

    ts: int
    """Timestamp of the message."""

    e: str
    """Emoji: one of Unicode, or the name of a stamp between colons."""

    u: str
    """Id of the user who reacted."""


class ReactionDocument(TypedDict):
    """A reaction, in `reactions`. Exists until it is removed or its message is deleted."""

    _id: ReactionDocumentId
    at: datetime
    """When the user reacted, by the database's clock."""


class ReceivedReactionDocumentId(TypedDict):
    """The `_id` of a received reaction. These ids are in the order of the timeline of the message's author."""

    o: str
    """Organization id."""

    u: str
    """Id of the message's author, who received the reaction."""

    ts: int
    """Timestamp of the reception, unique for the author."""


ReceivedReactionDocument = TypedDict(
    "ReceivedReactionDocument",
    {
        "_id": ReceivedReactionDocumentId,
        # Name of the author's stream.
        "owner": str,
        # Topic id of the message.
        "topic": str,
        # Timestamp of the message.
        "ts": int,
        # One emoji of Unicode, or the name of a stamp between colons.
        "emoji": str,
        # Id of the user who reacted. `from` is reserved in Python, so this type cannot be declared as a class.
        "from": str,
    },
)
"""A reaction on the timeline of the message's author, in `received_reactions`. Exists as long as the reaction."""
