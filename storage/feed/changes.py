"""Changes of posts, which the sequencer commits to the stream of the post's author (ADR 12)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from storage.chat.roles import Moderator
from storage.errors import NotFound
from storage.feed.documents import (
    FanOutDocument,
    FeedItemDocument,
    OrganizationUserId,
    PostDocument,
    PostSourceId,
    PostTermsDocument,
)
from storage.feed.notifications import notify_mentioned, notify_parent_author, withdraw_from_parent_author
from storage.feed.records import (
    Post,
    PostParent,
    PostParentKind,
    author_stream,
    home_stream,
    merged_stream,
    post_record,
)
from storage.files.attachments import NewAttachment, attach_files, check_attachable, file_keys, remove_files
from storage.files.link_previews import LinkPreview, first_url, put_preview
from storage.idempotency import DuplicateRequest, IdempotencyKey
from storage.identity.audit import AuditAction, TargetKind, put_entry
from storage.identity.rights import HasRole, IsActive, IsAuthorOr, Never
from storage.identity.roles import Role
from storage.ids import PostKey, UserKey
from storage.mongo import Document
from storage.mongo.text_index.entries import ContentKind, content_term, entry_terms
from storage.streams.changes import Batch, Change, DocumentKey, Right, SystemChange
from storage.streams.log import jobs_stream

POSTS = "posts"
POST_TERMS = "post_terms"
POST_HISTORIES = "post_histories"
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
    attachments: Sequence[NewAttachment] = ()
    parent: PostParent | None = None


@dataclass(frozen=True, slots=True)
class PostPlan:
    """A plan that puts a new post into a batch of its author's stream. Shared by the changes that create posts.

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
        source_keys = [(SOURCES, self._source_document_id)] if self.new.source else []
        return [*author_keys, *source_keys, *file_keys(self.new.attachments)]

    def put(self, batch: Batch) -> Post:
        """Puts the post, with one timestamp and one event.

        Raises: DuplicateRequest if the source already has a post; NotFound, Conflict and BadUserInput for files that
        cannot be attached.
        """
        if self.new.source and (earlier := batch.get(SOURCES, self._source_document_id)):
            raise DuplicateRequest(PostKey(self.new.organization_id, earlier["post"]).id)
        check_attachable(batch, UserKey(self.new.organization_id, self.new.author_id), self.new.attachments)
        user = batch.get("users", {"org": self.new.organization_id, "id": self.new.author_id})
        follower_count = 0 if user is None else user["followers"]
        document = self._document(batch, batch.take_timestamp(), merged=follower_count > self.max_followers)
        if self.new.attachments:
            place = post_place(PostKey(self.new.organization_id, document["_id"]["ts"]))
            document["attachments"] = attach_files(batch, [place], self.new.attachments)
        batch.put(POSTS, document)
        batch.put(POST_TERMS, post_terms(document))
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
        if new.parent is not None:
            kind, parent_timestamp, parent_author, root = new.parent
            document["parent"] = {"kind": kind.value, "ts": parent_timestamp, "author": parent_author, "root": root}
        return document

    def _add_to_feeds(self, batch: Batch, document: PostDocument, follower_count: int) -> None:
        """Adds the post to its author's feed, and creates the fan-out, which adds it to the followers' feeds."""
        new, timestamp = self.new, document["_id"]["ts"]
        item = feed_item(self._author_document_id, timestamp, new.author_id, reposted_timestamp(document))
        batch.put(FEED_ITEMS, item)
        batch.put(FAN_OUTS, _new_fan_out(document, follower_count))
        batch.emit("PostArrived", timestamp)
        batch.add_outbox_row(home_stream(new.organization_id, new.author_id), "PostArrived", timestamp)
        if document["merged"]:
            batch.add_outbox_row(merged_stream(new.organization_id), "MergedPostArrived", timestamp)
        batch.add_outbox_row(jobs_stream(new.organization_id), "FanOutChanged", timestamp)
        parent_author = None if new.parent is None else new.parent.author_id
        notify_mentioned(batch, document, [each for each in new.mention_ids if each != parent_author])
        count_response(batch, document, +1)
        notify_parent_author(batch, document)


def list_ref(document: PostDocument, tags: Sequence[str], in_local_feed: bool = False) -> Document:
    """Returns the ref of an outbox row about the lists of the hashtags, and the local feed, that a post is in."""
    # No hashtag contains #. A ref holds no list, since rows are compared by their refs.
    return {"ts": document["_id"]["ts"], "tags": "#".join(tags), "local": in_local_feed}


def feed_item(owner: OrganizationUserId, timestamp: int, author_id: str, original: int | None) -> FeedItemDocument:
    """Returns the item of a post. `original` is the timestamp of the post that it reposts; None for other posts."""
    item: FeedItemDocument = {"_id": {**owner, "ts": timestamp}, "author": author_id}
    if original is not None:
        item["of"] = original
    return item


def reposted_timestamp(post: PostDocument) -> int | None:
    """Returns the timestamp of the post that a post reposts; None for other posts."""
    parent = post.get("parent")
    return None if parent is None or parent["kind"] != PostParentKind.REPOST.value else parent["ts"]


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
        "processed": False,
        "fence": 0,
        "at": post["at"],
    }


def count_response(batch: Batch, response: PostDocument, step: int) -> None:
    """Adds an outbox row that changes the parent's count of replies, reposts or quotes by `step`."""
    if (parent := response.get("parent")) is not None:
        ref = {"ts": parent["ts"], "response": response["_id"]["ts"], "kind": parent["kind"], "step": step}
        batch.add_outbox_row(author_stream(response["_id"]["o"], parent["author"]), "PostResponse", ref)


@dataclass(slots=True)
class CreatePost(Change[Post]):
    """Creates a post."""

    max_timestamps = 1
    post: PostPlan
    idempotency: IdempotencyKey | None = None

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the documents that the plan of the post reads."""
        return self.post.needs()

    def rights(self) -> Sequence[Right]:
        """Returns that the author's account is active."""
        return (IsActive(self.post.new.author_id, self.post.new.organization_id),)

    def plan(self, batch: Batch) -> Post:
        """Puts the post. Raises: DuplicateRequest."""
        return self.post.put(batch)

    def result_id(self, result: Post) -> str:
        """Returns the post's id."""
        return result.id


@dataclass(slots=True)
class PostChange(Change[Post]):
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
class PostRemoval(PostChange):
    """Base of changes that replace a post by a tombstone, which keeps its timestamp.

    The fan-out of the post then removes it from feeds.
    """

    repost_source: PostSourceId | None
    """The `_id` of the source of a repost, which is removed, so that the user may repost again."""

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the post, its fan-out, its terms, its history and, for a repost, its source."""
        source_keys = [] if self.repost_source is None else [(SOURCES, self.repost_source)]
        return [*((name, self.key.document_id) for name in (POSTS, FAN_OUTS, POST_TERMS, POST_HISTORIES)), *source_keys]

    def put_tombstone(self, batch: Batch, document: PostDocument) -> Post:
        """Puts the tombstone, and removes everything that belongs to the post. Does nothing for a tombstone."""
        if document.get("deleted_at") is None:
            self._remove_dependents(batch, document)
            self._unlist(batch, document)
            document = _tombstone(document, batch.at)
            batch.put(POSTS, document)
            batch.put(POST_TERMS, post_terms(document))
            self._remove_from_feeds(batch, document)
        return post_record(document)

    def _remove_dependents(self, batch: Batch, document: PostDocument) -> None:
        """Removes the post's files, history and source, and the post from its parent's count."""
        remove_files(batch, post_place(self.key), document.get("attachments", ()))
        count_response(batch, document, -1)
        withdraw_from_parent_author(batch, document)
        if batch.get(POST_HISTORIES, self.key.document_id) is not None:
            batch.remove(POST_HISTORIES, self.key.document_id)
        if self.repost_source is not None and batch.get(SOURCES, self.repost_source) is not None:
            batch.remove(SOURCES, self.repost_source)

    def _unlist(self, batch: Batch, document: PostDocument) -> None:
        """Removes the post from the local feed and from its hashtags, if these are subscribed to."""
        tags, in_local_feed = document.get("tags", ()), is_local(document)
        if tags or in_local_feed:
            home = home_stream(self.key.organization_id, document["author"])
            batch.add_outbox_row(home, "PostUnlisted", list_ref(document, tags, in_local_feed))

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
            removal = {"task": "remove", "state": "COMPLETED", "open": is_open, "next": "", "processed": False}
            total = fan_out["delivered"] + fan_out["failed"]
            reset = {"fence": fan_out["fence"] + 1, "lease_until": None, "retrying": 0, "total": total}
            batch.put(FAN_OUTS, {**fan_out, **removal, **reset})
            batch.add_outbox_row(jobs_stream(organization_id), "FanOutChanged", timestamp)


@dataclass(slots=True)
class DeletePost(PostRemoval):
    """Deletes a post for its author or for an ADMIN."""

    deleter: Moderator

    def rights(self) -> Sequence[Right]:
        """Returns the right to delete the post."""
        organization_id, deleter = self.key.organization_id, self.deleter
        is_admin = HasRole(deleter.actor_in(organization_id), Role.ADMIN)
        others = is_admin if deleter.is_admin else Never("Only the author or an ADMIN may delete this post.")
        own = IsActive(deleter.user_id, organization_id)
        return (IsAuthorOr((POSTS, self.key.document_id), deleter.user_id, own, others),)

    def plan(self, batch: Batch) -> Post:
        """Deletes the post. Idempotent. Raises: NotFound."""
        document = self.copy_post(batch)
        if document.get("deleted_at") is None and document["author"] != self.deleter.user_id:
            author, action = document["author"], AuditAction.POST_DELETED
            actor = self.deleter.actor_in(self.key.organization_id)
            put_entry(batch, actor, action, TargetKind.USER, author, post=self.key.id)
        return self.put_tombstone(batch, document)


@dataclass(slots=True)
class ErasePost(PostRemoval, SystemChange[Post]):
    """Deletes a post for an erasure of its author."""

    def plan(self, batch: Batch) -> Post:
        """Deletes the post. Idempotent. Raises: NotFound."""
        return self.put_tombstone(batch, self.copy_post(batch))


def post_place(key: PostKey) -> str:
    """Returns the place of the files of a post."""
    return f"post:{key.id}"


def is_local(post: PostDocument) -> bool:
    """Returns whether the post belongs in the local feed, which has neither replies nor reposts."""
    return "parent" not in post or post["parent"]["kind"] == PostParentKind.QUOTE.value


def post_terms(post: PostDocument) -> PostTermsDocument:
    """Returns the terms of a post; none for a tombstone or a repost. A step of the migration writes the same."""
    found: list[str] = []
    is_repost = post.get("parent", {}).get("kind") == PostParentKind.REPOST.value
    if post.get("deleted_at") is None and not is_repost:
        media = [content_term(ContentKind.MEDIA)] if post.get("media") or post.get("attachments") else []
        found = entry_terms(post["author"], post["text"], *media)
    return {"_id": post["_id"], "terms": found}


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
class SetPostPreview(PostChange, SystemChange[Post]):
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
                put_preview(document, self.preview)
            batch.put(POSTS, document)
        return post_record(document)
