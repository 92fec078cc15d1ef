"""Stored documents of the chat area.

Instants are aware UTC datetimes. Timestamps are int64 microseconds since the Unix epoch.
"""

from datetime import datetime
from typing import NotRequired, TypedDict

from bson import ObjectId

from storage.chat.conversations.documents import DirectFields
from storage.chat.threads.documents import ShownReplyDocument, ThreadFields, ThreadSummaryDocument
from storage.files.documents import AttachmentDocument
from storage.files.link_previews import LinkPreviewDocument, PreviewPictureDocument
from storage.ids import MessageDocumentId
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

    picture: NotRequired[str]
    """Id of the file of the picture; absent without one."""

    banner: NotRequired[str]
    """Id of the file of the banner; absent without one."""

    visibility: NotRequired[str]
    """Value of `CommunityVisibility`; absent for PUBLIC."""

    archived_at: NotRequired[datetime]
    """When the community was archived, by the database's clock; absent if it is not."""

    requests: NotRequired[int]
    """Number of requests to join that wait for a decision; absent until the first one."""

    members: int
    """Number of members, changed in the commit that adds or removes a membership."""

    owner_erased: NotRequired[bool]
    """True since an erasure removed the last active owner while members remained; absent otherwise. It stays when the
    community has an owner again: lists of communities without an owner read the owners."""

    departures: NotRequired[int]
    """Number of times that a member has left, or that the visibility was changed; absent before the first time."""

    at: datetime
    """When the community was created, by the database's clock."""


class MembershipDocument(TypedDict):
    """A member of a community, or a person of a conversation who has joined or is asked, in `memberships`.

    Deleted when the person leaves, declines or is removed.
    """

    _id: ObjectId
    """Generated."""

    org: str
    """Organization id."""

    community: str
    """Id of the community or of the conversation."""

    user: str
    """User id."""

    handle: str
    """Copy of the user's handle, updated when the user changes it; members are listed by it."""

    search: list[str]
    """Copy of the user's `search`, updated when the name or the handle changes."""

    role: NotRequired[str]
    """Value of `CommunityRole`; absent for MEMBER."""

    conversation: NotRequired[str]
    """Value of `ConversationState` in a conversation; absent in a community."""

    at: datetime
    """When the user joined or was asked, by the database's clock."""


class CommunityUserId(TypedDict):
    """The `_id` of a restriction or a request to join: a community and a person."""

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

    _id: CommunityUserId
    ban: NotRequired[BanDocument]
    """The ban; absent if the person is not banned."""

    muted_until: NotRequired[datetime]
    """When the person may post again; absent if the person was not muted."""

    removed_until: NotRequired[datetime]
    """Until when no write of the person is committed. Stops requests that were authorized just before the removal.
    Absent if the person was not removed."""

    archived: NotRequired[bool]
    """True in the document of the community itself, with an empty user id, while the community is archived."""

    ends_at: NotRequired[datetime]
    """The latest end of the ban, the mute and the removal. The document expires then; absent if it never does."""


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
    """A request to join a community, in `join_requests`.

    Deleted when it is decided or withdrawn, and when the person becomes a member in another way or is banned.
    """

    _id: CommunityUserId
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
    """Community id; for a conversation its own id. A thread has the value of its parent's topic."""

    direct: NotRequired[DirectFields]
    """People of a conversation; absent for a topic of a community."""

    thread: NotRequired[ThreadFields]
    """Parent message and number of replies; absent for a topic that is no thread."""

    departures: NotRequired[int]
    """Number of times that a person has left the conversation; absent before the first time."""

    title: str
    """Title as written; may be empty for a conversation, and is empty for a thread."""

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

    archived_at: NotRequired[datetime | None]
    """When the topic was archived, by the database's clock; None or absent if it is not."""

    slow_s: NotRequired[int]
    """Seconds between messages of one person; 0 or absent without slow mode."""

    n: int
    """Number of the last event of the topic's stream; 0 before the first one."""

    floor: int
    """Number of the newest event that was pruned; 0 if none was."""

    epoch: str
    """Incarnation of the stream. Cursors of another epoch cannot be resumed."""

    fences: NotRequired[int]
    """Counter that `wait_for_commits` increments, to wait for commits in progress; absent until the first time."""

    committed_at: NotRequired[datetime]
    """When the last batch got its event numbers, by the database's clock; absent until the first batch."""

    before: NotRequired[PreviousHead]
    """The head's values before the last batch, restored if that batch took no timestamp; absent until the first."""


class ReactionCountDocument(TypedDict):
    """An emoji of a message and the number of users who reacted with it."""

    emoji: str
    """One emoji of Unicode, or the name of a stamp between colons."""

    count: int
    """Number of users, blocked ones included; at least 1."""


class QuoteDocument(TypedDict):
    """A reference to the message that another message quotes."""

    t: str
    """Topic id."""

    ts: int
    """Timestamp of the quoted message."""

    c: str
    """Id of the community or conversation of the topic, whose people may read the quoted message."""


class MessageDocument(TypedDict):
    """A message or its tombstone, in `messages`. Never deleted. Empty values are not stored."""

    _id: MessageDocumentId
    author: str
    """User id."""

    text: str
    """Text as written; empty for a stamp alone, and for a tombstone."""

    stamp: NotRequired[str]
    """Id of a stamp of the program, or of one of the organization."""

    mentions: NotRequired[list[str]]
    """Ids of the users that the text mentions, in the order of mention."""

    reactions: NotRequired[list[ReactionCountDocument]]
    """Counts in the order of first use, changed in the transaction of the reaction; at most 30."""

    attachments: NotRequired[list[AttachmentDocument]]
    """Attached files in their order, at most 10."""

    thread: NotRequired[ThreadSummaryDocument]
    """The message's thread, written by an outbox relay; absent without a reply. Tombstones keep it."""

    quote: NotRequired[QuoteDocument]
    """The message that this message quotes; absent if it quotes none, and in tombstones."""

    reply: NotRequired[ShownReplyDocument]
    """The reply that a cross-post shows, whose content it has; absent for all other messages, and in tombstones."""

    also_in_topic: NotRequired[bool]
    """True for a reply that was also sent to the topic of its thread; absent otherwise. Tombstones keep it."""

    source: NotRequired[str]
    """Unique name of the message's origin, such as a publication. Each origin has at most one message."""

    preview: NotRequired[LinkPreviewDocument]
    """Preview of the text's first link, stored by a job after posting or editing."""

    preview_picture: NotRequired[PreviewPictureDocument]
    """Stored copy of the preview's image; absent without one."""

    preview_due: NotRequired[datetime]
    """When the message began to wait for its preview; absent if it waits for no preview. Sweepers search for it."""

    edited_at: NotRequired[datetime]
    """When the text was last edited, by the database's clock."""

    deleted_at: NotRequired[datetime]
    """When the message was deleted, by the database's clock. Makes the document a tombstone."""


class ReadMarkDocumentId(TypedDict):
    """The `_id` of a read mark."""

    t: str
    """Topic id."""

    u: str
    """User id."""


class ReadMarkDocument(TypedDict):
    """A user's read mark in a topic, in `read_marks`. Created by the first `markRead`, deleted by an erasure only."""

    _id: ReadMarkDocumentId
    ts: int
    """Timestamp of the newest message that the user has read. Never decreases."""


class TopicActivityDocument(TypedDict):
    """When the activity of a topic or conversation was last announced, in `activity`. Never deleted.

    It limits the announcements to one per second.
    """

    _id: str
    """Id of the topic or conversation."""

    at: datetime
    """When the activity was announced, by the database's clock."""

    last: NotRequired[int]
    """Timestamp of the conversation's last message at that time; absent for a topic."""
