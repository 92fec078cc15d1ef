"""The steps that add the terms of messages, posts, topics and names of releases without their search."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pymongo.errors import BulkWriteError

from storage.mongo import Document, Mongo
from storage.mongo.errors import DUPLICATE_KEY
from storage.mongo.text_index.entries import ContentKind, content_term, entry_terms, topic_term
from storage.mongo.text_index.names import search_terms
from storage.mongo.text_index.tokenizer import terms

BATCH = 1000

EntriesOfDocuments = Callable[[Mongo, Sequence[Document]], Awaitable[list[Document]]]
"""Returns the documents with the terms of texts."""


async def add_search_terms(mongo: Mongo) -> None:
    """Adds the terms of all messages and posts that have none. An interrupted run is continued by the next one."""
    await _add_terms(mongo, "messages", "message_terms", _of_messages)
    await _add_terms(mongo, "posts", "post_terms", _of_posts)


async def add_topic_terms(mongo: Mongo) -> None:
    """Adds the terms of all topics of communities that have none."""
    after_batch: Document = {}
    fields = dict.fromkeys(("created_at", "community", "title"), 1)
    of_communities: Document = {"direct": None, "thread": None}
    while topics := await mongo.find("topics", {**after_batch, **of_communities}, fields, [("_id", 1)], BATCH):
        entries = [_of_topic(topic) for topic in topics]
        await _insert(mongo, "topic_terms", entries)
        renamed = await mongo.find("topics", {"_id": {"$in": [topic["_id"] for topic in topics]}}, fields)
        await _correct(mongo, "topic_terms", entries, [_of_topic(topic) for topic in renamed])
        after_batch = {"_id": {"$gt": topics[-1]["_id"]}}


async def add_name_ends(mongo: Mongo) -> None:
    """Adds the strings by which names in scripts without spaces are found from each of their characters on."""
    after_batch: Document = {}
    fields = dict.fromkeys(("handle", "name", "search"), 1)
    not_erased: Document = {"erased_at": {"$exists": False}, "name": {"$exists": True}, "search": {"$exists": True}}
    while users := await mongo.find("users", {**after_batch, **not_erased}, fields, [("_id", 1)], BATCH):
        for user in users:
            found = search_terms(user["handle"], user["name"])
            if found != user["search"]:
                await _write_name_ends(mongo, user, found)
        after_batch = {"_id": {"$gt": users[-1]["_id"]}}


async def _write_name_ends(mongo: Mongo, user: Document, found: Sequence[str]) -> None:
    """Writes the strings, unless the name was changed or erased meanwhile.

    The user is written last: a migration that is killed before continues with this user.
    """
    id_, update = user["_id"], {"$set": {"search": found}}
    copies = {"org": id_["org"], "user": id_["id"], "search": user["search"]}
    await mongo["memberships"].update_many(copies, update)
    await mongo["users"].update_one({"_id": id_, "name": user["name"]}, update)


async def _add_terms(mongo: Mongo, texts: str, collection: str, entries: EntriesOfDocuments) -> None:
    after_batch: Document = {}
    while ids := [each["_id"] for each in await mongo.find(texts, after_batch, {"_id": 1}, [("_id", 1)], BATCH)]:
        written = await mongo.find(collection, {"_id": {"$gte": ids[0], "$lte": ids[-1]}}, {"_id": 1})
        known = {_key(each["_id"]) for each in written}
        missing = [id_ for id_ in ids if _key(id_) not in known]
        if missing:
            inserted = await entries(mongo, await _read(mongo, texts, missing))
            await _insert(mongo, collection, inserted)
            await _correct(mongo, collection, inserted, await entries(mongo, await _read(mongo, texts, missing)))
        after_batch = {"_id": {"$gt": ids[-1]}}


async def _read(mongo: Mongo, texts: str, ids: Sequence[Document]) -> list[Document]:
    found: list[Document] = await mongo.find(texts, {"_id": {"$in": list(ids)}})
    return found


async def _insert(mongo: Mongo, collection: str, entries: Sequence[Document]) -> None:
    """Inserts the entries, except those that a process of this release has just written."""
    try:
        await mongo[collection].insert_many(entries, ordered=False)
    except BulkWriteError as error:
        if any(each["code"] != DUPLICATE_KEY for each in (error.details or {}).get("writeErrors", ())):
            raise


async def _correct(mongo: Mongo, collection: str, inserted: Sequence[Document], current: Sequence[Document]) -> None:
    """Corrects the terms of texts that a process of the last release has changed meanwhile, without their terms."""
    current_terms = {_key(entry["_id"]): entry["terms"] for entry in current}
    for entry in inserted:
        found = current_terms.get(_key(entry["_id"]), [])
        if found != entry["terms"]:
            await mongo[collection].update_one(
                {"_id": entry["_id"], "terms": entry["terms"]}, {"$set": {"terms": found}}
            )


async def _of_messages(mongo: Mongo, messages: Sequence[Document]) -> list[Document]:
    ids = {message["_id"]["t"] for message in messages}
    topics = await mongo.find("topics", {"_id": {"$in": list(ids)}}, {"community": 1})
    communities = {topic["_id"]: topic["community"] for topic in topics}
    return [
        {
            "_id": message["_id"],
            "place": communities[message["_id"]["t"]],
            "terms": _terms(
                message,
                topic_term(message["_id"]["t"]),
                *_content(message, "stamp", ContentKind.STAMP),
                *_content(message, "attachments", ContentKind.FILE),
            ),
        }
        for message in messages
        if message["_id"]["t"] in communities
    ]


async def _of_posts(_mongo: Mongo, posts: Sequence[Document]) -> list[Document]:
    return [{"_id": post["_id"], "terms": _terms(post, *_media(post))} for post in posts]


def _of_topic(topic: Document) -> Document:
    id_ = {"t": topic["_id"], "ts": round(topic["created_at"].timestamp() * 1000) * 1000}
    return {"_id": id_, "place": topic["community"], "terms": terms(topic["title"])}


def _media(post: Document) -> list[str]:
    return [content_term(ContentKind.MEDIA)] if post.get("media") or post.get("attachments") else []


def _terms(text: Document, *filters: str) -> list[str]:
    return [] if text.get("deleted_at") is not None else entry_terms(text["author"], text["text"], *filters)


def _content(text: Document, name: str, content: ContentKind) -> list[str]:
    return [content_term(content)] if text.get(name) else []


def _key(id_: Document) -> tuple[Any, ...]:
    return tuple(id_.values())
