"""Inserts many followers of an author, and counts the copies of a post in home feeds. Benchmarks use it, too."""

from collections import Counter

from storage.mongo import Document, Mongo

BATCH_SIZE = 5000


async def add_followers(mongo: Mongo, organization_id: str, author_id: str, count: int) -> list[str]:
    """Inserts follows directly into MongoDB, and returns the followers' ids."""
    names = [f"follower-{n:06}" for n in range(count)]
    rows: list[Document] = [
        {
            "_id": {"o": organization_id, "f": name, "e": author_id},
            "org": organization_id,
            "follower": name,
            "followee": author_id,
        }
        for name in names
    ]
    for start in range(0, count, BATCH_SIZE):
        await mongo["follows"].insert_many(rows[start : start + BATCH_SIZE], ordered=False)
    author = {"_id": {"org": organization_id, "id": author_id}}
    await mongo["users"].update_one(author, {"$inc": {"followers": count}})
    return names


async def copies_by_reader(mongo: Mongo, organization_id: str, timestamp: int) -> Counter[str]:
    """Returns the number of copies of the post in each reader's feed."""
    cursor = mongo["feed_items"].find({"_id.o": organization_id, "_id.ts": timestamp}, {"_id": 1})
    return Counter([item["_id"]["u"] async for item in cursor])
