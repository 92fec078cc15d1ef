"""The step that adds the first post of their conversation to replies of releases without it."""

from pymongo import UpdateOne

from storage.mongo import Document, Mongo

BATCH = 1000


async def add_conversation_roots(mongo: Mongo) -> None:
    """Adds the first post to each reply that lacks it. Posts are read by age, so the post above comes first."""
    after_batch: Document = {}
    while posts := await mongo.find("posts", after_batch, {"parent": 1}, [("_id", 1)], BATCH):
        replies = [post for post in posts if post.get("parent", {}).get("kind") == "reply"]
        missing = [reply for reply in replies if "root" not in reply["parent"]]
        if missing:
            await _add_roots(mongo, missing)
        after_batch = {"_id": {"$gt": posts[-1]["_id"]}}


async def _add_roots(mongo: Mongo, replies: list[Document]) -> None:
    """Adds the roots to replies in the order of their ids. A parent may be among the replies."""
    ids = [_parent_id(reply) for reply in replies]
    parents = await mongo.find("posts", {"_id": {"$in": ids}}, {"parent": 1})
    roots = {tuple(each["_id"].values()): _root(each) for each in parents}
    updates = []
    for reply in replies:
        parent_id = tuple(_parent_id(reply).values())
        root = roots.get(parent_id, reply["parent"]["ts"])
        roots[tuple(reply["_id"].values())] = root
        lacking = {"_id": reply["_id"], "parent.kind": "reply", "parent.root": {"$exists": False}}
        updates.append(UpdateOne(lacking, {"$set": {"parent.root": root}}))
    await mongo["posts"].bulk_write(updates, ordered=False)


def _parent_id(reply: Document) -> Document:
    return {"o": reply["_id"]["o"], "ts": reply["parent"]["ts"]}


def _root(post: Document) -> int:
    """Returns the first post above a post; for others than replies, the post itself."""
    parent = post.get("parent", {})
    is_reply = parent.get("kind") == "reply"
    return int(parent.get("root", parent["ts"]) if is_reply else post["_id"]["ts"])
