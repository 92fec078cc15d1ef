"""Generated secrets that all processes share, stored in MongoDB."""

import secrets
from typing import TypedDict

from pymongo import ReturnDocument

from storage.mongo import Mongo

SECRET_BYTES = 32


class SecretDocument(TypedDict):
    """A shared secret, in `secrets`. Never changed or deleted."""

    _id: str
    """Name of the secret."""

    value: bytes
    """32 random bytes."""


async def shared_secret(mongo: Mongo, name: str) -> bytes:
    """Returns the 32 bytes of the secret with this name, the same in each process. The first call generates them."""
    new_secret = {"$setOnInsert": {"value": secrets.token_bytes(SECRET_BYTES)}}
    document: SecretDocument | None = await mongo["secrets"].find_one_and_update(
        {"_id": name}, new_secret, upsert=True, return_document=ReturnDocument.AFTER
    )
    assert document is not None
    return bytes(document["value"])
