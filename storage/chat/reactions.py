"""Reading reactions: as one viewer sees them, who reacted, and what a user received."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

from storage.batch_loader import BatchLoader
from storage.chat.records import Message, Reaction, ReceivedReaction
from storage.mongo import Document, Mongo
from storage.mongo.distinct import values_among
from storage.references import MessageKey
from storage.timeline import Page, Range, Timestamp, read_page


class Visibility(NamedTuple):
    """The viewer whose own reactions are marked, and the users whose reactions are hidden.

    `viewer_id` is None for several viewers, none of whom reacted.
    """

    viewer_id: str | None
    blocked: frozenset[str]

    @property
    def user_ids(self) -> list[str]:
        """The users whose reactions must be read."""
        return list(self.blocked if self.viewer_id is None else (self.viewer_id, *self.blocked))


_Asked = tuple[Visibility, str, tuple[int, ...]]
"""The visibility, a topic's id, and the timestamps of its messages."""

_Rows = dict[int, list[Document]]
"""Of one topic, by timestamp."""

MAX_PAGES = 100
"""So many are looked for at once, of at most a thousand messages each."""


class ReactionStore:
    """Reactions under messages. Those of blocked users do not exist for the viewer, not even in the counts."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._reactions = mongo["reactions"]
        self._rows: BatchLoader[_Asked, _Rows] = BatchLoader(self._load, MAX_PAGES)

    async def of_messages(self, messages: Sequence[Message], visibility: Visibility) -> list[list[Reaction]]:
        """Each message's reactions in the order of first use."""
        if not visibility.user_ids:
            return [reactions_of_others(message) for message in messages]
        timestamps: defaultdict[str, list[int]] = defaultdict(list)
        for message in messages:
            if message.reaction_counts:
                timestamps[message.topic_id].append(message.timestamp)
        asked = [(visibility, topic_id, tuple(each)) for topic_id, each in timestamps.items()]
        rows = dict(zip(timestamps, await self._rows.get_many(asked) if asked else (), strict=True))
        return [
            _reactions(message, visibility, rows[message.topic_id].get(message.timestamp, ()))
            if message.reaction_counts
            else []
            for message in messages
        ]

    async def reacting_among(self, messages: Sequence[Message], user_ids: Collection[str]) -> set[str]:
        """Those of the users, at most 1000, who reacted to any of the messages."""
        keys = [message.key for message in messages if message.reaction_counts]
        topics, timestamps = {key.topic_id for key in keys}, [key.timestamp for key in keys]
        # Timestamps of another topic find some in vain, never too few.
        wanted = {"_id.t": {"$in": list(topics)}, "_id.ts": {"$in": timestamps}, "_id.u": {"$in": list(user_ids)}}
        return await values_among(self._mongo, "reactions", "_id.u", wanted)

    async def users(self, key: MessageKey, emoji: str, limit: int, blocked: frozenset[str]) -> list[str]:
        """Ids of those who reacted so, the first ones first."""
        wanted: Document = {"_id.t": key.topic_id, "_id.ts": key.timestamp, "_id.e": emoji}
        if blocked:
            wanted["_id.u"] = {"$nin": list(blocked)}
        cursor = self._reactions.find(wanted).sort("at", 1).limit(limit)
        return [row["_id"]["u"] for row in await cursor.to_list(None)]

    async def received(
        self, organization_id: str, user_id: str, asked: Range, blocked: frozenset[str]
    ) -> Page[ReceivedReaction]:
        """Who reacted to the user's messages, as a timeline of the user's own."""

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[ReceivedReaction]:
            owner = {"o": organization_id, "u": user_id}
            wanted: Document = {"_id": {"$gte": {**owner, "ts": low}, "$lte": {**owner, "ts": high}}}
            if blocked:
                wanted["from"] = {"$nin": list(blocked)}
            cursor = self._mongo["received_reactions"].find(wanted).sort("_id", 1 if ascending else -1).limit(limit)
            return [_received(row) for row in await cursor.to_list(None)]

        return await read_page(asked, fetch, lambda received: received.timestamp)

    async def _load(self, asked: Sequence[_Asked]) -> dict[_Asked, _Rows]:
        """The rows of the viewer and of those they blocked, and perhaps others' too; one read."""
        wanted = [
            {"_id.t": topic_id, "_id.ts": {"$in": timestamps}, "_id.u": {"$in": visibility.user_ids}}
            for visibility, topic_id, timestamps in asked
        ]
        rows: defaultdict[str, defaultdict[int, list[Document]]] = defaultdict(lambda: defaultdict(list))
        for row in await self._mongo.find("reactions", {"$or": wanted}, {"_id": 1}):
            id_ = row["_id"]
            rows[id_["t"]][id_["ts"]].append(id_)
        return {each: rows[each[1]] for each in asked}


def reactions_of_others(message: Message) -> list[Reaction]:
    """For somebody who blocked nobody and is not among those who reacted."""
    key = message.key
    return [Reaction(key, emoji, count, False) for emoji, count in message.reaction_counts]


def _reactions(message: Message, visibility: Visibility, rows: Sequence[Document]) -> list[Reaction]:
    if not rows:
        return reactions_of_others(message)
    key = message.key
    mine = {row["e"] for row in rows if row["u"] == visibility.viewer_id}
    if not visibility.blocked:
        return [Reaction(key, emoji, count, emoji in mine) for emoji, count in message.reaction_counts]
    hidden = Counter(row["e"] for row in rows if row["u"] in visibility.blocked)
    return [
        Reaction(key, emoji, count - hidden[emoji], emoji in mine)
        for emoji, count in message.reaction_counts
        if count > hidden[emoji]
    ]


def _received(row: Document) -> ReceivedReaction:
    return ReceivedReaction(Timestamp(row["_id"]["ts"]), row["emoji"], row["from"], MessageKey(row["topic"], row["ts"]))
