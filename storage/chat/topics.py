"""Topics, their lists, and the read marks and unread counts of their readers."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pymongo.asynchronous.collection import AsyncCollection

from storage.chat.documents import CommunityDocument, ReadMarkDocument, ReadMarkDocumentId, TopicDocument
from storage.chat.memberships import COMMUNITIES, community_stream, require_not_archived
from storage.chat.records import Community, Topic, TrendingTopic
from storage.chat.rights import MayStartTopics
from storage.chat.roles import Moderator
from storage.chat.search.terms import TOPIC_TERMS, topic_terms
from storage.chat.threads.rules import wait_for_thread_commits
from storage.chat.topic_changes import RenameTopic, SetSlowMode, SetTopicArchived, TopicSettingChange
from storage.chat.trends import recent_people, trend_of
from storage.errors import NotFound
from storage.idempotency import DuplicateRequest, IdempotencyKey
from storage.identity.rights import IsActive
from storage.ids import MessageKey, new_id
from storage.mongo import Document, Mongo
from storage.mongo.batch_loader import BatchLoader
from storage.mongo.clock import DatabaseClock
from storage.streams.changes import Batch, Change, DocumentKey, Right
from storage.streams.heads import messages_per_minute
from storage.streams.log import Stream
from storage.streams.sequencer import Sequencer
from storage.timeline import MAX_TIMESTAMP, TimelinePage, TimelineRange, Timestamp, move_mark, read_page

UNREAD_CAP = 100
MIN_TRENDING_PEOPLE = 1.1
"""Decayed number of people at or below which a topic is not listed. One person counts at most 1. The margin of 0.1
allows for clocks of database servers that differ by half a minute."""

TRENDING_CHUNK = 100
"""Number of trending topics whose communities are looked up at once."""

CommunityFilter = Callable[[set[str]], Awaitable[set[str]]]
"""Returns those of the communities whose topics the viewer may see."""

TOPIC_FIELDS = dict.fromkeys(("org", "community", "thread", "title", "created_at", "last", "slow_s", "archived_at"), 1)
"""Projection to the fields of a `Topic`."""

_OPEN: Document = {"archived_at": None}
"""The filter for topics that are not archived."""

_BY_ARCHIVED: Mapping[bool | None, Document] = {False: _OPEN, True: {"archived_at": {"$ne": None}}, None: {}}


@dataclass(slots=True)
class CreateTopic(Change[str]):
    """Creates a topic and emits its event in the community's stream. The result is the topic's id."""

    # Takes the timestamp from the community's stream, so that all topics of the community have different timestamps.
    max_timestamps = 1
    community: Community
    creator_id: str
    title: str
    idempotency: IdempotencyKey | None = None
    id: str = field(default_factory=new_id)

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the community."""
        return [(COMMUNITIES, self.community.id)]

    def rights(self) -> Sequence[Right]:
        """Returns the right to start topics in the community."""
        id_, organization_id = self.community.id, self.community.organization_id
        return IsActive(self.creator_id, organization_id), MayStartTopics(id_, self.creator_id)

    def plan(self, batch: Batch) -> str:
        """Puts the topic. Its document is also the head of the topic's stream.

        Raises: NotFound; Forbidden in an archived community.
        """
        community: CommunityDocument | None = batch.get(COMMUNITIES, self.community.id)
        if community is None:
            raise NotFound("community", self.community.id)
        require_not_archived(community)
        topic: TopicDocument = {
            "_id": self.id,
            "org": self.community.organization_id,
            "community": self.community.id,
            "title": self.title,
            "creator": self.creator_id,
            "created_at": batch.at,
            "last": batch.take_timestamp(),
            "n": 0,
            "floor": 0,
            "epoch": self.id[-8:],
        }
        batch.put("topics", topic)
        batch.put(TOPIC_TERMS, topic_terms(self.id, batch.at, self.community.id, self.title))
        batch.emit("TopicCreated", self.id)
        return self.id

    def result_id(self, result: str) -> str:
        """Returns the topic's id."""
        return result


class TopicStore:
    """Creates and reads topics; keeps the read marks of their readers."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer, clock: DatabaseClock) -> None:
        self._mongo = mongo
        self._clock = clock
        self._sequencer = sequencer
        self._topics: AsyncCollection[TopicDocument] = mongo["topics"]
        self._read_marks = mongo["read_marks"]
        self._by_id: BatchLoader[str, Topic] = BatchLoader(self._load)
        self._pins: BatchLoader[str, Sequence[MessageKey]] = BatchLoader(self._load_pins)
        self._marks_by_id: BatchLoader[tuple[str, str], Timestamp] = BatchLoader(self._load_marks)

    async def create(self, community: Community, creator_id: str, title: str, key: IdempotencyKey | None) -> Topic:
        """Creates a topic in the community.

        A repeated key returns the topic that it created. Raises: Conflict for a key reused with other arguments.
        """
        try:
            stream = community_stream(community.id)
            id_ = await self._sequencer.commit(stream, CreateTopic(community, creator_id, title, key))
        except DuplicateRequest as duplicate:
            id_ = duplicate.result_id
        return await self.get(community.organization_id, id_)

    async def find(self, organization_id: str, id_: str) -> Topic | None:
        """Returns the organization's topic of that id, or None."""
        topic = await self._by_id.get(id_)
        return topic if topic is not None and topic.organization_id == organization_id else None

    async def get(self, organization_id: str, id_: str) -> Topic:
        """Returns the organization's topic of that id. Raises: NotFound."""
        topic = await self.find(organization_id, id_)
        if topic is None:
            raise NotFound("topic", id_)
        return topic

    async def find_many(self, ids: Collection[str]) -> Mapping[str, Topic]:
        """Returns those of the topics that exist, of any organization. Concurrent calls share one read."""
        return await self._by_id.find(ids)

    async def page(
        self, community_id: str, range_: TimelineRange, archived: bool | None = False
    ) -> TimelinePage[Topic]:
        """Returns a page of the community's topics, ordered by last activity. Threads are not among them.

        `archived` selects archived topics (True), topics that are not archived (False), or all (None).
        """
        filter_ = {"community": community_id, "thread.ts": None, **_BY_ARCHIVED[archived]}

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[Topic]:
            query = {**filter_, "last": {"$gte": low, "$lte": high}}
            order = 1 if ascending else -1
            sort = [("last", order), ("_id", order)]
            return [topic_record(row) for row in await self._mongo.find("topics", query, TOPIC_FIELDS, sort, limit)]

        return await read_page(range_, fetch, lambda topic: topic.last_activity)

    async def newest(self, community_ids: Collection[str], limit: int) -> dict[str, list[Topic]]:
        """Returns the most recently active topics of each community, at most `limit` of each.

        Archived topics and threads are not among them.
        """
        newest_first: list[Document] = [
            {"$sort": {"last": -1, "_id": -1}},
            {"$limit": limit},
            {"$project": TOPIC_FIELDS},
        ]
        filters = [{"community": each, "thread.ts": None, **_OPEN} for each in community_ids]
        rows = await self._mongo.aggregate_each("topics", [[{"$match": each}, *newest_first] for each in filters])
        topics: dict[str, list[Topic]] = {each: [] for each in community_ids}
        for row in rows:
            topics[row["community"]].append(topic_record(row))
        return topics

    async def rename(self, topic: Topic, title: str, moderator: Moderator) -> None:
        """Replaces the title. Idempotent."""
        await self._change(RenameTopic(moderator, topic.id, title, topic.created_at))

    async def set_archived(self, topic_id: str, is_archived: bool, moderator: Moderator) -> None:
        """Archives or unarchives a topic. Idempotent.

        After an archiving, no write to the topic or to its threads commits.
        """
        await self._change(SetTopicArchived(moderator, topic_id, is_archived))
        await wait_for_thread_commits(self._mongo, topic_id)

    async def set_slow_mode(self, topic_id: str, seconds: int, moderator: Moderator) -> None:
        """Sets the seconds between messages of one person; 0 ends slow mode. Idempotent."""
        await self._change(SetSlowMode(moderator, topic_id, seconds))

    async def _change(self, change: TopicSettingChange) -> None:
        await self._sequencer.commit(Stream("topic", change.topic_id), change)

    async def pins(self, topic_ids: Sequence[str]) -> Mapping[str, Sequence[MessageKey]]:
        """Returns the keys of the pinned messages of each topic that has any, the latest pin first."""
        return await self._pins.find(topic_ids)

    async def trending(
        self, organization_id: str, limit: int, filter_communities: CommunityFilter
    ) -> list[TrendingTopic]:
        """Returns the organization's topics by the decayed number of people who posted, highest first.

        Leaves out archived topics, and topics whose decayed number is at most MIN_TRENDING_PEOPLE, so that one person
        alone makes no trend. `filter_communities` selects the communities whose topics the viewer may see.
        """
        now_s = (await self._clock.now()).timestamp()
        query = {"org": organization_id, "trend": {"$gt": trend_of(MIN_TRENDING_PEOPLE, now_s)}, **_OPEN}
        trending: list[TrendingTopic] = []
        cursor = self._topics.find(query).sort("trend", -1).batch_size(TRENDING_CHUNK)
        try:
            while len(trending) < limit and (documents := await cursor.to_list(TRENDING_CHUNK)):
                visible = await filter_communities({document["community"] for document in documents})
                trending += [_trending_topic(each, now_s) for each in documents if each["community"] in visible]
        finally:
            await cursor.close()
        return trending[:limit]

    async def read_up_to(self, topic_id: str, user_id: str) -> Timestamp | None:
        """Returns the user's read mark in the topic, or None if the user has set none."""
        return (await self.read_marks([topic_id], user_id))[0]

    async def read_marks(self, topic_ids: Sequence[str], user_id: str) -> list[Timestamp | None]:
        """Returns for each topic the user's read mark, or None."""
        marks = await self._marks_by_id.find([(each, user_id) for each in topic_ids])
        return [marks.get((each, user_id)) for each in topic_ids]

    async def mark_read(self, topic_id: str, user_id: str, timestamp: int, head: int) -> bool:
        """Moves the read mark forward, but not past `head`, the timestamp of the topic's head.

        Returns whether the mark has moved.
        """
        id_: ReadMarkDocumentId = {"t": topic_id, "u": user_id}
        updated = await self._read_marks.update_one({"_id": id_}, move_mark(timestamp, head), upsert=True)
        return updated.modified_count == 1 or updated.upserted_id is not None

    async def unread_count(self, topic_id: str, last: int, user_id: str, blocked: frozenset[str]) -> int:
        """Returns the number of messages after the read mark, at most 100.

        The user's own messages, deleted messages and messages of blocked users do not count. `last` is the timestamp
        of the topic's head, read immediately before. If the read mark has reached it, no messages are counted.
        """
        return (await self.unread_counts([(topic_id, last)], user_id, blocked))[0]

    async def unread_counts(self, heads: Sequence[tuple[str, int]], user_id: str, blocked: frozenset[str]) -> list[int]:
        """Returns the unread count of each topic, given pairs of topic id and timestamp of the topic's head."""
        marks = await self.read_marks([topic_id for topic_id, _ in heads], user_id)
        return await self.unread_counts_after(marks, heads, user_id, blocked)

    async def unread_counts_after(
        self,
        marks: Sequence[Timestamp | None],
        heads: Sequence[tuple[str, int]],
        user_id: str,
        blocked: frozenset[str],
    ) -> list[int]:
        """Returns the unread count of each topic, given the user's read mark in each."""
        after = {id_: mark or 0 for (id_, last), mark in zip(heads, marks, strict=True) if mark is None or mark < last}
        pipelines = [_count_unread(id_, mark, [user_id, *blocked]) for id_, mark in after.items()]
        rows = await self._mongo.aggregate_each("messages", pipelines)
        counts = {row["_id"]: row["n"] for row in rows}
        return [
            counts.get(id_, 0) if mark is None or mark < last else 0
            for (id_, last), mark in zip(heads, marks, strict=True)
        ]

    async def by_id(self, ids: Iterable[str]) -> dict[str, Topic]:
        """Returns the topics of these ids that exist, of any organization, with one read."""
        return await self._load(list(set(ids)))

    async def _load(self, ids: Sequence[str]) -> dict[str, Topic]:
        documents: list[TopicDocument] = await self._mongo.find("topics", {"_id": {"$in": list(ids)}}, TOPIC_FIELDS)
        return {document["_id"]: topic_record(document) for document in documents}

    async def _load_pins(self, ids: Sequence[str]) -> dict[str, Sequence[MessageKey]]:
        query = {"_id": {"$in": list(ids)}}
        rows: list[TopicDocument] = await self._mongo.find("topics", query, {"pins": 1})
        return {row["_id"]: [MessageKey(row["_id"], pin["ts"]) for pin in row["pins"]] for row in rows if "pins" in row}

    async def _load_marks(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Timestamp]:
        ids: list[ReadMarkDocumentId] = [{"t": topic, "u": user} for topic, user in pairs]
        marks: list[ReadMarkDocument] = await self._mongo.find("read_marks", {"_id": {"$in": ids}})
        return {(mark["_id"]["t"], mark["_id"]["u"]): Timestamp(mark["ts"]) for mark in marks}


def _trending_topic(document: TopicDocument, now_s: float) -> TrendingTopic:
    rate = messages_per_minute(document.get("heat"), now_s)
    return TrendingTopic(topic_record(document), rate, recent_people(document["posters"], now_s))


def _count_unread(topic_id: str, mark: int, uncounted_authors: Sequence[str]) -> list[Document]:
    """Returns the pipeline that counts a topic's messages after the mark, up to UNREAD_CAP."""
    query = {
        "_id": {"$gt": {"t": topic_id, "ts": mark}, "$lte": {"t": topic_id, "ts": MAX_TIMESTAMP}},
        # An expression uses no index, so that MongoDB considers only the index by time.
        "$expr": {"$not": {"$in": ["$author", {"$literal": uncounted_authors}]}},
        "deleted_at": None,
    }
    return [{"$match": query}, {"$limit": UNREAD_CAP}, {"$group": {"_id": "$_id.t", "n": {"$sum": 1}}}]


def topic_record(document: TopicDocument) -> Topic:
    """Returns the record of a stored topic."""
    thread = document.get("thread")
    return Topic(
        id=document["_id"],
        organization_id=document["org"],
        community_id=document["community"],
        title=document["title"],
        created_at=document["created_at"],
        last_activity=Timestamp(document["last"]),
        slow_mode_seconds=document.get("slow_s", 0),
        archived_at=document.get("archived_at"),
        thread_parent=None if thread is None else MessageKey(thread["topic"], thread["ts"]),
    )
