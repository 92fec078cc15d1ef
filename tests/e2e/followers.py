"""Creates many followers of an author at once, and counts items of their home feeds. Benchmarks use it, too."""

from collections import Counter

from storage.mongo import Document, Mongo

AT_ONCE = 5000


async def add_followers(mongo: Mongo, organization_id: str, author_id: str, count: int) -> list[str]:
    """Inserts follows as the product stores them, without one mutation each."""
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
    for start in range(0, count, AT_ONCE):
        await mongo["follows"].insert_many(rows[start : start + AT_ONCE], ordered=False)
    author = {"_id": {"org": organization_id, "id": author_id}}
    await mongo["users"].update_one(author, {"$inc": {"followers": count}})
    return names


async def holders(mongo: Mongo, organization_id: str, timestamp: int) -> Counter[str]:
    """Returns how often each reader's feed holds the post."""
    cursor = mongo["feed_items"].find({"_id.o": organization_id, "_id.ts": timestamp}, {"_id": 1})
    return Counter([row["_id"]["u"] async for row in cursor])
