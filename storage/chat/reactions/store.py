"""Reads reactions to messages as a viewer sees them, the users of one emoji, and the reactions that a user received."""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple

from pymongo.asynchronous.collection import AsyncCollection

from storage.chat.reactions.documents import ReactionDocument, ReactionDocumentId, ReceivedReactionDocument
from storage.chat.records import Message, Reaction, ReceivedReaction
from storage.ids import MessageKey
from storage.mongo import Document, Mongo
from storage.mongo.batch_loader import BatchLoader
from storage.mongo.distinct import distinct_values
from storage.timeline import TimelinePage, TimelineRange, Timestamp, read_page


class ViewerBlocks(NamedTuple):
    """A viewer and the users whom the viewer blocked.

    `viewer_id` is None if one result serves several viewers, none of whom has blocked somebody.
    """

    viewer_id: str | None
    blocked: frozenset[str]

    @property
    def user_ids(self) -> list[str]:
        """The users whose reactions must be read."""
        return list(self.blocked if self.viewer_id is None else (self.viewer_id, *self.blocked))


_PageKey = tuple[ViewerBlocks, str, tuple[int, ...]]
"""The viewer and the blocked users, a topic's id, and the timestamps of a page of its messages."""

_ReactionIds = dict[int, list[ReactionDocumentId]]
"""Reactions to messages of one topic, by the timestamp of the message."""


class _UsersKey(NamedTuple):
    """One emoji of one message, the maximum number of its users to read, and the blocked users to leave out."""

    message: MessageKey
    emoji: str
    limit: int
    blocked: frozenset[str]


TopicFilter = Callable[[set[str]], Awaitable[set[str]]]
"""Returns those of the topics that the viewer may see."""

MAX_PAGES = 100
"""Maximum number of pages, each of at most a thousand messages, whose reactions one query reads."""


class ReactionStore:
    """Reads reactions. Reactions of users whom the viewer blocked are left out of lists and counts."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._reactions: AsyncCollection[ReactionDocument] = mongo["reactions"]
        self._received: AsyncCollection[ReceivedReactionDocument] = mongo["received_reactions"]
        self._ids: BatchLoader[_PageKey, _ReactionIds] = BatchLoader(self._load, MAX_PAGES)
        self._users: BatchLoader[_UsersKey, list[str]] = BatchLoader(self._load_users)

    async def of_messages(self, messages: Sequence[Message], viewer_blocks: ViewerBlocks) -> list[list[Reaction]]:
        """Returns the reactions to each message, in the order of first use."""
        if not viewer_blocks.user_ids:
            return [reactions_without_viewer(message) for message in messages]
        timestamps: defaultdict[str, list[int]] = defaultdict(list)
        for message in messages:
            if message.reaction_counts:
                timestamps[message.topic_id].append(message.timestamp)
        keys = [(viewer_blocks, topic_id, tuple(each)) for topic_id, each in timestamps.items()]
        ids = dict(zip(timestamps, await self._ids.get_many(keys) if keys else (), strict=True))
        return [
            _reactions(message, viewer_blocks, ids[message.topic_id].get(message.timestamp, ()))
            if message.reaction_counts
            else []
            for message in messages
        ]

    async def possible_reactors(self, messages: Sequence[Message], user_ids: Collection[str]) -> set[str]:
        """Returns those of the users (at most 1000) who reacted to any of the messages.

        The result may also hold users who did not react.
        """
        keys = [message.key for message in messages if message.reaction_counts]
        topics, timestamps = {key.topic_id for key in keys}, [key.timestamp for key in keys]
        # A timestamp may also match a message of another of these topics. This can add users, but omits none.
        query = {"_id.t": {"$in": list(topics)}, "_id.ts": {"$in": timestamps}, "_id.u": {"$in": list(user_ids)}}
        return await distinct_values(self._mongo, "reactions", "_id.u", query)

    async def users(self, key: MessageKey, emoji: str, limit: int, blocked: frozenset[str]) -> list[str]:
        """Returns the ids of the users who reacted with the emoji, earliest first."""
        return await self._users.get(_UsersKey(key, emoji, limit, blocked)) or []

    async def received(
        self,
        organization_id: str,
        user_id: str,
        range_: TimelineRange,
        hidden: frozenset[str],
        filter_topics: TopicFilter,
    ) -> TimelinePage[ReceivedReaction]:
        """Returns a page of the reactions to the user's messages, by the time of reception.

        Leaves out reactions of the users `hidden`. `filter_topics` selects the topics that the user may see. Reactions
        in other topics are left out.
        """

        async def fetch_visible(low: int, high: int, ascending: bool, limit: int) -> list[ReceivedReaction]:
            reactions: list[ReceivedReaction] = []
            while len(reactions) < limit:
                rows = await fetch(low, high, ascending, limit)
                topic_ids = await filter_topics({row.message.topic_id for row in rows})
                reactions += [row for row in rows if row.message.topic_id in topic_ids]
                if len(rows) < limit:
                    break
                low, high = (rows[-1].timestamp + 1, high) if ascending else (low, rows[-1].timestamp - 1)
            return reactions[:limit]

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[ReceivedReaction]:
            owner = {"o": organization_id, "u": user_id}
            query: Document = {"_id": {"$gte": {**owner, "ts": low}, "$lte": {**owner, "ts": high}}}
            if hidden:
                query["from"] = {"$nin": list(hidden)}
            cursor = self._received.find(query).sort("_id", 1 if ascending else -1).limit(limit)
            return [_received_record(document) for document in await cursor.to_list(None)]

        return await read_page(range_, fetch_visible, lambda received: received.timestamp)

    async def _load(self, keys: Sequence[_PageKey]) -> dict[_PageKey, _ReactionIds]:
        """Reads the reactions of the viewers and of users whom they blocked, and possibly of other users."""
        queries = [
            {"_id.t": topic_id, "_id.ts": {"$in": timestamps}, "_id.u": {"$in": viewer_blocks.user_ids}}
            for viewer_blocks, topic_id, timestamps in keys
        ]
        reactions: list[ReactionDocument] = await self._mongo.find("reactions", {"$or": queries}, {"_id": 1})
        by_topic: defaultdict[str, defaultdict[int, list[ReactionDocumentId]]] = defaultdict(lambda: defaultdict(list))
        for reaction in reactions:
            id_ = reaction["_id"]
            by_topic[id_["t"]][id_["ts"]].append(id_)
        return {key: by_topic[key[1]] for key in keys}

    async def _load_users(self, keys: Sequence[_UsersKey]) -> dict[_UsersKey, list[str]]:
        by_options: defaultdict[tuple[int, frozenset[str]], list[_UsersKey]] = defaultdict(list)
        for key in keys:
            by_options[key.limit, key.blocked].append(key)
        users_by_key: dict[_UsersKey, list[str]] = {}
        for (limit, blocked), group in by_options.items():
            users_by_key |= await self._first_users(group, limit, blocked)
        return users_by_key

    async def _first_users(
        self, keys: Sequence[_UsersKey], limit: int, blocked: frozenset[str]
    ) -> dict[_UsersKey, list[str]]:
        """Reads the first users of each key.

        The result may also hold the message of one key with the emoji of another key.
        """
        timestamps: defaultdict[str, set[int]] = defaultdict(set)
        for key in keys:
            timestamps[key.message.topic_id].add(key.message.timestamp)
        emojis = list({key.emoji for key in keys})
        query: Document = {
            "$or": [{"_id.t": topic, "_id.ts": {"$in": list(each)}} for topic, each in timestamps.items()],
            "_id.e": {"$in": emojis},
        }
        if blocked:
            query["_id.u"] = {"$nin": list(blocked)}
        first = {"$topN": {"n": limit, "sortBy": {"at": 1}, "output": "$_id.u"}}
        group = {"_id": {"t": "$_id.t", "ts": "$_id.ts", "e": "$_id.e"}, "users": first}
        cursor = await self._mongo["reactions"].aggregate([{"$match": query}, {"$group": group}])
        return {
            _UsersKey(MessageKey(each["_id"]["t"], each["_id"]["ts"]), each["_id"]["e"], limit, blocked): each["users"]
            for each in await cursor.to_list(None)
        }


def reactions_without_viewer(message: Message) -> list[Reaction]:
    """Returns the reactions as seen by a viewer who did not react and blocked nobody."""
    key = message.key
    return [Reaction(key, emoji, count, False) for emoji, count in message.reaction_counts]


def _reactions(message: Message, viewer_blocks: ViewerBlocks, ids: Sequence[ReactionDocumentId]) -> list[Reaction]:
    if not ids:
        return reactions_without_viewer(message)
    key = message.key
    own_emojis = {each["e"] for each in ids if each["u"] == viewer_blocks.viewer_id}
    if not viewer_blocks.blocked:
        return [Reaction(key, emoji, count, emoji in own_emojis) for emoji, count in message.reaction_counts]
    hidden = Counter(each["e"] for each in ids if each["u"] in viewer_blocks.blocked)
    return [
        Reaction(key, emoji, count - hidden[emoji], emoji in own_emojis)
        for emoji, count in message.reaction_counts
        if count > hidden[emoji]
    ]


def _received_record(document: ReceivedReactionDocument) -> ReceivedReaction:
    message = MessageKey(document["topic"], document["ts"])
    return ReceivedReaction(Timestamp(document["_id"]["ts"]), document["emoji"], document["from"], message)
