"""Databases that the tests of many mutants use one after another, because creating one takes longer than most tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pymongo
import redis

from tests.databases import ReusedDatabase

_in_use: set[str] = set()


@contextmanager
def kept_database(mongodb_uri: str, redis_url: str) -> Iterator[str]:
    """Takes the place of tests.databases.fresh_database. Empties a database of an earlier test, and yields its name."""
    name = next(name for name in (f"t_kept{number}" for number in count()) if name not in _in_use)
    _in_use.add(name)
    with pymongo.MongoClient[dict[str, Any]](mongodb_uri) as mongo, redis.Redis.from_url(redis_url) as keys:
        ReusedDatabase(mongodb_uri, name, mongo, keys).empty()
    try:
        yield name
    finally:
        _in_use.discard(name)
