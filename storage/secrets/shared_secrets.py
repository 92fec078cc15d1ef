"""Secrets of our own making that all processes share, made once and kept in MongoDB."""

import secrets

from pymongo import ReturnDocument

from storage.mongo import Document, Mongo

SECRET_BYTES = 32


async def shared_secret(mongo: Mongo, name: str) -> bytes:
    """The secret of that name: the same 32 random bytes for every process of this database."""
    fresh = {"$setOnInsert": {"value": secrets.token_bytes(SECRET_BYTES)}}
    document: Document | None = await mongo["secrets"].find_one_and_update(
        {"_id": name}, fresh, upsert=True, return_document=ReturnDocument.AFTER
    )
    assert document is not None
    return bytes(document["value"])
