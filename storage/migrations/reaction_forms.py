"""The step that stores each reaction under the fully qualified form of its emoji.

Earlier releases stored an emoji as it was sent, so a message had two reactions that look the same. A person who reacted
with two forms of one emoji has reacted once.
"""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from storage.mongo import Document, Mongo, Session
from storage.mongo.text_index.emojis import qualified_emoji

BATCH = 100
"""Reactions that are read at a time. At most as many are changed in one transaction."""

DEADLINE_S = 60.0
"""How long a transaction is repeated that conflicts with posts to a busy topic."""

Join = Callable[[Mongo, Sequence[Document], Session], Awaitable[None]]
"""Joins reactions to one message or post, in a transaction. Takes their ids in earlier forms."""


async def join_reaction_forms(mongo: Mongo) -> None:
    """Joins the reactions to all messages and posts. An interrupted run is continued by the next one."""
    await _join_all(mongo, "reactions", _join_of_message)
    await _join_all(mongo, "post_reactions", _join_of_post)


async def _join_all(mongo: Mongo, collection: str, join: Join) -> None:
    after_batch: Document = {}
    while ids := [each["_id"] for each in await mongo.find(collection, after_batch, {"_id": 1}, [("_id", 1)], BATCH)]:
        groups: defaultdict[tuple[Any, ...], list[Document]] = defaultdict(list)
        for id_ in ids:
            if _qualified(id_["e"]) != id_["e"]:
                groups[tuple(_subject(id_).values())].append(id_)
        for group in groups.values():
            await mongo.transact(partial(join, mongo, group), DEADLINE_S)
        after_batch = {"_id": {"$gt": ids[-1]}}


async def _join_of_message(mongo: Mongo, ids: Sequence[Document], session: Session) -> None:
    """Joins reactions to a message and those that its author received, and emits that the reactions changed."""
    topic = await _allocate_event(mongo, ids[0]["t"], session)
    joined = await _join(mongo, "reactions", "messages", ids, session)
    for id_, is_duplicate in joined:
        await _join_received(mongo, id_, is_duplicate, session)
    rows = {"kind": "Reaction", "ref": {"$in": list(ids)}}
    async for row in mongo["outbox"].find(rows, {"ref": 1}, session=session):
        await mongo["outbox"].update_one({"_id": row["_id"]}, {"$set": {"ref": _renamed(row["ref"])}}, session=session)
    if topic is not None:
        event = {"_id": {"s": f"topic:{topic['_id']}", "n": topic["n"]}, "kind": "ReactionsChanged"}
        await mongo["events"].insert_one({**event, "ref": ids[0]["ts"], "at": topic["committed_at"]}, session=session)


async def _join_of_post(mongo: Mongo, ids: Sequence[Document], session: Session) -> None:
    """Joins reactions to a post, and renames the emoji in the notifications of its author."""
    for id_, _ in await _join(mongo, "post_reactions", "posts", ids, session):
        post = await mongo["posts"].find_one({"_id": _subject(id_)}, {"author": 1}, session=session)
        if post is not None:
            about = f"REACTION/{id_['u']}/None/None/{id_['ts']}/None"
            notification = {"_id.o": id_["o"], "_id.u": post["author"], "about": about, "emoji": id_["e"]}
            update = {"$set": {"emoji": _qualified(id_["e"])}}
            await mongo["notifications"].update_many(notification, update, session=session)


async def _allocate_event(mongo: Mongo, topic_id: str, session: Session) -> Document | None:
    """Locks the head of a topic's stream first, as its writers do, and returns it with the number of a new event."""
    update = [{"$set": {"n": {"$add": ["$n", 1]}, "committed_at": "$$NOW"}}]
    head: Document | None = await mongo["topics"].find_one_and_update(
        {"_id": topic_id}, update, {"n": 1, "committed_at": 1}, return_document=True, session=session
    )
    return head


async def _join(
    mongo: Mongo, collection: str, subjects: str, ids: Sequence[Document], session: Session
) -> list[tuple[Document, bool]]:
    """Renames or removes the reactions, and counts them. Returns their ids, and whether each was a duplicate."""
    wanted = {"_id": {"$in": [form for id_ in ids for form in (id_, _renamed(id_))]}}
    found = {_key(each["_id"]): each async for each in mongo[collection].find(wanted, session=session)}
    joined: list[tuple[Document, bool]] = []
    for id_ in ids:
        reaction = found.pop(_key(id_), None)
        if reaction is not None:
            new_id = _renamed(id_)
            joined.append((id_, _key(new_id) in found))
            earlier = found.setdefault(_key(new_id), {"_id": new_id, "at": reaction["at"]})
            earlier["at"] = min(earlier["at"], reaction["at"])
            await mongo[collection].replace_one({"_id": new_id}, earlier, upsert=True, session=session)
    if joined:
        await mongo[collection].delete_many({"_id": {"$in": [id_ for id_, _ in joined]}}, session=session)
        await _count(mongo, subjects, joined, session)
    return joined


async def _count(mongo: Mongo, subjects: str, joined: Sequence[tuple[Document, bool]], session: Session) -> None:
    """Corrects the counts of a message or post. A form has the place of the first form of its emoji."""
    subject = await mongo[subjects].find_one({"_id": _subject(joined[0][0])}, {"reactions": 1}, session=session)
    if subject is None or "reactions" not in subject:
        return
    emojis = [form for each in subject["reactions"] for form in (_qualified(each["emoji"]), each["emoji"])]
    counts = Counter(dict.fromkeys(emojis, 0))
    counts.update({each["emoji"]: each["count"] for each in subject["reactions"]})
    for id_, is_duplicate in joined:
        counts[id_["e"]] -= 1
        counts[_qualified(id_["e"])] += 0 if is_duplicate else 1
    reactions = [{"emoji": emoji, "count": count} for emoji, count in counts.items() if count > 0]
    await mongo[subjects].update_one({"_id": subject["_id"]}, {"$set": {"reactions": reactions}}, session=session)


async def _join_received(mongo: Mongo, id_: Document, is_duplicate: bool, session: Session) -> None:
    """Renames or removes a received reaction and its notification, which has the same id."""
    query = {"topic": id_["t"], "ts": id_["ts"], "emoji": id_["e"], "from": id_["u"]}
    received = await mongo["received_reactions"].find_one(query, session=session)
    if received is None:
        return
    same = {"_id": received["_id"]}
    if is_duplicate:
        await mongo["received_reactions"].delete_one(same, session=session)
        await mongo["notifications"].delete_one(same, session=session)
        return
    emoji, about = _qualified(id_["e"]), str(tuple(_renamed(id_).values()))
    await mongo["received_reactions"].update_one(same, {"$set": {"emoji": emoji}}, session=session)
    await mongo["notifications"].update_one(same, {"$set": {"emoji": emoji, "about": about}}, session=session)


def _qualified(emoji: str) -> str:
    """Returns the form under which an emoji is stored. Names of stamps and unlisted sequences stay as they are."""
    return qualified_emoji(emoji) or emoji


def _renamed(id_: Document) -> Document:
    return {**id_, "e": _qualified(id_["e"])}


def _subject(id_: Document) -> Document:
    """Returns the `_id` of the message or post."""
    return {name: value for name, value in id_.items() if name not in ("e", "u")}


def _key(id_: Document) -> tuple[Any, ...]:
    return tuple(id_.values())
