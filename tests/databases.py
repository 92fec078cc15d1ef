"""Databases of a test's own on shared servers."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymongo
import redis

CREDENTIAL_KEYS = {"1": b"k" * 32}
"""What tests encrypt credentials with."""


@contextmanager
def fresh_database(mongodb_uri: str, redis_url: str) -> Iterator[str]:
    """A name nobody else uses: of a MongoDB database, and in front of Redis keys. Both are emptied afterwards."""
    name = f"t_{secrets.token_hex(6)}"
    yield name
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(mongodb_uri)
    with client:
        client.drop_database(name)
    with redis.Redis.from_url(redis_url) as keys:
        for key in keys.scan_iter(match=f"{name}*", count=1000):
            keys.delete(key)
