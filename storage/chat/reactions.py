"""Reading reactions: as one viewer sees them, who reacted, and what a user received."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

from storage.among import values_among
from storage.chat.records import Message, MessageKey, Reaction, ReceivedReaction
from storage.gather import Gather
from storage.mongo import Document, Mongo
from storage.timeline import Page, Range, Timestamp, read_page


class Sight(NamedTuple):
    """Who looks, and whom they blocked."""

    viewer_id: str
    blocked: frozenset[str]


_Asked = tuple[Sight, MessageKey]


class ReactionStore:
    """Reactions under messages. Those of blocked users do not exist for the viewer, not even in the counts."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._reactions = mongo["reactions"]
        self._rows: Gather[_Asked, list[Document]] = Gather(self._load)

    async def of_messages(self, messages: Sequence[Message], sight: Sight) -> list[list[Reaction]]:
        """Each message's reactions in the order of first use."""
        keys = [message.key if message.reaction_counts else None for message in messages]
        asked = [(sight, key) for key in keys if key is not None]
        found = await self._rows.find(asked) if asked else {}
        return [
            [] if key is None else _reactions(message, key, sight, found.get((sight, key), ()))
            for message, key in zip(messages, keys, strict=True)
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

    async def _load(self, asked: Sequence[_Asked]) -> dict[_Asked, list[Document]]:
        """The rows of the viewer and of those they blocked, for each message, and perhaps more; one read."""
        groups: defaultdict[tuple[Sight, str], list[int]] = defaultdict(list)
        for sight, key in asked:
            groups[sight, key.topic_id].append(key.timestamp)
        wanted = [
            {"_id.t": topic_id, "_id.ts": {"$in": timestamps}, "_id.u": {"$in": [sight.viewer_id, *sight.blocked]}}
            for (sight, topic_id), timestamps in groups.items()
        ]
        rows: defaultdict[MessageKey, list[Document]] = defaultdict(list)
        for row in await self._mongo.find("reactions", {"$or": wanted}, {"_id": 1}):
            rows[MessageKey(row["_id"]["t"], row["_id"]["ts"])].append(row["_id"])
        return {(sight, key): rows[key] for sight, key in asked if key in rows}


def reactions_of_others(message: Message) -> list[Reaction]:
    """For somebody who blocked nobody and is not among those who reacted."""
    key = message.key
    return [Reaction(key, emoji, count, False) for emoji, count in message.reaction_counts]


def _reactions(message: Message, key: MessageKey, sight: Sight, rows: Sequence[Document]) -> list[Reaction]:
    if not rows:
        return reactions_of_others(message)
    mine = {row["e"] for row in rows if row["u"] == sight.viewer_id}
    if not sight.blocked:
        return [Reaction(key, emoji, count, emoji in mine) for emoji, count in message.reaction_counts]
    hidden = Counter(row["e"] for row in rows if row["u"] in sight.blocked)
    return [
        Reaction(key, emoji, count - hidden[emoji], emoji in mine)
        for emoji, count in message.reaction_counts
        if count > hidden[emoji]
    ]


def _received(row: Document) -> ReceivedReaction:
    return ReceivedReaction(Timestamp(row["_id"]["ts"]), row["emoji"], row["from"], MessageKey(row["topic"], row["ts"]))
