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
from storage.mongo import Mongo, Session, literals

KEPT_S = 24 * 3600
MAX_LENGTH = 200
DIGEST_PREFIX = "arguments:"
"""Prefix of digests. Digests of earlier versions have no prefix or another one, and were computed in other ways."""


class IdempotencyKeyId(TypedDict):
    """The `_id` of a used key: the client's string, with its organization, user and mutation."""

    org: str
    user: str
    mutation: str
    key: str


class IdempotencyKeyDocument(TypedDict):
    """A used key, in `idempotency`. MongoDB deletes it `KEPT_S` seconds after `at`."""

    _id: IdempotencyKeyId
    digest: str
    """Digest of the mutation's arguments."""

    result: str
    """Id of the object that the mutation created."""

    at: datetime
    """When the key was used, by the database's clock."""


class DuplicateRequest(Exception):
    """The request was carried out before, so it must have no further effect.

    `result_id` identifies the object that it created. The caller reads the object's current state.
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
    def id(self) -> IdempotencyKeyId:
        """The `_id` of the key's document."""
        return {"org": self.organization_id, "user": self.user_id, "mutation": self.mutation, "key": self.key}

    def document(self, result_id: str, at: datetime) -> IdempotencyKeyDocument:
        """Returns the document that stores the id of the result."""
        return {"_id": self.id, "digest": self.digest, "result": result_id, "at": at}

    @property
    def identity(self) -> tuple[str, ...]:
        """The organization, user, mutation and key, without the digest of the input."""
        return self.organization_id, self.user_id, self.mutation, self.key

    def raise_duplicate(self, earlier: IdempotencyKeyDocument) -> NoReturn:
        """Raises DuplicateRequest, or Conflict if the earlier use had another input.

        A digest from an earlier version cannot be compared. The input then counts as the same.
        """
        if earlier["digest"].startswith(DIGEST_PREFIX) and earlier["digest"] != self.digest:
            raise Conflict("This idempotencyKey was used with other arguments. Use a new key.")
        raise DuplicateRequest(earlier["result"])


def idempotency_key(
    organization_id: str, user_id: str, mutation: str, key: str | None, arguments: Mapping[str, Any]
) -> IdempotencyKey | None:
    """Returns the client's key with a digest of the arguments, or None if the client sent no key.

    The arguments are JSON values. Raises: BadUserInput for an empty or overlong key.
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
    mongo: Mongo, keys: Iterable[IdempotencyKey], session: Session | None = None
) -> dict[tuple[str, ...], IdempotencyKeyDocument]:
    """Returns the documents of those keys that were used before, by the key's `identity`."""
    ids = [key.id for key in keys]
    if not ids:
        return {}
    documents: list[IdempotencyKeyDocument] = await mongo.find("idempotency", {"_id": {"$in": ids}}, session=session)
    by_id = [(document["_id"], document) for document in documents]
    return {(id_["org"], id_["user"], id_["mutation"], id_["key"]): document for id_, document in by_id}


async def store_key(mongo: Mongo, key: IdempotencyKey | None, result_id: str, session: Session) -> None:
    """Stores the key with the id of its result, within a transaction. Does nothing without a key.

    Raises: DuplicateRequest, Conflict.
    """
    if key is None:
        return
    for earlier in (await used_keys(mongo, [key], session)).values():
        key.raise_duplicate(earlier)
    # Only an update pipeline can store the database's own clock.
    fields = {"at": "$$NOW", **literals({"digest": key.digest, "result": result_id})}
    await mongo["idempotency"].update_one({"_id": key.id}, [{"$set": fields}], upsert=True, session=session)
