"""Starts threads and lists followed ones, and counts the replies of people whom a viewer has blocked."""

from collections import Counter
from collections.abc import Collection, Sequence

from storage.chat.documents import MessageDocument, TopicDocument
from storage.chat.records import Topic
from storage.chat.threads.changes import FollowThread, StartThread, UnfollowThread
from storage.chat.threads.rules import thread_id
from storage.chat.topics import TOPIC_FIELDS, TopicStore, topic_record
from storage.ids import MessageKey
from storage.mongo import Mongo
from storage.streams.log import Stream
from storage.streams.sequencer import Sequencer
from storage.timeline import MAX_TIMESTAMP, TimelinePage, TimelineRange, read_page

MAX_COUNTED_REPLIES = 1000
"""Maximum number of replies of blocked people that are subtracted from the numbers of replies on one page."""


class ThreadStore:
    """Starts and lists threads, keeps their followers, and counts replies."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer, topics: TopicStore) -> None:
        self._mongo = mongo
        self._sequencer = sequencer
        self._topics = topics

    async def open(self, organization_id: str, parent: MessageKey, starter_id: str) -> Topic:
        """Returns the thread of a message, which is created if there is none.

        Raises: NotFound; Conflict for a deleted message without a thread; Forbidden, as posting does.
        """
        thread = await self._topics.find(organization_id, thread_id(parent))
        if thread is None:
            await self._sequencer.commit(Stream("topic", parent.topic_id), StartThread(parent, starter_id))
            thread = await self._topics.get(organization_id, thread_id(parent))
        return thread

    async def follow(self, id_: str, user_id: str) -> None:
        """Makes a person follow a thread. Idempotent. Raises: NotFound, Conflict for too many followers."""
        await self._sequencer.commit(Stream("topic", id_), FollowThread(user_id))

    async def unfollow(self, id_: str, user_id: str) -> None:
        """Ends the following of a thread. Idempotent. Raises: NotFound."""
        await self._sequencer.commit(Stream("topic", id_), UnfollowThread(user_id))

    async def followed_among(self, ids: Sequence[str], user_id: str) -> set[str]:
        """Returns those of the threads that the person follows, with one read."""
        query = {"_id": {"$in": list(ids)}, "thread.followers": user_id}
        return {row["_id"] for row in await self._mongo.find("topics", query, {"_id": 1})}

    async def followed(
        self, organization_id: str, user_id: str, community_ids: Collection[str], range_: TimelineRange
    ) -> TimelinePage[Topic]:
        """Returns a page of the threads that a person follows in these communities, by last activity."""
        filters = {"org": organization_id, "thread.followers": user_id, "community": {"$in": list(community_ids)}}

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Topic]:
            query, order = {**filters, "last": {"$gte": low, "$lte": high}}, 1 if ascending else -1
            sort = [("last", order), ("_id", order)]
            rows: list[TopicDocument] = await self._mongo.find("topics", query, TOPIC_FIELDS, sort, limit)
            return [topic_record(row) for row in rows]

        return await read_page(range_, fetch, lambda topic: topic.last_activity)

    async def count_replies_by(self, parents: Sequence[MessageKey], author_ids: Collection[str]) -> list[int]:
        """Returns for each message how many replies in its thread these people wrote; at most 1000 in all threads."""
        ids = [thread_id(each) for each in parents]
        by_author = {"author": {"$in": list(author_ids)}, "deleted_at": None}
        # One range of the index by author for each thread and author.
        queries = [
            {**by_author, "_id": {"$gte": {"t": id_, "ts": 0}, "$lte": {"t": id_, "ts": MAX_TIMESTAMP}}} for id_ in ids
        ]
        replies: list[MessageDocument] = await self._mongo.find(
            "messages", {"$or": queries}, {"_id": 1}, limit=MAX_COUNTED_REPLIES
        )
        counts = Counter(reply["_id"]["t"] for reply in replies)
        return [counts[id_] for id_ in ids]
