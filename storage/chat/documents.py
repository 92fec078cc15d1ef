"""Stored documents of the chat area.

Instants are aware UTC datetimes. Timestamps are int64 microseconds since the Unix epoch.
"""

from datetime import datetime
from typing import NotRequired, TypedDict

from bson import ObjectId

from storage.ids import MessageDocumentId
from storage.link_previews import LinkPreviewDocument
from storage.streams.documents import PreviousHead

MESSAGES_BY_TIME = "_id_"
"""The index of messages by topic and timestamp. Reads with conditions on authors name it, since MongoDB may otherwise
choose the index by author and read the messages of all topics."""


class CommunityDocument(TypedDict):
    """A community, in `communities`. Never deleted."""

    _id: str
    """Community id."""

    org: str
    """Organization id."""

    name: str
    """Name as written."""

    sort: str
    """Case-folded name, by which communities are listed."""

    description: str
    """Description; may be empty."""

    visibility: NotRequired[str]
    """Value of `CommunityVisibility`; absent for PUBLIC."""

    archived_at: NotRequired[datetime]
    """When the community was archived, by the database's clock; absent if it is not."""

    requests: NotRequired[int]
    """Number of requests to join that wait for a decision; absent until the first one."""

    members: int
    """Number of members, changed in the commit that adds or removes a membership."""

    departures: NotRequired[int]
    """Number of times that a member has left, or that the visibility was changed; absent before the first time."""

    at: datetime
    """When the community was created, by the database's clock."""


class MembershipDocument(TypedDict):
    """A member of a community, in `memberships`. Exists as long as the user is a member."""

    _id: ObjectId
    """Generated."""

    org: str
    """Organization id."""

    community: str
    """Community id."""

    user: str
    """User id."""

    handle: str
    """The user's handle, which never changes; members are listed by it."""

    search: list[str]
    """Copy of the user's `search`, updated when the user's name changes."""

    role: NotRequired[str]
    """Value of `CommunityRole`; absent for MEMBER."""

    at: datetime
    """When the user joined, by the database's clock."""


class RestrictionDocumentId(TypedDict):
    """The `_id` of a restriction: one for each community and person."""

    c: str
    """Community id."""

    u: str
    """User id."""


class BanDocument(TypedDict):
    """A ban inside a restriction."""

    by: str
    """Id of the moderator who banned the person."""

    reason: str
    """Reason as written by the moderator."""

    at: datetime
    """When the person was banned, by the database's clock."""

    until: NotRequired[datetime]
    """When the ban ends; absent if it does not end by itself."""


class RestrictionDocument(TypedDict):
    """Decisions of moderators about a person, in `community_restrictions`. Deleted when all of them have ended."""

    _id: RestrictionDocumentId
    ban: NotRequired[BanDocument]
    """The ban; absent if the person is not banned."""

    muted_until: NotRequired[datetime]
    """When the person may post again; absent if the person was not muted."""

    removed_until: NotRequired[datetime]
    """Until when no write of the person is committed, although a request may have been admitted before the person was
    removed; absent if the person was not removed."""

    archived: NotRequired[bool]
    """True in the document of the community itself, with an empty user id, while the community is archived."""

    ends_at: NotRequired[datetime]
    """The latest end of the above, when the document expires; absent if it does not expire by itself."""


class SlowModePostId(TypedDict):
    """The `_id` of a person's last message in a topic with slow mode."""

    t: str
    """Topic id."""

    u: str
    """User id."""


class SlowModePostDocument(TypedDict):
    """When a person last posted in a topic with slow mode, in `slow_mode_posts`."""

    _id: SlowModePostId
    at: datetime
    """When the person posted, by the database's clock."""

    ends_at: datetime
    """When the person may post again. The document expires then."""


class JoinRequestDocument(TypedDict):
    """A request to join a community, in `join_requests`. Deleted when it is decided or the person is banned."""

    _id: RestrictionDocumentId
    message: str
    """Text for the moderators; may be empty."""

    at: datetime
    """When the person asked, by the database's clock."""


class PosterDocument(TypedDict):
    """A person who posted lately, in a topic."""

    u: str
    """User id."""

    at: int
    """When the person posted, in Unix seconds of the database's clock; up to a minute before the person's last post."""


class PinDocument(TypedDict):
    """A pinned message, in a topic."""

    ts: int
    """Timestamp of the message."""

    by: str
    """Id of the moderator who pinned it."""

    at: datetime
    """When it was pinned, by the database's clock."""


class TopicDocument(TypedDict):
    """A topic and the head of its stream, in `topics`. Never deleted."""

    _id: str
    """Topic id."""

    org: str
    """Organization id."""

    community: str
    """Community id."""

    title: str
    """Title as written."""

    creator: str
    """Id of the user who created the topic."""

    created_at: datetime
    """When the topic was created, by the database's clock."""

    last: int
    """Timestamp of the last message, or of the topic's creation if there is no message."""

    heat: NotRequired[float]
    """Natural logarithm of the decayed number of posts, plus `now / HEAT_TAU_S`; absent until the first post."""

    posters: NotRequired[list[PosterDocument]]
    """The last 50 people who posted, each once, the latest at the end; absent until the first post."""

    trend: NotRequired[float]
    """Natural logarithm of the decayed number of `posters`, plus `now / HEAT_TAU_S`; absent until the first post."""

    pins: NotRequired[list[PinDocument]]
    """Pinned messages, the latest pin first, at most 50; absent until the first one."""

    slow_s: NotRequired[int]
    """Seconds between messages of one person; 0 or absent without slow mode."""

    n: int
    """Number of the last event of the topic's stream; 0 before the first one."""

    floor: int
    """Number of the newest event that was pruned; 0 if none was."""

    epoch: str
    """Incarnation of the stream. Cursors of another epoch cannot be resumed."""

    fences: NotRequired[int]
    """How many times moderators have waited for the commits in progress; absent before the first time."""

    committed_at: NotRequired[datetime]
    """When the last batch was allocated, by the database's clock; absent until the first batch."""

    before: NotRequired[PreviousHead]
    """Values of the head before the last batch, restored if it takes no timestamp; absent until the first batch."""


class ReactionCountDocument(TypedDict):
    """An emoji of a message and the number of users who reacted with it."""

    emoji: str
    """One grapheme."""

    count: int
    """Number of users, blocked ones included; at least 1."""


class MessageDocument(TypedDict):
    """A message or its tombstone, in `messages`. Never deleted. Empty values are not stored."""

    _id: MessageDocumentId
    author: str
    """User id."""

    text: str
    """Text as written; empty for a stamp alone, and for a tombstone."""

    stamp: NotRequired[str]
    """Id of a stamp of the catalogue."""

    mentions: NotRequired[list[str]]
    """Ids of the users that the text mentions, in the order of mention."""

    reactions: NotRequired[list[ReactionCountDocument]]
    """Counts in the order of first use, changed in the transaction of the reaction; at most 30."""

    source: NotRequired[str]
    """Unique name of the message's origin, such as a publication. Each origin has at most one message."""

    preview: NotRequired[LinkPreviewDocument]
    """Preview of the text's first link, stored by a job after posting or editing."""

    preview_due: NotRequired[datetime]
    """When the message began to wait for its preview; absent if it waits for no preview. Sweepers search for it."""

    edited_at: NotRequired[datetime]
    """When the text was last edited, by the database's clock."""

    deleted_at: NotRequired[datetime]
    """When the message was deleted, by the database's clock. Makes the document a tombstone."""


class ReactionDocumentId(TypedDict):
    """The `_id` of a reaction: one per message, emoji and user."""

    t: str
    """Topic id."""

    ts: int
    """Timestamp of the message."""

    e: str
    """Emoji: one grapheme."""

    u: str
    """Id of the user who reacted."""


class ReactionDocument(TypedDict):
    """A reaction, in `reactions`. Exists until it is removed or its message is deleted."""

    _id: ReactionDocumentId
    at: datetime
    """When the user reacted, by the database's clock."""


class ReceivedReactionDocumentId(TypedDict):
    """The `_id` of a received reaction. Its order is the author's timeline."""

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
        # One grapheme.
        "emoji": str,
        # Id of the user who reacted. `from` is reserved in Python, so this type cannot be declared as a class.
        "from": str,
    },
)
"""A reaction on the timeline of the message's author, in `received_reactions`. Exists as long as the reaction."""


class ReadMarkDocumentId(TypedDict):
    """The `_id` of a read mark."""

    t: str
    """Topic id."""

    u: str
    """User id."""


class ReadMarkDocument(TypedDict):
    """A user's read mark in a topic, in `read_marks`. Created by the first `markRead`, never deleted."""

    _id: ReadMarkDocumentId
    ts: int
    """Timestamp of the newest message that the user has read. Never decreases."""


class TopicActivityDocument(TypedDict):
    """A topic's last `TopicActivity` event, in `activity`. Never deleted; limits the events to one per second."""

    _id: str
    """Topic id."""

    at: datetime
    """When the event was emitted, by the database's clock."""
