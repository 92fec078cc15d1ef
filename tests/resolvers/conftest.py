"""Signed-in users and a chat topic on an empty database, and users on a database that a module's tests share."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from storage.mongo import Driver
from storage.stores import Stores, open_stores
from tests.databases import CREDENTIAL_KEYS
from tests.keys import ADDRESS_KEYS
from tests.resolvers.people import ChatScenario, SignIn
from tests.resolvers.stored_chat import StoredChat, stored_chat


@pytest.fixture
def sign_in(stores: Stores) -> SignIn:
    return SignIn(stores)


@pytest.fixture(scope="module")
async def shared_sign_in(
    mongodb_uri: str, redis_url: str, shared_database: str, mongo_driver: Driver
) -> AsyncIterator[SignIn]:
    """Signs users in on the database that the tests of a module share. These tests change nothing that others read."""
    options: dict[str, Any] = {"credential_keys": CREDENTIAL_KEYS, "address_keys": ADDRESS_KEYS, "is_prepared": True}
    async with open_stores(mongodb_uri, redis_url, shared_database, mongo_driver, **options) as stores:
        yield SignIn(stores)


@pytest.fixture(scope="session")
def stored_chats() -> list[StoredChat]:
    """The chat that all tests of this process begin with, once the first of them has created it."""
    return []


@pytest.fixture
async def chat(sign_in: SignIn, stored_chats: list[StoredChat]) -> ChatScenario:
    if stored_chats:
        return await stored_chats[0].insert(sign_in.stores)
    chat = await create_chat(sign_in)
    stored_chats.append(await stored_chat(chat))
    return chat


@pytest.fixture(scope="module")
async def shared_chat(shared_sign_in: SignIn) -> ChatScenario:
    """A chat for the tests of a module whose operations are refused."""
    return await create_chat(shared_sign_in)


async def create_chat(sign_in: SignIn) -> ChatScenario:
    """Creates a community of Ann and Bob with one topic. Eve does not belong to it."""
    ann, bob, eve = [await sign_in(name) for name in ("ann", "bob", "eve")]
    community = await ann.create_community()
    await bob.join(community)
    return ChatScenario(ann, bob, eve, community, await ann.create_topic(community))
