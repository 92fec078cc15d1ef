"""Idempotency keys: the same key from the same user for the same mutation returns what it made (docs/semantics.md, 1).

A key is stored in the transaction that does the work, so a failed try stores none. Kept for 24 hours.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from storage.errors import BadUserInput, Conflict
from storage.mongo import Document, Mongo, Session

KEPT_S = 24 * 3600
MAX_LENGTH = 200


class AlreadyDone(Exception):
    """The key was used before with the same arguments. `id` is what it made; read it as it is now."""

    def __init__(self, id_: str) -> None:
        super().__init__(id_)
        self.id = id_


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """Who did what under which key, and a digest of the arguments."""

    organization_id: str
    user_id: str
    mutation: str
    key: str
    digest: str

    @property
    def id(self) -> Document:
        """Its document's _id."""
        return {"org": self.organization_id, "user": self.user_id, "mutation": self.mutation, "key": self.key}

    def row(self, result: str, at: datetime) -> Document:
        """The document that remembers the id of what was made."""
        return {"_id": self.id, "digest": self.digest, "result": result, "at": at}

    @property
    def use(self) -> tuple[str, ...]:
        """What two uses of one key have in common, whatever their arguments."""
        return tuple(self.id.values())

    def check(self, row: Document) -> None:
        """Always raises: AlreadyDone, or Conflict when the earlier use had other arguments."""
        if row["digest"] != self.digest:
            raise Conflict("This idempotencyKey was used with other arguments.")
        raise AlreadyDone(row["result"])


def idempotency_key(
    organization_id: str, user_id: str, mutation: str, key: str | None, arguments: dict[str, Any]
) -> IdempotencyKey | None:
    """The key as it is stored; None without one. Raises: BadUserInput for an empty or overlong key."""
    if key is None:
        return None
    if not 1 <= len(key) <= MAX_LENGTH:
        raise BadUserInput("idempotencyKey", f"1 to {MAX_LENGTH} characters")
    encoded = orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
    return IdempotencyKey(organization_id, user_id, mutation, key, hashlib.sha256(encoded).hexdigest())


async def used_keys(mongo: Mongo, keys: Iterable[IdempotencyKey], session: Session) -> dict[tuple[str, ...], Document]:
    """The rows of those keys that were used before, by `use`."""
    ids = [key.id for key in keys]
    if not ids:
        return {}
    rows = await mongo.find("idempotency", {"_id": {"$in": ids}}, session=session)
    return {tuple(row["_id"].values()): row for row in rows}


async def claim(mongo: Mongo, key: IdempotencyKey | None, result: str, session: Session) -> None:
    """Remembers inside a transaction that the key makes `result`. Raises: AlreadyDone, Conflict."""
    if key is None:
        return
    for row in (await used_keys(mongo, [key], session)).values():
        key.check(row)
    # A pipeline, since only there the database's own clock can be written.
    row = {"digest": key.digest, "result": result, "at": "$$NOW"}
    await mongo["idempotency"].update_one({"_id": key.id}, [{"$set": row}], upsert=True, session=session)
