"""Edits of posts: the change of the text, and the history of earlier texts."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.errors import BadUserInput, Conflict, Forbidden, NotFound
from storage.feed.changes import POST_HISTORIES, POST_TERMS, POSTS, PostChange, list_ref, post_terms
from storage.feed.documents import PostDocument, PostHistoryDocument
from storage.feed.notifications import notify_mentioned
from storage.feed.posts import PostStore
from storage.feed.records import Post, PostVersion, author_stream, home_stream, post_record
from storage.files.link_previews import first_url
from storage.identity.rights import IsActive
from storage.ids import PostKey
from storage.mongo import Mongo
from storage.streams.changes import Batch, DocumentKey, Right
from storage.streams.sequencer import Sequencer

MAX_EDITS = 50
"""Maximum number of earlier texts that a post keeps. It bounds the history's document to about 800 kB."""


@dataclass(frozen=True, slots=True)
class NewText:
    """The validated text of an edited post, with the ids of mentioned users and the hashtags in it."""

    text: str
    mention_ids: Sequence[str]
    hashtags: Sequence[str]


@dataclass(slots=True)
class EditPost(PostChange):
    """Replaces the text of a post, and keeps the earlier text. A changed first link gets a new preview."""

    usual_events = 0
    editor_id: str
    new: NewText

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the post, its terms and its history."""
        return [(name, self.key.document_id) for name in (POSTS, POST_TERMS, POST_HISTORIES)]

    def rights(self) -> Sequence[Right]:
        """Returns that the editor's account is active. `plan` checks that the editor is the author."""
        return (IsActive(self.editor_id, self.key.organization_id),)

    def plan(self, batch: Batch) -> Post:
        """Puts the edited post, and notifies the users whom only the new text mentions. An equal text changes nothing.

        Raises: NotFound, also for a tombstone; Forbidden; Conflict for a repost and after the 50th edit; BadUserInput
        for no content.
        """
        document = self._checked_copy(batch)
        if document["text"] == self.new.text:
            return post_record(document)
        self._keep_text(batch, document)
        self._notify_mentioned(batch, document)
        has_new_link = first_url(self.new.text) != first_url(document["text"])
        document["text"], document["edited_at"] = self.new.text, batch.at
        self._relist(batch, document)
        document["mentions"], document["tags"] = list(self.new.mention_ids), list(self.new.hashtags)
        if has_new_link:
            document.pop("preview", None)
            document.pop("preview_picture", None)
            document.pop("preview_due", None)
            if first_url(self.new.text) is not None:
                document["preview_due"] = batch.at
        batch.put(POSTS, document)
        batch.put(POST_TERMS, post_terms(document))
        return post_record(document)

    def _checked_copy(self, batch: Batch) -> PostDocument:
        document = self.copy_post(batch)
        if document.get("deleted_at") is not None:
            raise NotFound("post", self.key.id)
        if document["author"] != self.editor_id:
            raise Forbidden("Only the author can edit a post.")
        if post_record(document).is_repost:
            raise Conflict("A repost has no text to edit.")
        if not (self.new.text or document.get("media") or document.get("attachments")):
            raise BadUserInput("text", "1 to 4000 characters, since the post has no picture and no file")
        return document

    def _keep_text(self, batch: Batch, document: PostDocument) -> None:
        """Appends the current text to the history. Raises: Conflict if the history is full."""
        history: PostHistoryDocument | None = batch.get(POST_HISTORIES, self.key.document_id)
        versions = [] if history is None else history["versions"]
        if len(versions) >= MAX_EDITS:
            raise Conflict(f"The post was edited {MAX_EDITS} times. Delete it and write a new post.")
        written_at = document.get("edited_at", document["at"])
        kept: PostHistoryDocument = {
            "_id": document["_id"],
            "author": document["author"],
            "versions": [*versions, {"text": document["text"], "at": written_at}],
        }
        batch.put(POST_HISTORIES, kept)

    def _relist(self, batch: Batch, document: PostDocument) -> None:
        """Adds the post to the lists of its new hashtags, and removes it from those of hashtags that it had."""
        before, after = document.get("tags", ()), self.new.hashtags
        home = home_stream(self.key.organization_id, self.editor_id)
        if removed := [tag for tag in before if tag not in after]:
            batch.add_outbox_row(home, "PostUnlisted", list_ref(document, removed))
        if added := [tag for tag in after if tag not in before]:
            batch.add_outbox_row(home, "PostListed", list_ref(document, added))

    def _notify_mentioned(self, batch: Batch, document: PostDocument) -> None:
        parent = document.get("parent")
        notified = {*document.get("mentions", ()), *([] if parent is None else [parent["author"]])}
        notify_mentioned(batch, document, [each for each in self.new.mention_ids if each not in notified])


class PostEdits:
    """Edits posts, and reads their earlier texts."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer, posts: PostStore) -> None:
        self._mongo = mongo
        self._sequencer = sequencer
        self._posts = posts

    async def edit(self, key: PostKey, editor_id: str, new: NewText) -> Post:
        """Replaces the text. Raises: NotFound, Forbidden, Conflict, BadUserInput."""
        post = await self._posts.get(key)
        stream = author_stream(post.organization_id, post.author_id)
        return await self._sequencer.commit(stream, EditPost(key, editor_id, new))

    async def versions(self, key: PostKey) -> list[PostVersion]:
        """Returns the earlier texts of a post, oldest first."""
        histories: list[PostHistoryDocument] = await self._mongo.find(POST_HISTORIES, {"_id": key.document_id})
        return [PostVersion(each["text"], each["at"]) for history in histories for each in history["versions"]]
