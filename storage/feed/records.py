"""Posts and fan-outs as read from the database. Timestamps are microseconds since the Unix epoch."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from urllib.parse import quote

from storage.feed.documents import FanOutDocument, PostDocument
from storage.ids import PostKey
from storage.link_previews import LinkPreview
from storage.streams.log import Stream
from storage.timeline import Timestamp


def author_stream(organization_id: str, author_id: str) -> Stream:
    """Returns the stream of an author's posts, to which all changes of these posts are committed."""
    return Stream("author", f"{quote(organization_id, safe='')}/{author_id}")


def home_stream(organization_id: str, reader_id: str) -> Stream:
    """Returns the stream of a reader's home feed: posts that arrive in it and leave it."""
    return Stream("home", f"{quote(organization_id, safe='')}/{reader_id}")


def merged_stream(organization_id: str) -> Stream:
    """Returns the stream of all posts of an organization that are merged on read."""
    return Stream("merged", quote(organization_id, safe=""))


@dataclass(frozen=True, slots=True)
class Post:
    """A post, or the tombstone of a deleted post, which has no content.

    `media` are remote addresses. `merged` says that the post is not pushed, but merged when a feed is read.
    """

    organization_id: str
    timestamp: Timestamp
    author_id: str
    text: str
    media: Sequence[str]
    mention_ids: Sequence[str]
    hashtags: Sequence[str]
    link_preview: LinkPreview | None
    merged: bool
    deleted_at: datetime | None

    @property
    def key(self) -> PostKey:
        """The post's organization and timestamp."""
        return PostKey(self.organization_id, self.timestamp)

    @property
    def id(self) -> str:
        """The id that clients see, unique across organizations."""
        return self.key.id


@dataclass(frozen=True, slots=True)
class RemovedPost:
    """A post that left a feed."""

    post_id: str
    author_id: str
    merged: bool


class FanOutState(Enum):
    """Progress of a fan-out: not begun, in progress, or finished."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"


@dataclass(frozen=True, slots=True)
class FanOut:
    """Progress of pushing one post into the followers' home feeds. The counts are numbers of followers."""

    key: PostKey
    author_id: str
    state: FanOutState
    total: int
    delivered: int
    failed: int

    @property
    def id(self) -> str:
        """The post's id: each post has one fan-out."""
        return self.key.id

    @property
    def post_id(self) -> str:
        """The id of the post that is pushed."""
        return self.key.id


def post_record(document: PostDocument) -> Post:
    """Returns the record of a stored post."""
    preview = document.get("preview")
    return Post(
        organization_id=document["_id"]["o"],
        timestamp=Timestamp(document["_id"]["ts"]),
        author_id=document["author"],
        text=document["text"],
        media=document.get("media", ()),
        mention_ids=document.get("mentions", ()),
        hashtags=document.get("tags", ()),
        link_preview=None if preview is None else LinkPreview(**preview),
        merged=document.get("merged", False),
        deleted_at=document.get("deleted_at"),
    )


def fan_out_record(document: FanOutDocument) -> FanOut:
    """Returns the record of a stored fan-out."""
    return FanOut(
        key=PostKey(document["_id"]["o"], document["_id"]["ts"]),
        author_id=document["author"],
        state=FanOutState(document["state"]),
        total=document["total"],
        delivered=document["delivered"],
        failed=document["failed"],
    )
