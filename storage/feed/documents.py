"""Stored documents of the feed area, one class for each collection. Instants are UTC; timestamps are microseconds."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NotRequired, TypedDict

from storage.ids import PostDocumentId


class PostDocument(TypedDict):
    """`posts`: posts and the tombstones of deleted posts. Never deleted."""

    _id: PostDocumentId
    author: str
    text: str
    """Empty in a tombstone."""
    merged: bool
    """True if the post is not pushed into feeds but merged when a feed is read."""
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
    """When the post began to wait for its preview; absent if it waits for no preview."""
    deleted_at: NotRequired[datetime]
    """When the post was deleted. A tombstone's other fields are `_id`, `author`, `text`, `merged` and `at`."""


class PostSourceId(TypedDict):
    """The `_id` of a source of posts."""

    o: str
    """Organization."""
    source: str
    """The origin of the post, such as "pub:<publication id>"."""


class PostSourceDocument(TypedDict):
    """`post_sources`: the post of a source, so that a source creates only one post. Never deleted."""

    _id: PostSourceId
    post: int
    """Timestamp of the post."""


class OrganizationUserId(TypedDict):
    """A user of an organization, as the `_id` of documents of which each user has at most one, such as the feed."""

    o: str
    """Organization id."""
    u: str
    """User id."""


class FeedItemId(OrganizationUserId):
    """The `_id` of a feed item; its order is the reader's feed."""

    ts: int
    """Timestamp of the post."""


class FeedItemDocument(TypedDict):
    """`feed_items`: one post in one reader's home feed. The newest 800 items of each reader are kept."""

    _id: FeedItemId
    author: str
    told: NotRequired[bool]
    """True once `PostArrived` was emitted in the reader's stream."""


class FeedDocument(TypedDict):
    """`feeds`: one document for each reader. Never deleted."""

    _id: OrganizationUserId
    seen_at: datetime
    """When the reader last read the feed, to the hour."""
    subscribed_at: NotRequired[datetime]
    """When the reader was last subscribed to the home stream, to the hour; absent until the first subscription."""
    rebuilding: NotRequired[bool]
    """True while the feed of a returned reader is rebuilt."""


class FanOutDocument(TypedDict):
    """`fan_outs`: one document for each post. Never deleted."""

    _id: PostDocumentId
    author: str
    task: Literal["push", "remove"]
    state: Literal["PENDING", "RUNNING", "COMPLETED"]
    """The state that clients see."""
    open: bool
    """Whether the fan-out has work left."""
    walked: bool
    """Whether all followers were processed. Retries may be left."""
    next: str
    """Id of the last follower that was processed; empty before the first."""
    total: int
    delivered: int
    failed: int
    retrying: int
    """Followers whose insert will be retried. This and the three counts above are numbers of followers."""
    fence: int
    """Grows with every claim. A worker's step with an older fence changes nothing."""
    at: datetime
    lease_until: NotRequired[datetime | None]
    """When the claim ends; None or absent while no worker holds a claim."""
    moved_at: NotRequired[datetime]
    """When the last step was stored."""
    told_at: NotRequired[datetime]
    """When progress was last emitted."""


class RetryId(PostDocumentId):
    """The `_id` of a retry."""

    u: str
    """Id of the reader."""


class FeedRetryDocument(TypedDict):
    """`feed_retries`: a failed insert into a feed. Deleted when a retry succeeds, or 30 days after the last try."""

    _id: RetryId
    tries: int
    due: NotRequired[datetime]
    """When to try again; absent after the last try."""
    failed_at: NotRequired[datetime]
    """When the last try failed."""


class MergedAuthorDocument(TypedDict):
    """`merged_authors`: authors whose posts are merged into feeds when they are read. Never deleted."""

    _id: OrganizationUserId
    epoch: str
    """Epoch of the author's stream. Only processes of an earlier version read this and `n`."""
    n: int
    """Number of the last event in the author's stream before the first merged post."""
    at: datetime
