"""Distinct values of a field. Reads small results without `distinct`, which takes more processor time (ADR 2)."""

from typing import Any

from storage.mongo import Document, Mongo

MAX_DOCUMENTS = 1000


async def distinct_values(mongo: Mongo, collection: str, field: str, query: Document) -> set[Any]:
    """Returns the distinct values of `field`, which may be "outer.inner", in the matching documents."""
    outer, _, inner = field.partition(".")
    projection: Document = {field: 1} if outer == "_id" else {field: 1, "_id": 0}
    documents = await mongo.find(collection, query, projection, limit=MAX_DOCUMENTS)
    if len(documents) == MAX_DOCUMENTS:
        # Many documents may share a value. MongoDB's `distinct` skips them in the index.
        return set(await mongo[collection].distinct(field, query))
    return {document[outer][inner] if inner else document[outer] for document in documents}
