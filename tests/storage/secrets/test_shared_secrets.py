"""Shared secrets: each name has one secret, which is the same in every process."""

import asyncio

import pytest

from storage.secrets.shared_secrets import shared_secret
from storage.stores import Stores
from tests.storage.topic_scenario import OpenStores

pytestmark = pytest.mark.anyio


async def test_processes_that_start_together_get_the_same_secret(
    shared_stores: Stores, open_process: OpenStores
) -> None:
    async with open_process() as stores:
        mongos = [shared_stores.mongo, stores.mongo] * 10
        secrets = await asyncio.gather(*(shared_secret(mongo, "images") for mongo in mongos))
    assert len(set(secrets)) == 1
    assert len(secrets[0]) == 32


async def test_different_names_have_different_secrets(shared_stores: Stores) -> None:
    assert await shared_secret(shared_stores.mongo, "a") != await shared_secret(shared_stores.mongo, "b")
