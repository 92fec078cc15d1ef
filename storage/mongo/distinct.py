"""Which values a field has among some documents, for the least processor time where there are few (ADR 2)."""

from typing import Any

from storage.mongo import Document, Mongo

FEW = 1000


async def values_among(mongo: Mongo, collection: str, field: str, wanted: Document) -> set[Any]:
    """The field's values in the documents that are wanted; a dot leads into an embedded document."""
    outer, _, inner = field.partition(".")
    fields: Document = {field: 1} if outer == "_id" else {field: 1, "_id": 0}
    rows = await mongo.find(collection, wanted, fields, limit=FEW)
    if len(rows) == FEW:
        # There may be very many with the same value, which MongoDB then skips.
        return set(await mongo[collection].distinct(field, wanted))
    return {row[outer][inner] if inner else row[outer] for row in rows}
