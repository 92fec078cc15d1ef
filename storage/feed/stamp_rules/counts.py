"""Counts of what a person has done, up to a limit. They are read from existing documents; there are no counters.

Each count reads a few more documents than its limit. Deleted messages and posts of the person are read as well.
Nothing in a conversation counts: an ADMIN, who sets the thresholds, must not learn how much somebody writes there.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping

from storage.chat.changes import MESSAGES
from storage.chat.reactions.documents import ReceivedReactionDocument
from storage.chat.stamps.rules import StampRuleKind
from storage.feed.changes import POSTS
from storage.feed.documents import PostDocument
from storage.feed.reactions import POST_REACTIONS
from storage.feed.records import PostParentKind
from storage.identity.records import user_document_id
from storage.ids import UserKey
from storage.mongo import Document, Mongo
from storage.timeline import MAX_TIMESTAMP

RECEIVED_REACTIONS = "received_reactions"
REACTED_POSTS = "reacted_posts"
"""Name of the index of posts that finds an author's posts with reactions."""

MESSAGES_BY_AUTHOR = "author_1__id_1"
OUTSIDE_CONVERSATIONS: Document = {"direct": None, "thread.direct": None}
"""The filter for topics of communities and their threads."""

BATCH, MIN_BATCH = 500, 100
"""Numbers of documents that one query reads. A small limit must not cause a query for each document."""


class ActivityCounts:
    """Counts what people have done."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._counts: Mapping[StampRuleKind, Callable[[UserKey, int], Awaitable[int]]] = {
            StampRuleKind.MESSAGES_POSTED: self._messages,
            StampRuleKind.POSTS_CREATED: self._posts,
            StampRuleKind.REACTIONS_RECEIVED: self._reactions,
            StampRuleKind.MEMBER_DAYS: self._member_days,
        }

    async def count(self, person: UserKey, kind: StampRuleKind, limit: int) -> int:
        """Returns the exact count, or the limit if the count is greater."""
        return min(limit, await self._counts[kind](person, limit))

    async def _messages(self, person: UserKey, limit: int) -> int:
        """Counts messages in topics that count. The index sorts by topic, so the rest of another topic is skipped."""
        count = 0
        after: Document | None = None
        while count < limit:
            query: Document = {"author": person.user_id, "deleted_at": {"$exists": False}}
            if after is not None:
                query["_id"] = {"$gt": after}
            rows = await self._mongo.find(
                MESSAGES, query, {"_id": 1}, [("_id", 1)], _page_size(limit), hint=MESSAGES_BY_AUTHOR
            )
            if not rows:
                break
            by_topic = Counter(row["_id"]["t"] for row in rows)
            counted = await self._counted_topics(person, by_topic)
            count += sum(by_topic[topic_id] for topic_id in counted)
            last = rows[-1]["_id"]
            after = last if last["t"] in counted else {**last, "ts": MAX_TIMESTAMP}
        return count

    async def _counted_topics(self, person: UserKey, topic_ids: Iterable[str]) -> set[str]:
        """Returns those of the topics in which the person's acts count.

        These are of the organization, because a user of another organization may have the same id.
        """
        query = {"_id": {"$in": list(topic_ids)}, "org": person.organization_id, **OUTSIDE_CONVERSATIONS}
        return {topic["_id"] for topic in await self._mongo.find("topics", query, {"_id": 1})}

    async def _posts(self, person: UserKey, limit: int) -> int:
        own = {"_id.o": person.organization_id, "author": person.user_id}
        written = {"deleted_at": {"$exists": False}, "parent.kind": {"$ne": PostParentKind.REPOST.value}}
        return await self._mongo[POSTS].count_documents({**own, **written}, limit=limit)

    async def _reactions(self, person: UserKey, limit: int) -> int:
        to_messages = await self._message_reactions(person, limit)
        return to_messages if to_messages >= limit else to_messages + await self._post_reactions(person, limit)

    async def _message_reactions(self, person: UserKey, limit: int) -> int:
        """Counts reactions to messages in topics that count."""
        count, last = 0, 0
        owner: Document = {"o": person.organization_id, "u": person.user_id}
        while count < limit:
            query: Document = {"_id": {"$gt": {**owner, "ts": last}, "$lte": {**owner, "ts": MAX_TIMESTAMP}}}
            rows: list[ReceivedReactionDocument] = await self._mongo.find(
                RECEIVED_REACTIONS, query, {"topic": 1}, [("_id", 1)], _page_size(limit)
            )
            if not rows:
                break
            by_topic, last = Counter(row["topic"] for row in rows), rows[-1]["_id"]["ts"]
            count += sum(by_topic[topic_id] for topic_id in await self._counted_topics(person, by_topic))
        return count

    async def _post_reactions(self, person: UserKey, limit: int) -> int:
        """Sums the counts of the person's posts, without the person's own reactions."""
        count, last = 0, 0
        while count < limit:
            low, high = ({"o": person.organization_id, "ts": timestamp} for timestamp in (last, MAX_TIMESTAMP))
            reacted = {"author": person.user_id, "_id": {"$gt": low, "$lte": high}, "reactions": {"$exists": True}}
            posts: list[PostDocument] = await self._mongo.find(
                POSTS, reacted, {"reactions": 1}, [("_id", 1)], _page_size(limit), hint=REACTED_POSTS
            )
            if not posts:
                break
            last = posts[-1]["_id"]["ts"]
            count += sum(each["count"] for post in posts for each in post.get("reactions", ()))
            count -= await self._own_reactions(person, [post["_id"]["ts"] for post in posts])
        return count

    async def _own_reactions(self, person: UserKey, timestamps: list[int]) -> int:
        own = {"_id.o": person.organization_id, "_id.ts": {"$in": timestamps}, "_id.u": person.user_id}
        return await self._mongo[POST_REACTIONS].count_documents(own)

    async def _member_days(self, person: UserKey, limit: int) -> int:
        query = {"_id": user_document_id(*person)}
        users = await self._mongo.find("users", query, {"at": 1}, limit=1)
        return (await self._mongo.now() - users[0]["at"]).days if users else 0


def _page_size(limit: int) -> int:
    return min(BATCH, max(limit, MIN_BATCH))
