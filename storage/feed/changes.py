"""What can happen to a post, as changes that the sequencer commits to its author's stream (ADR 12)."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.errors import Forbidden, NotFound
from storage.feed.records import Post, home_stream, post_record
from storage.idempotency import AlreadyDone, IdempotencyKey
from storage.link_previews import LinkPreview, first_url, preview_document
from storage.mongo import Document
from storage.notifications import NotificationKind, notify
from storage.references import PostKey
from storage.streams.changes import Batch, Change, Need
from storage.streams.log import jobs_stream

POSTS = "posts"
SOURCES = "post_sources"
FEED_ITEMS = "feed_items"
FAN_OUTS = "fan_outs"
MERGED_AUTHORS = "merged_authors"


@dataclass(frozen=True, slots=True)
class NewPost:
    """What a post is made of, checked. `source` is unique in its organization: what made the post makes no second."""

    organization_id: str
    author_id: str
    text: str
    media: Sequence[str]
    mention_ids: Sequence[str]
    hashtags: Sequence[str]
    source: str | None = None


@dataclass(frozen=True, slots=True)
class PostPlan:
    """How a post is put into a batch of its author's stream, by whatever change makes it.

    With it come its place in its author's own feed, its fan-out, its event, and word to those whom it mentions.
    """

    new: NewPost
    max_followers: int
    """Above it an author's posts are not pushed: readers merge them."""

    def needs(self) -> Sequence[Need]:
        """What `put` must find in the batch."""
        author = (
            (MERGED_AUTHORS, self._author_id),
            ("users", {"org": self.new.organization_id, "id": self.new.author_id}),
        )
        return (*author, (SOURCES, self._source_id)) if self.new.source else author

    def put(self, batch: Batch) -> Post:
        """The post; takes one timestamp and emits one event. Raises: AlreadyDone for a source that made one."""
        if self.new.source and (made := batch.get(SOURCES, self._source_id)):
            raise AlreadyDone(PostKey(self.new.organization_id, made["post"]).id)
        user = batch.get("users", {"org": self.new.organization_id, "id": self.new.author_id})
        followers = 0 if user is None else user["followers"]
        document = self._document(batch, batch.take_timestamp(), merged=followers > self.max_followers)
        batch.put(POSTS, document)
        if self.new.source:
            batch.put(SOURCES, {"_id": self._source_id, "post": document["_id"]["ts"]})
        if document["merged"] and batch.get(MERGED_AUTHORS, self._author_id) is None:
            # Where readers begin to follow the author's own stream.
            begin = {"epoch": batch.head["epoch"], "n": batch.next_n - 1}
            batch.put(MERGED_AUTHORS, {"_id": self._author_id, **begin, "at": batch.at})
        self._spread(batch, document, followers)
        return post_record(document)

    @property
    def _source_id(self) -> Document:
        return {"o": self.new.organization_id, "source": self.new.source}

    @property
    def _author_id(self) -> Document:
        return {"o": self.new.organization_id, "u": self.new.author_id}

    def _document(self, batch: Batch, timestamp: int, merged: bool) -> Document:
        new = self.new
        document: Document = {
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

    def _spread(self, batch: Batch, document: Document, followers: int) -> None:
        """Into the author's own feed now, into all others by the fan-out."""
        new, timestamp = self.new, document["_id"]["ts"]
        batch.put(FEED_ITEMS, {"_id": {**self._author_id, "ts": timestamp}, "author": new.author_id})
        batch.put(FAN_OUTS, _fan_out(document, followers))
        batch.emit("PostArrived", timestamp)
        batch.add_outbox_row(home_stream(new.organization_id, new.author_id), "PostArrived", timestamp)
        batch.add_outbox_row(jobs_stream(new.organization_id), "FanOutChanged", timestamp)
        for user_id in new.mention_ids:
            notify(batch, new.organization_id, user_id, NotificationKind.MENTION, new.author_id, post=timestamp)


def _fan_out(post: Document, followers: int) -> Document:
    """A fan-out that has not begun; of a merged post it is done.

    It begins even with no follower: whoever follows while the post commits may have been backfilled without it, and is
    found by the walk, which comes after the commit.
    """
    is_pushed = not post["merged"]
    return {
        "_id": post["_id"],
        "author": post["author"],
        "task": "push",
        "state": "PENDING" if is_pushed else "COMPLETED",
        "open": is_pushed,
        "total": followers if is_pushed else 0,
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
    """A new post."""

    timestamps = 1
    post: PostPlan
    idempotency: IdempotencyKey | None = None

    def needs(self) -> Sequence[Need]:
        """What the post needs."""
        return self.post.needs()

    def plan(self, batch: Batch) -> Post:
        """Raises: AlreadyDone."""
        return self.post.put(batch)

    def result_id(self, result: Post) -> str:
        """The post's id."""
        return result.id


@dataclass(slots=True)
class _PostChange(Change[Post]):
    """A change of one existing post."""

    key: PostKey

    def needs(self) -> Sequence[Need]:
        """The post itself."""
        return [(POSTS, self.key.document_id)]

    def post(self, batch: Batch) -> Document:
        """A copy of the post, to be changed and put back. Raises: NotFound."""
        document = batch.get(POSTS, self.key.document_id)
        if document is None:
            raise NotFound("post", self.key.id)
        return dict(document)


@dataclass(slots=True)
class DeletePost(_PostChange):
    """Leaves a tombstone, which keeps the timestamp taken, and turns the fan-out round: it removes what it pushed."""

    deleter_id: str
    may_delete_any: bool

    def needs(self) -> Sequence[Need]:
        """The post and its fan-out."""
        return [(POSTS, self.key.document_id), (FAN_OUTS, self.key.document_id)]

    def plan(self, batch: Batch) -> Post:
        """Deleting twice changes nothing. Raises: NotFound, Forbidden."""
        document = self.post(batch)
        if not (self.may_delete_any or document["author"] == self.deleter_id):
            raise Forbidden("Only its author or an ADMIN deletes a post.")
        if document.get("deleted_at") is None:
            tombstone = {key: document[key] for key in ("_id", "author", "merged", "at")}
            document = {**tombstone, "text": "", "deleted_at": batch.at}
            batch.put(POSTS, document)
            self._withdraw(batch, document)
        return post_record(document)

    def _withdraw(self, batch: Batch, document: Document) -> None:
        organization_id, timestamp = self.key.organization_id, self.key.timestamp
        batch.emit("PostRemoved", timestamp)
        batch.add_outbox_row(home_stream(organization_id, document["author"]), "PostRemoved", timestamp)
        fan_out = batch.get(FAN_OUTS, self.key.document_id)
        if fan_out is not None:
            # The new fence stops whoever is pushing it right now. What was pushed to nobody may have been backfilled.
            is_open = not document["merged"]
            begun = {"task": "remove", "state": "COMPLETED", "open": is_open, "next": "", "walked": False}
            total = fan_out["delivered"] + fan_out["failed"]
            fences = {"fence": fan_out["fence"] + 1, "lease_until": None, "retrying": 0, "total": total}
            batch.put(FAN_OUTS, {**fan_out, **begun, **fences})
            batch.add_outbox_row(jobs_stream(organization_id), "FanOutChanged", timestamp)


@dataclass(slots=True)
class SetPostPreview(_PostChange):
    """What the preview job found for the post's link; None when there is nothing to show."""

    events = 0
    url: str
    preview: LinkPreview | None

    def plan(self, batch: Batch) -> Post:
        """Changes nothing when the post was deleted. Raises: NotFound."""
        document = self.post(batch)
        if document.get("deleted_at") is None and first_url(document["text"]) == self.url:
            document.pop("preview_due", None)
            if self.preview is not None:
                document["preview"] = preview_document(self.preview)
            batch.put(POSTS, document)
        return post_record(document)
