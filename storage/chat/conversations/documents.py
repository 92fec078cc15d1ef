"""Stored documents of conversations. Instants are aware UTC datetimes by the database's clock."""

from datetime import datetime
from typing import TypedDict


class DirectFields(TypedDict):
    """The field `direct` of a topic that is a conversation. Each person's id is in exactly one of the four lists."""

    pair: bool
    """Whether the conversation is between two people. Nobody is added to it, and its id results from their two ids."""

    joined: list[str]
    """People who have joined: they read and write."""

    requested: list[str]
    """People who were asked, and have neither accepted nor declined. They read, and cannot write."""

    declined: list[str]
    """People who declined. To everybody else they look like people who are asked."""

    left: list[str]
    """People who joined and left."""

    written: bool
    """Whether a message was posted. Before the first message, only the creator sees the conversation in a list."""

    asked: bool
    """Whether somebody has posted a message while alone. A further message is refused until another person joins."""


class ContactCountId(TypedDict):
    """A person, as the `_id` of a `ContactCountDocument`."""

    o: str
    """Organization id."""

    u: str
    """User id."""


class ContactCountDocument(TypedDict):
    """How many people a person has brought into conversations lately, in `contact_counts`."""

    _id: ContactCountId
    n: int
    """Number of people who were brought in the 24 hours before `ends_at`."""

    ends_at: datetime
    """24 hours after the first of these people was brought. The document expires then."""
