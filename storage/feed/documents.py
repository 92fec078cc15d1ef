"""Stored documents of the feed area, one class for each collection. Instants are UTC; timestamps are microseconds."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NotRequired, TypedDict

from storage.chat.documents import ReactionCountDocument
from storage.files.documents import AttachmentDocument
from storage.files.link_previews import PreviewPictureDocument
from storage.ids import PostDocumentId


class PostParentDocument(TypedDict):
    """The post that a post replies to, reposts or quotes. It may have been deleted since."""

    kind: Literal["reply", "repost", "quote"]
    ts: int
    """Timestamp of the parent."""
    author: str
    """Author of the parent."""
    root: NotRequired[int]
    """Timestamp of the first post of the parent's conversation. A migration adds it to replies of earlier releases."""


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
    attachments: NotRequired[list[AttachmentDocument]]
    """Attached files in their order, at most 10."""
    preview: NotRequired[Mapping[str, Any]]
    """The link preview, as storage/files/link_previews.py stores it."""
    preview_picture: NotRequired[PreviewPictureDocument]
    """Stored copy of the preview's image; absent without one."""
    preview_due: NotRequired[datetime]
    """When the post began to wait for its preview; absent if it waits for no preview."""
    parent: NotRequired[PostParentDocument]
    """The post that this post replies to, reposts or quotes."""
    replies: NotRequired[int]
    """Number of undeleted replies; absent before the first. May be too low by those whose outbox rows wait."""
    reposts: NotRequired[int]
    """Number of reposts, as `replies`."""
    quotes: NotRequired[int]
    """Number of quotes, as `replies`."""
    reactions: NotRequired[list[ReactionCountDocument]]
    """Emojis in the order of first use; absent without reactions."""
    edited_at: NotRequired[datetime]
    """When the text was last replaced; absent before the first edit."""
    deleted_at: NotRequired[datetime]
    """When the post was deleted. A tombstone's other fields are `_id`, `author`, `text`, `merged` and `at`."""


class PostVersionDocument(TypedDict):
    """A text that a post had before an edit."""

    text: str
    at: datetime
    """When the text was written."""


class PostHistoryDocument(TypedDict):
    """`post_histories`: the earlier texts of an edited post. Deleted with the post."""

    _id: PostDocumentId
    """The `_id` of the post."""
    author: str
    versions: list[PostVersionDocument]
    """Earlier texts, oldest first; at most 50."""


class PostTermsDocument(TypedDict):
    """`post_terms`: the terms by which a post is found, written in the transaction of the post."""

    _id: PostDocumentId
    """The `_id` of the post."""
    terms: list[str]
    """Terms of the text, and filters such as `from:<user id>`; empty for a tombstone."""


class PostSourceId(TypedDict):
    """The `_id` of a source of posts."""

    o: str
    """Organization."""
    source: str
    """The origin of the post: "pub:<publication id>", or "repost:<user id>:<timestamp of the post>"."""


class PostSourceDocument(TypedDict):
    """`post_sources`: the post of a source, so that a source creates only one post.

    Deleted with a repost; otherwise never.
    """

    _id: PostSourceId
    post: int
    """Timestamp of the post."""


class PostReactionId(PostDocumentId):
    """The `_id` of a reaction to a post: one per post, emoji and user. `o` and `ts` are those of the post."""

    e: str
    """Emoji: one grapheme."""
    u: str
    """Id of the user who reacted."""


class PostReactionDocument(TypedDict):
    """`post_reactions`: reactions to posts. Deleted with the post, or when the user removes the reaction."""

    _id: PostReactionId
    at: datetime
    """When the user reacted, by the database's clock."""


class OrganizationUserId(TypedDict):
    """A user of an organization, as the `_id` of documents of which each user has at most one, such as the feed."""

    o: str
    """Organization id."""
    u: str
    """User id."""


class FeedItemId(OrganizationUserId):
    """The `_id` of a feed item. In the order of these ids, a reader's items are the feed."""

    ts: int
    """Timestamp of the post."""


class FeedItemDocument(TypedDict):
    """`feed_items`: one post in one reader's home feed. The newest 800 items of each reader are kept."""

    _id: FeedItemId
    author: str
    of: NotRequired[int]
    """Timestamp of the post that a repost repeats; absent for other posts."""
    emitted: NotRequired[bool]
    """True once `PostArrived` was emitted in the reader's stream."""


class FeedDocument(TypedDict):
    """`feeds`: one document for each reader. Deleted by the reader's erasure only."""

    _id: OrganizationUserId
    seen_at: datetime
    """When the reader last read the feed, to the hour."""
    subscribed_at: NotRequired[datetime]
    """When the reader was last subscribed to the home stream, to the hour; absent until the first subscription."""
    rebuilding: NotRequired[bool]
    """True while the feed is rebuilt: after a long absence, or because it became shorter than 800 items."""
    complete_from: NotRequired[int]
    """Timestamp from which the feed has every post that belongs in it; 0 if it has all of them. Absent: not known."""


class FanOutDocument(TypedDict):
    """`fan_outs`: one document for each post. Never deleted."""

    _id: PostDocumentId
    author: str
    task: Literal["push", "remove"]
    state: Literal["PENDING", "RUNNING", "COMPLETED"]
    """The state that clients see."""
    open: bool
    """Whether the fan-out has work left."""
    processed: bool
    """Whether all followers were processed. Retries may be left."""
    next: str
    """Id of the last follower that was processed, after which the next chunk begins; empty before the first."""
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
    advanced_at: NotRequired[datetime]
    """When the last step was stored."""
    emitted_at: NotRequired[datetime]
    """When progress was last emitted."""


class RetryId(PostDocumentId):
    """The `_id` of a retry."""

    u: str
    """Id of the reader."""


class FeedRetryDocument(TypedDict):
    """`feed_retries`: a failed insert into a feed.

    Deleted when a retry succeeds, when a deleted post is removed from feeds, or 30 days after the last retry.
    """

    _id: RetryId
    tries: int
    """Number of failed inserts, at most 5: the failure of the last retry is not counted."""
    due: NotRequired[datetime]
    """When to try again; absent after the last retry."""
    failed_at: NotRequired[datetime]
    """When the last retry failed; absent before."""


class MergedAuthorDocument(TypedDict):
    """`merged_authors`: authors whose posts are merged into feeds when they are read. Never deleted."""

    _id: OrganizationUserId
    epoch: str
    """Epoch of the author's stream. Only processes of an earlier version read this and `n`."""
    n: int
    """Number of the last event in the author's stream before the first merged post."""
    at: datetime
