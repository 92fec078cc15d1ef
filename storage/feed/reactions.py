"""Reactions to posts: their changes, which are committed to the stream of the post's author, and their reads."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pymongo.asynchronous.collection import AsyncCollection

from storage.chat.documents import ReactionCountDocument
from storage.chat.reactions.changes import MAX_EMOJIS
from storage.chat.reactions.store import ViewerBlocks
from storage.errors import Conflict, NotFound
from storage.feed.changes import POSTS, PostChange
from storage.feed.documents import PostDocument, PostReactionDocument, PostReactionId
from storage.feed.posts import PostStore
from storage.feed.records import Post, PostReaction, author_stream, post_record
from storage.identity.rights import IsActive
from storage.ids import PostKey
from storage.mongo import Document, Mongo
from storage.notifications import NotificationKind, notify
from storage.streams.changes import Batch, DocumentKey, Right
from storage.streams.sequencer import Sequencer

POST_REACTIONS = "post_reactions"


@dataclass(slots=True)
class _ReactionChange(PostChange):
    """A change of one user's reaction to a post with one emoji."""

    usual_events = 0
    user_id: str
    emoji: str

    @property
    def reaction_id(self) -> PostReactionId:
        """The reaction's `_id`."""
        return {"o": self.key.organization_id, "ts": self.key.timestamp, "e": self.emoji, "u": self.user_id}

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the post and the reaction."""
        return [(POSTS, self.key.document_id), (POST_REACTIONS, self.reaction_id)]

    def change_count(self, batch: Batch, document: PostDocument, step: int) -> Post:
        """Changes the emoji's count by `step`, and puts the post."""
        counts = {each["emoji"]: each["count"] for each in document.get("reactions", ())}
        counts[self.emoji] = counts.get(self.emoji, 0) + step
        reactions: list[ReactionCountDocument] = [{"emoji": e, "count": c} for e, c in counts.items() if c > 0]
        document.pop("reactions", None)
        if reactions:
            document["reactions"] = reactions
        batch.put(POSTS, document)
        return post_record(document)


@dataclass(slots=True)
class AddPostReaction(_ReactionChange):
    """Adds a reaction to a post, and notifies its author. Idempotent."""

    def rights(self) -> Sequence[Right]:
        """Returns that the user's account is active."""
        return (IsActive(self.user_id, self.key.organization_id),)

    def plan(self, batch: Batch) -> Post:
        """Puts the reaction, unless it exists. Raises: NotFound, also for a tombstone; Conflict for a 31st emoji."""
        document = self.copy_post(batch)
        if document.get("deleted_at") is not None:
            raise NotFound("post", self.key.id)
        if batch.get(POST_REACTIONS, self.reaction_id) is not None:
            return post_record(document)
        emojis = {each["emoji"] for each in document.get("reactions", ())}
        if self.emoji not in emojis and len(emojis) >= MAX_EMOJIS:
            raise Conflict(f"The post already has {MAX_EMOJIS} different reactions. Use one of them.")
        reaction: PostReactionDocument = {"_id": self.reaction_id, "at": batch.at}
        batch.put(POST_REACTIONS, reaction)
        self._notify_author(batch, document)
        return self.change_count(batch, document, +1)

    def _notify_author(self, batch: Batch, post: PostDocument) -> None:
        organization_id, kind = self.key.organization_id, NotificationKind.REACTION
        timestamp, root = self.key.timestamp, post_record(post).root_key.timestamp
        notify(batch, organization_id, post["author"], kind, self.user_id, post=timestamp, emoji=self.emoji, root=root)


@dataclass(slots=True)
class RemovePostReaction(_ReactionChange):
    """Removes a reaction to a post. Idempotent."""

    def rights(self) -> Sequence[Right]:
        """Returns no right: everybody may take a reaction back."""
        return ()

    def plan(self, batch: Batch) -> Post:
        """Removes the reaction if it exists. Raises: NotFound."""
        document = self.copy_post(batch)
        if batch.get(POST_REACTIONS, self.reaction_id) is None:
            return post_record(document)
        batch.remove(POST_REACTIONS, self.reaction_id)
        if document.get("deleted_at") is not None:
            return post_record(document)
        return self.change_count(batch, document, -1)


class PostReactionStore:
    """Changes and reads reactions. Reactions of users whom the viewer blocked are left out of lists and counts."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer, posts: PostStore) -> None:
        self._mongo = mongo
        self._reactions: AsyncCollection[PostReactionDocument] = mongo[POST_REACTIONS]
        self._sequencer = sequencer
        self._posts = posts

    async def add(self, post: Post, user_id: str, emoji: str) -> Post:
        """Adds the user's reaction. Idempotent. Raises: NotFound; Conflict for a 31st emoji."""
        stream = author_stream(post.organization_id, post.author_id)
        return await self._sequencer.commit(stream, AddPostReaction(post.key, user_id, emoji))

    async def remove(self, key: PostKey, user_id: str, emoji: str) -> Post | None:
        """Removes the user's reaction, also from a deleted post. Idempotent. Returns None if there was no such post."""
        post = await self._posts.find_with_tombstone(key)
        if post is None:
            return None
        stream = author_stream(post.organization_id, post.author_id)
        return await self._sequencer.commit(stream, RemovePostReaction(key, user_id, emoji))

    async def of_posts(self, posts: Sequence[Post], viewer_blocks: ViewerBlocks) -> list[list[PostReaction]]:
        """Returns the reactions to each post of one organization, in the order of first use."""
        reacted_posts = [post for post in posts if post.reaction_counts]
        ids_by_timestamp: defaultdict[int, list[PostReactionId]] = defaultdict(list)
        if reacted_posts and viewer_blocks.user_ids:
            timestamps = list({post.timestamp for post in reacted_posts})
            query = {"_id.o": reacted_posts[0].organization_id, "_id.ts": {"$in": timestamps}}
            query["_id.u"] = {"$in": viewer_blocks.user_ids}
            rows: list[PostReactionDocument] = await self._mongo.find(POST_REACTIONS, query, {"_id": 1})
            for row in rows:
                ids_by_timestamp[row["_id"]["ts"]].append(row["_id"])
        return [_reactions(post, viewer_blocks, ids_by_timestamp[post.timestamp]) for post in posts]

    async def users(self, key: PostKey, emoji: str, limit: int, blocked: frozenset[str]) -> list[str]:
        """Returns the ids of the users who reacted with the emoji, earliest first."""
        query: Document = {"_id.o": key.organization_id, "_id.ts": key.timestamp, "_id.e": emoji}
        if blocked:
            query["_id.u"] = {"$nin": list(blocked)}
        cursor = self._reactions.find(query, {"_id": 1}).sort("at", 1).limit(limit)
        return [row["_id"]["u"] for row in await cursor.to_list(limit)]


def _reactions(post: Post, viewer_blocks: ViewerBlocks, ids: Sequence[PostReactionId]) -> list[PostReaction]:
    """Returns a post's reactions for a viewer. `ids` are the reactions of the viewer and of blocked users."""
    own_emojis = {each["e"] for each in ids if each["u"] == viewer_blocks.viewer_id}
    hidden = Counter(each["e"] for each in ids if each["u"] in viewer_blocks.blocked)
    return [
        PostReaction(post.key, emoji, count - hidden[emoji], emoji in own_emojis)
        for emoji, count in post.reaction_counts
        if count > hidden[emoji]
    ]
