"""Idempotency keys: repeating a mutation with the same key returns the result of the first use (docs/semantics.md, 1).

A key is stored in the transaction that does the work, so a failed attempt stores none. It is kept for 24 hours.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn, TypedDict

from storage.errors import BadUserInput, Conflict
from storage.mongo import Document, Mongo, Session

KEPT_S = 24 * 3600
MAX_LENGTH = 200
DIGEST_PREFIX = "input:"
"""Prefix of digests of the whole input. Digests without it come from earlier versions and cover some arguments only."""


class KeyId(TypedDict):
    """A key, with its user and mutation."""

    org: str
    user: str
    mutation: str
    key: str


class KeyDocument(TypedDict):
    """A used key, in `idempotency`. MongoDB deletes it `KEPT_S` seconds after `at`."""

    _id: KeyId
    digest: str
    result: str
    at: datetime


class DuplicateRequest(Exception):
    """The request was executed before: the same key with the same input, or the same source of a post.

    `result_id` is the id of the object that was created then. The caller reads the object and returns it.
    """

    def __init__(self, result_id: str) -> None:
        super().__init__(result_id)
        self.result_id = result_id


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A client's key for one mutation, and a digest of the mutation's input."""

    organization_id: str
    user_id: str
    mutation: str
    key: str
    digest: str

    @property
    def id(self) -> KeyId:
        """The `_id` of the key's document."""
        return {"org": self.organization_id, "user": self.user_id, "mutation": self.mutation, "key": self.key}

    def row(self, result: str, at: datetime) -> KeyDocument:
        """Returns the document that stores the id of the result."""
        return {"_id": self.id, "digest": self.digest, "result": result, "at": at}

    @property
    def use(self) -> tuple[str, ...]:
        """The organization, user, mutation and key, without the input."""
        return self.organization_id, self.user_id, self.mutation, self.key

    def raise_duplicate(self, row: KeyDocument) -> NoReturn:
        """Raises DuplicateRequest, or Conflict if `row` shows that the key was used with another input.

        The input cannot be compared with a digest from an earlier version, and is then assumed to be the same.
        """
        if row["digest"].startswith(DIGEST_PREFIX) and row["digest"] != self.digest:
            raise Conflict("This idempotencyKey was used with other arguments. Use a new key.")
        raise DuplicateRequest(row["result"])


def idempotency_key(
    organization_id: str, user_id: str, mutation: str, key: str | None, arguments: Mapping[str, Any]
) -> IdempotencyKey | None:
    """Returns the key with a digest of the arguments, which are JSON values, or None without a key.

    Raises: BadUserInput for an empty or overlong key.
    """
    if key is None:
        return None
    if not 1 <= len(key) <= MAX_LENGTH:
        raise BadUserInput("idempotencyKey", f"1 to {MAX_LENGTH} characters")
    # Escapes lone surrogates, which have no UTF-8 encoding.
    encoded = json.dumps(arguments, sort_keys=True).encode()
    digest = DIGEST_PREFIX + hashlib.sha256(encoded).hexdigest()
    return IdempotencyKey(organization_id, user_id, mutation, key, digest)


async def used_keys(
    mongo: Mongo, keys: Iterable[IdempotencyKey], session: Session
) -> dict[tuple[str, ...], KeyDocument]:
    """Returns the documents of the keys that were used before, by `use`."""
    ids = [key.id for key in keys]
    if not ids:
        return {}
    rows: list[KeyDocument] = await mongo.find("idempotency", {"_id": {"$in": ids}}, session=session)
    return {(row["_id"]["org"], row["_id"]["user"], row["_id"]["mutation"], row["_id"]["key"]): row for row in rows}


async def claim(mongo: Mongo, key: IdempotencyKey | None, result: str, session: Session) -> None:
    """Stores the key with the id of its result, within a transaction. Raises: DuplicateRequest, Conflict."""
    if key is None:
        return
    for row in (await used_keys(mongo, [key], session)).values():
        key.raise_duplicate(row)
    # Only an update pipeline can store the database's own clock.
    row_: Document = {"digest": key.digest, "result": result, "at": "$$NOW"}
    await mongo["idempotency"].update_one({"_id": key.id}, [{"$set": row_}], upsert=True, session=session)
