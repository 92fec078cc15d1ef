"""Posts and fan-outs as read from the database. Timestamps are microseconds since the Unix epoch."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import NamedTuple
from urllib.parse import quote

from storage.feed.documents import FanOutDocument, PostDocument, PostParentDocument
from storage.files.attachments import Attachment, attachment_record
from storage.files.link_previews import LinkPreview, preview_record
from storage.ids import PostKey
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


def local_stream(organization_id: str) -> Stream:
    """Returns the stream of an organization's local feed."""
    return Stream("local", quote(organization_id, safe=""))


def hashtag_stream(organization_id: str, tag: str) -> Stream:
    """Returns the stream of the posts with a hashtag."""
    return Stream("hashtag", f"{quote(organization_id, safe='')}/{quote(tag, safe='')}")


def list_streams(organization_id: str, tags: Sequence[str], is_local: bool) -> list[Stream]:
    """Returns the streams of the lists that a post is in: of its hashtags, and of the local feed unless it replies."""
    local = [local_stream(organization_id)] if is_local else []
    return [*local, *(hashtag_stream(organization_id, tag) for tag in tags)]


class PostParentKind(Enum):
    """Whether a post replies to its parent, repeats it or quotes it."""

    REPLY = "reply"
    REPOST = "repost"
    QUOTE = "quote"


class PostParent(NamedTuple):
    """The post that another post replies to, reposts or quotes, and its author. It may have been deleted since."""

    kind: PostParentKind
    timestamp: int
    author_id: str
    root: int
    """Timestamp of the first post of the parent's conversation. It may have been deleted too."""


@dataclass(frozen=True, slots=True)
class PostVersion:
    """A text that a post had before an edit, and when it was written."""

    text: str
    written_at: datetime


@dataclass(frozen=True, slots=True)
class PostReaction:
    """An emoji of a post as one viewer sees it: reactions of users whom the viewer blocked are not counted."""

    post: PostKey
    emoji: str
    count: int
    reacted: bool
    """Whether the viewer reacted with the emoji."""


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
    attachments: Sequence[Attachment] = ()
    edited_at: datetime | None = None
    parent: PostParent | None = None
    reply_count: int = 0
    repost_count: int = 0
    quote_count: int = 0
    reaction_counts: Sequence[tuple[str, int]] = ()
    """Emojis and numbers of users. These four counts include users whom the viewer blocked."""

    @property
    def key(self) -> PostKey:
        """The post's organization and timestamp."""
        return PostKey(self.organization_id, self.timestamp)

    @property
    def id(self) -> str:
        """The id that clients see, unique across organizations."""
        return self.key.id

    def as_parent(self, kind: PostParentKind) -> PostParent:
        """Returns the post as the parent of another post."""
        return PostParent(kind, self.timestamp, self.author_id, self.root_key.timestamp)

    @property
    def is_reply(self) -> bool:
        """Whether the post is a reply to another post."""
        return self.parent is not None and self.parent.kind is PostParentKind.REPLY

    @property
    def is_repost(self) -> bool:
        """Whether the post only repeats another post."""
        return self.parent is not None and self.parent.kind is PostParentKind.REPOST

    @property
    def is_quote(self) -> bool:
        """Whether the post quotes another post."""
        return self.parent is not None and self.parent.kind is PostParentKind.QUOTE

    @property
    def root_key(self) -> PostKey:
        """The key of the first post of the conversation. A quote begins one, and a repost is in the original's."""
        if self.parent is None or self.is_quote:
            return self.key
        return PostKey(self.organization_id, self.parent.root)

    @property
    def parent_key(self) -> PostKey | None:
        """The key of the parent, or None."""
        return None if self.parent is None else PostKey(self.organization_id, self.parent.timestamp)


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
        link_preview=None if preview is None else preview_record(preview, document.get("preview_picture")),
        merged=document.get("merged", False),
        deleted_at=document.get("deleted_at"),
        attachments=[attachment_record(each) for each in document.get("attachments", ())],
        edited_at=document.get("edited_at"),
        parent=_parent_record(document.get("parent")),
        # A deletion may be counted before the reply. The number is right once both rows are relayed.
        reply_count=max(0, document.get("replies", 0)),
        repost_count=max(0, document.get("reposts", 0)),
        quote_count=max(0, document.get("quotes", 0)),
        reaction_counts=[(each["emoji"], each["count"]) for each in document.get("reactions", ())],
    )


def _parent_record(parent: PostParentDocument | None) -> PostParent | None:
    if parent is None:
        return None
    root = parent.get("root", parent["ts"])
    return PostParent(PostParentKind(parent["kind"]), parent["ts"], parent["author"], root)


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
