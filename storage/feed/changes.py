"""Changes of posts, which the sequencer commits to the stream of the post's author (ADR 12)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from storage.errors import Forbidden, NotFound
from storage.feed.documents import FanOutDocument, OrganizationUserId, PostDocument, PostSourceId
from storage.feed.records import Post, home_stream, merged_stream, post_record
from storage.idempotency import DuplicateRequest, IdempotencyKey
from storage.ids import PostKey
from storage.link_previews import LinkPreview, first_url, preview_document
from storage.notifications import NotificationKind, notify
from storage.streams.changes import Batch, Change, DocumentKey
from storage.streams.log import jobs_stream

POSTS = "posts"
SOURCES = "post_sources"
FEED_ITEMS = "feed_items"
FAN_OUTS = "fan_outs"
MERGED_AUTHORS = "merged_authors"


@dataclass(frozen=True, slots=True)
class NewPost:
    """The validated content of a new post. `source` names its origin; each origin has one post in an organization."""

    organization_id: str
    author_id: str
    text: str
    media: Sequence[str]
    mention_ids: Sequence[str]
    hashtags: Sequence[str]
    source: str | None = None


@dataclass(frozen=True, slots=True)
class PostPlan:
    """Puts a new post into a batch of its author's stream. Shared by the changes that create posts.

    It also adds the post to the author's own feed, creates its fan-out, emits its event and notifies mentioned users.
    """

    new: NewPost
    max_followers: int
    """Posts of authors with more followers are not pushed into feeds but merged when a feed is read."""

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the documents that `put` reads from the batch."""
        author_keys = (
            (MERGED_AUTHORS, self._author_document_id),
            ("users", {"org": self.new.organization_id, "id": self.new.author_id}),
        )
        return (*author_keys, (SOURCES, self._source_document_id)) if self.new.source else author_keys

    def put(self, batch: Batch) -> Post:
        """Puts the post, with one timestamp and one event.

        Raises: DuplicateRequest if the source already has a post.
        """
        if self.new.source and (earlier := batch.get(SOURCES, self._source_document_id)):
            raise DuplicateRequest(PostKey(self.new.organization_id, earlier["post"]).id)
        user = batch.get("users", {"org": self.new.organization_id, "id": self.new.author_id})
        follower_count = 0 if user is None else user["followers"]
        document = self._document(batch, batch.take_timestamp(), merged=follower_count > self.max_followers)
        batch.put(POSTS, document)
        if self.new.source:
            batch.put(SOURCES, {"_id": self._source_document_id, "post": document["_id"]["ts"]})
        if document["merged"] and batch.get(MERGED_AUTHORS, self._author_document_id) is None:
            # Processes of an earlier version follow the author's stream from this position.
            position = {"epoch": batch.head["epoch"], "n": batch.next_n - 1}
            batch.put(MERGED_AUTHORS, {"_id": self._author_document_id, **position, "at": batch.at})
        self._add_to_feeds(batch, document, follower_count)
        return post_record(document)

    @property
    def _source_document_id(self) -> PostSourceId:
        assert self.new.source is not None
        return {"o": self.new.organization_id, "source": self.new.source}

    @property
    def _author_document_id(self) -> OrganizationUserId:
        return {"o": self.new.organization_id, "u": self.new.author_id}

    def _document(self, batch: Batch, timestamp: int, merged: bool) -> PostDocument:
        new = self.new
        document: PostDocument = {
            "_id": {"o": new.organization_id, "ts": timestamp},
            "author": new.author_id,
            "text": new.text,
            "media": list(new.media),
            "mentions": list(new.mention_ids),
            "tags": list(new.hashtags),
            "merged": merged,
            "at": batch.at,
        }
        if first_url(new.text) is not None:
            document["preview_due"] = batch.at
        return document

    def _add_to_feeds(self, batch: Batch, document: PostDocument, follower_count: int) -> None:
        """Adds the post to its author's feed, and creates the fan-out, which adds it to the followers' feeds."""
        new, timestamp = self.new, document["_id"]["ts"]
        batch.put(FEED_ITEMS, {"_id": {**self._author_document_id, "ts": timestamp}, "author": new.author_id})
        batch.put(FAN_OUTS, _new_fan_out(document, follower_count))
        batch.emit("PostArrived", timestamp)
        batch.add_outbox_row(home_stream(new.organization_id, new.author_id), "PostArrived", timestamp)
        if document["merged"]:
            batch.add_outbox_row(merged_stream(new.organization_id), "MergedPostArrived", timestamp)
        batch.add_outbox_row(jobs_stream(new.organization_id), "FanOutChanged", timestamp)
        for user_id in new.mention_ids:
            notify(batch, new.organization_id, user_id, NotificationKind.MENTION, new.author_id, post=timestamp)


def _new_fan_out(post: PostDocument, follower_count: int) -> FanOutDocument:
    """Returns a pending fan-out, or a completed fan-out if the post is merged on read.

    A fan-out runs even without followers: the backfill of a user who follows during the commit may miss the post. The
    fan-out reads the followers after the commit, so it delivers the post to that user.
    """
    is_pushed = not post["merged"]
    return {
        "_id": post["_id"],
        "author": post["author"],
        "task": "push",
        "state": "PENDING" if is_pushed else "COMPLETED",
        "open": is_pushed,
        "total": follower_count if is_pushed else 0,
        "delivered": 0,
        "failed": 0,
        "retrying": 0,
        "next": "",
        "walked": False,
        "fence": 0,
        "at": post["at"],
    }


@dataclass(slots=True)
class CreatePost(Change[Post]):
    """Creates a post."""

    max_timestamps = 1
    post: PostPlan
    idempotency: IdempotencyKey | None = None

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the documents that the plan of the post reads."""
        return self.post.needs()

    def plan(self, batch: Batch) -> Post:
        """Puts the post. Raises: DuplicateRequest."""
        return self.post.put(batch)

    def result_id(self, result: Post) -> str:
        """Returns the post's id."""
        return result.id


@dataclass(slots=True)
class _PostChange(Change[Post]):
    """The base of changes to one existing post."""

    key: PostKey

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the post."""
        return [(POSTS, self.key.document_id)]

    def copy_post(self, batch: Batch) -> PostDocument:
        """Returns a copy of the post, to be changed and put back. Raises: NotFound."""
        document: PostDocument | None = batch.get(POSTS, self.key.document_id)
        if document is None:
            raise NotFound("post", self.key.id)
        return document.copy()


@dataclass(slots=True)
class DeletePost(_PostChange):
    """Replaces a post by a tombstone, which keeps its timestamp. Its fan-out then removes the post from feeds."""

    deleter_id: str
    may_delete_any: bool

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the post and its fan-out."""
        return [(POSTS, self.key.document_id), (FAN_OUTS, self.key.document_id)]

    def plan(self, batch: Batch) -> Post:
        """Deletes the post. Idempotent. Raises: NotFound, Forbidden."""
        document = self.copy_post(batch)
        if not (self.may_delete_any or document["author"] == self.deleter_id):
            raise Forbidden("Only the author or an ADMIN may delete this post.")
        if document.get("deleted_at") is None:
            document = _tombstone(document, batch.at)
            batch.put(POSTS, document)
            self._remove_from_feeds(batch, document)
        return post_record(document)

    def _remove_from_feeds(self, batch: Batch, document: PostDocument) -> None:
        organization_id, timestamp = self.key.organization_id, self.key.timestamp
        batch.emit("PostRemoved", timestamp)
        batch.add_outbox_row(home_stream(organization_id, document["author"]), "PostRemoved", timestamp)
        if document["merged"]:
            batch.add_outbox_row(merged_stream(organization_id), "MergedPostRemoved", timestamp)
        fan_out: FanOutDocument | None = batch.get(FAN_OUTS, self.key.document_id)
        if fan_out is not None:
            # The new fence stops a worker that is pushing the post. The fan-out also removes backfilled items.
            is_open = not document["merged"]
            removal = {"task": "remove", "state": "COMPLETED", "open": is_open, "next": "", "walked": False}
            total = fan_out["delivered"] + fan_out["failed"]
            reset = {"fence": fan_out["fence"] + 1, "lease_until": None, "retrying": 0, "total": total}
            batch.put(FAN_OUTS, {**fan_out, **removal, **reset})
            batch.add_outbox_row(jobs_stream(organization_id), "FanOutChanged", timestamp)


def _tombstone(post: PostDocument, deleted_at: datetime) -> PostDocument:
    return {
        "_id": post["_id"],
        "author": post["author"],
        "merged": post["merged"],
        "at": post["at"],
        "text": "",
        "deleted_at": deleted_at,
    }


@dataclass(slots=True)
class SetPostPreview(_PostChange):
    """Stores the link preview that a job fetched. `preview` is None if the page has none."""

    usual_events = 0
    url: str
    preview: LinkPreview | None

    def plan(self, batch: Batch) -> Post:
        """Stores the preview, unless the post was deleted or has another first link. Raises: NotFound."""
        document = self.copy_post(batch)
        if document.get("deleted_at") is None and first_url(document["text"]) == self.url:
            document.pop("preview_due", None)
            if self.preview is not None:
                document["preview"] = preview_document(self.preview)
            batch.put(POSTS, document)
        return post_record(document)
