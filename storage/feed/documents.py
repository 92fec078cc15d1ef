"""The stored documents of the feed area, one class a collection. Instants are UTC; timestamps are microseconds."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NotRequired, TypedDict


class PostId(TypedDict):
    """The `_id` of a post and of its fan-out; its order is the organization's timeline."""

    o: str
    """Organization."""
    ts: int
    """Timestamp, unique in the organization."""


class PostDocument(TypedDict):
    """`posts`: posts and the tombstones of deleted ones. Kept without end."""

    _id: PostId
    author: str
    text: str
    """Empty in a tombstone."""
    merged: bool
    """True when the post was never pushed: readers merge its author on read."""
    at: datetime
    media: NotRequired[list[str]]
    """Remote addresses, in order."""
    mentions: NotRequired[list[str]]
    """Ids of the mentioned users."""
    tags: NotRequired[list[str]]
    """Hashtags, normalized."""
    preview: NotRequired[Mapping[str, Any]]
    """The link preview, as storage/link_previews.py stores it."""
    preview_due: NotRequired[datetime]
    """Since when the post waits for its preview; absent once it was fetched."""
    deleted_at: NotRequired[datetime]
    """Present in a tombstone, which has only `_id`, `author`, `text`, `merged` and `at` beside it."""


class SourceId(TypedDict):
    """The `_id` of a source of posts."""

    o: str
    """Organization."""
    source: str
    """The origin of the post, such as "pub:<publication id>"."""


class PostSourceDocument(TypedDict):
    """`post_sources`: which post a source made, so that it makes no second one. Kept without end."""

    _id: SourceId
    post: int
    """Timestamp of the post."""


class OwnerId(TypedDict):
    """The `_id` of what one user has one of: a feed, a merged author."""

    o: str
    """Organization."""
    u: str
    """User."""


class FeedItemId(OwnerId):
    """The `_id` of a feed item; its order is the reader's feed."""

    ts: int
    """Timestamp of the post."""


class FeedItemDocument(TypedDict):
    """`feed_items`: one post in one reader's home feed. The newest 800 of each reader are kept."""

    _id: FeedItemId
    author: str
    told: NotRequired[bool]
    """True once `PostArrived` was emitted in the reader's stream."""


class FeedDocument(TypedDict):
    """`feeds`: one document for each reader. Kept without end."""

    _id: OwnerId
    seen_at: datetime
    """When the reader last looked at the feed, to the hour."""
    rebuilding: NotRequired[bool]
    """True while the feed of a returned reader is rebuilt."""


class FanOutDocument(TypedDict):
    """`fan_outs`: one document for each post. Kept without end."""

    _id: PostId
    author: str
    task: Literal["push", "remove"]
    state: Literal["PENDING", "RUNNING", "COMPLETED"]
    """The state that clients see."""
    open: bool
    """Whether work is left."""
    walked: bool
    """Whether every follower was reached; retries may be left."""
    next: str
    """Id of the last follower that was processed."""
    total: int
    delivered: int
    failed: int
    retrying: int
    """Numbers of followers."""
    fence: int
    """Grows with every claim; a step with an older one changes nothing."""
    at: datetime
    lease_until: NotRequired[datetime | None]
    """Until when the claim is held."""
    moved_at: NotRequired[datetime]
    """When the last step was stored."""
    told_at: NotRequired[datetime]
    """When progress was last emitted."""


class RetryId(PostId):
    """The `_id` of a retry."""

    u: str
    """Reader."""


class FeedRetryDocument(TypedDict):
    """`feed_retries`: an insert that failed. Deleted when it succeeds; kept as failed after five tries."""

    _id: RetryId
    tries: int
    due: NotRequired[datetime]
    """When it is tried next; absent once it was given up."""
    failed_at: NotRequired[datetime]
    """When it was given up."""


class MergedAuthorDocument(TypedDict):
    """`merged_authors`: authors whose posts readers merge on read. Kept without end."""

    _id: OwnerId
    epoch: str
    n: int
    """Position of the author's stream before the first merged post."""
    at: datetime


class FollowId(TypedDict):
    """The `_id` of a follow and of its change."""

    o: str
    """Organization."""
    f: str
    """Follower."""
    e: str
    """Followee."""
