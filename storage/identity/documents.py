"""Stored documents of users and of the relations between them. Instants are aware UTC datetimes."""

from datetime import datetime
from typing import NotRequired, TypedDict


class UserDocumentId(TypedDict):
    """The `_id` of a user."""

    org: str
    """Organization id."""

    id: str
    """The `sub` of the user's tokens; unique within the organization."""


class UserDocument(TypedDict):
    """A user, in `users`. Created by the first authenticated request, never deleted."""

    _id: UserDocumentId
    handle: str
    """Unique within the organization. Never changes, since texts mention it."""

    name: str
    """Display name from the newest token that had one."""

    search: list[str]
    """Case-folded strings whose prefixes find the user: handle, name, and the words of the name; at most 8."""

    roles: list[str]
    """Values of `Role` from the newest token."""

    role_seen: NotRequired[dict[str, datetime]]
    """When a token last had each role, by value of `Role` and the database's clock; up to a day before the last token.
    Absent in documents of earlier versions."""

    email: NotRequired[str]
    """Mail address from the newest token that had one; absent before that token."""

    followers: int
    """Number of users that follow this user."""

    following: int
    """Number of users that this user follows."""

    at: datetime
    """When the user was created, by the clock of the host."""


class BlockDocument(TypedDict):
    """A block, in `blocks`. Deleted when the block ends. Its `_id` is generated and never used."""

    org: str
    """Organization id."""

    user: str
    """Id of the user who blocked."""

    blocked: str
    """Id of the user who is blocked."""

    at: datetime
    """When the user blocked the other user, by the clock of the host."""


class FollowDocumentId(TypedDict):
    """The `_id` of a follow and of its change."""

    o: str
    """Organization id."""

    f: str
    """Id of the follower."""

    e: str
    """Id of the followee."""


class FollowDocument(TypedDict):
    """A follow, in `follows`. Deleted when the follow ends."""

    _id: FollowDocumentId
    org: str
    """Organization id. This and the two user ids are copied from `_id` for indexes."""

    follower: str
    """Id of the user who follows."""

    followee: str
    """Id of the user who is followed."""

    at: datetime
    """When the follow began, by the database's clock."""


class FollowChangeDocument(TypedDict):
    """A change of a follow, in `follow_changes`. Deleted when the change is applied to the follower's home feed."""

    _id: FollowDocumentId
    at: datetime
    """When the follow last changed, by the database's clock."""
