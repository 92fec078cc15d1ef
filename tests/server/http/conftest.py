"""Fixtures of tests against one web process for each module, which the module starts as `web`."""

from collections.abc import AsyncIterator

import pytest

from storage.identity.audit import Actor
from storage.identity.roles import Role
from storage.stores import Stores, open_stores
from tests.serving import WebProcess

ORG = "main"


@pytest.fixture(scope="module")
async def web_stores(web: WebProcess, mongodb_uri: str, redis_url: str) -> AsyncIterator[Stores]:
    """The stores of the web process's database."""
    async with open_stores(mongodb_uri, redis_url, web.database) as stores:
        yield stores


@pytest.fixture
async def admin(web_stores: Stores) -> Actor:
    await web_stores.users.sign_in(ORG, "boss", [Role.ADMIN], "Boss", None)
    # All tests sign in from one address. Its limit would otherwise count the attempts of earlier tests.
    await web_stores.mongo["sign_in_limits"].delete_many({})
    return Actor(ORG, "boss")
