"""Limits of attempts to sign in and to have mails sent, shared by all processes.

Each limit allows a number of attempts at once, and then one in each interval. Attempts for accounts that do not exist
count too, so that a refusal does not reveal whether an account exists.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Any

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import DuplicateKeyError

from storage.errors import RateLimited
from storage.identity.accounts.documents import SignInLimitDocument
from storage.ids import new_id
from storage.mongo import Document, Mongo

COLLECTION = "sign_in_limits"
IPV6_PREFIX_BITS = 64
"""A client can choose any address of its /64 network, so all addresses of the network count as one client."""


@dataclass(frozen=True, slots=True)
class AttemptLimit:
    """A limit: `burst` attempts at once, and then one in `every_s` seconds."""

    name: str
    burst: int
    every_s: int


SIGN_INS_OF_ACCOUNT = AttemptLimit("account", 50, 60)
SIGN_INS_OF_ACCOUNT_BY_CLIENT = AttemptLimit("account-client", 10, 60)
SIGN_INS_BY_CLIENT = AttemptLimit("client", 100, 5)
SIGN_INS_BY_KNOWN_BROWSER = AttemptLimit("known-browser", 10, 60)
PASSWORD_CHOICES_OF_ACCOUNT = AttemptLimit("passwords", 10, 300)
"""Limits choices of a password, which succeed or not. Nothing sets this limit back."""

MAILS_TO_ADDRESS = AttemptLimit("mails-to", 3, 1200)
MAILS_BY_CLIENT = AttemptLimit("mails-by", 20, 180)
MAILS_OF_ORGANIZATION = AttemptLimit("mails-of", 1000, 1)
LINKS_BY_CLIENT = AttemptLimit("links-by", 60, 10)

LimitedAttempt = tuple[AttemptLimit, str]
"""A limit, and the account, the client or the organization that it counts."""


class AttemptLimits:
    """Counts attempts by the database's clock, with one update for each limit."""

    def __init__(self, mongo: Mongo) -> None:
        self._limits: AsyncCollection[SignInLimitDocument] = mongo[COLLECTION]

    async def count(self, attempts: Sequence[LimitedAttempt]) -> None:
        """Counts one attempt in each of these limits, in this order. Raises: RateLimited."""
        for limit, subject in attempts:
            await self._count(limit, subject)

    async def forget(self, attempts: Sequence[LimitedAttempt]) -> None:
        """Sets these limits back to no attempts. Called after a successful sign-in."""
        ids = [_id(limit, subject) for limit, subject in attempts]
        await self._limits.delete_many({"_id": {"$in": ids}})

    async def _count(self, limit: AttemptLimit, subject: str) -> None:
        attempt = new_id()
        counted = await self._update(_id(limit, subject), limit, attempt)
        if counted["attempt"] == attempt:
            return
        wait_ms = max(int(counted["wait_ms"]), 1)
        raise RateLimited(f"Too many attempts. Try again in {math.ceil(wait_ms / 1000)} s.", wait_ms)

    async def _update(self, id_: str, limit: AttemptLimit, attempt: str) -> Any:
        # If two first attempts insert the document at once, one of them fails with a duplicate key and tries again.
        for _ in range(3):
            try:
                return await self._limits.find_one_and_update(
                    {"_id": id_}, _admission_update(limit, attempt), upsert=True, return_document=ReturnDocument.AFTER
                )
            except DuplicateKeyError as error:
                duplicate = error
        raise duplicate


def client_key(address: str | None) -> str:
    """Returns the key of a client: its address, or the first 64 bits of an IPv6 address."""
    try:
        parsed = ip_address(address or "")
    except ValueError:
        return "unknown"
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(int(parsed) >> (128 - IPV6_PREFIX_BITS))
    return str(parsed)


def _admission_update(limit: AttemptLimit, attempt: str) -> list[Document]:
    """Returns the update that counts the attempt if the limit allows it. Otherwise it only stores the waiting time."""
    start = {"$max": [{"$ifNull": ["$free_at", "$$NOW"]}, "$$NOW"]}
    ahead_ms = {"$subtract": [start, "$$NOW"]}
    # `free_at` of a full limit is `burst` intervals ahead.
    wait_ms = {"$subtract": [ahead_ms, (limit.burst - 1) * limit.every_s * 1000]}
    is_admitted = {"$lte": ["$wait_ms", 0]}
    later = {"$add": [start, limit.every_s * 1000]}
    return [
        {"$set": {"wait_ms": wait_ms}},
        {
            "$set": {
                "free_at": {"$cond": [is_admitted, later, "$free_at"]},
                "attempt": {"$cond": [is_admitted, attempt, "$attempt"]},
            }
        },
    ]


def _id(limit: AttemptLimit, subject: str) -> str:
    return f"{limit.name}:{hashlib.sha256(subject.encode('utf-8', 'surrogatepass')).hexdigest()}"
