"""Stores on a database that the tests of a module share."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from storage.mongo import Driver
from storage.stores import Stores, open_stores
from tests.databases import CREDENTIAL_KEYS
from tests.keys import ADDRESS_KEYS


@pytest.fixture(scope="module")
async def module_stores(
    mongodb_uri: str, redis_url: str, shared_database: str, mongo_driver: Driver
) -> AsyncIterator[Stores]:
    """All stores, with keys for mail addresses, on the database that the tests of a module share."""
    options: dict[str, Any] = {"credential_keys": CREDENTIAL_KEYS, "address_keys": ADDRESS_KEYS, "is_prepared": True}
    async with open_stores(mongodb_uri, redis_url, shared_database, mongo_driver, **options) as stores:
        yield stores
