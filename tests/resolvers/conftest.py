"""Signed-in users and a chat topic on an empty database."""

import pytest

from storage.stores import Stores
from tests.resolvers.people import ChatScenario, SignIn


@pytest.fixture
def sign_in(stores: Stores) -> SignIn:
    return SignIn(stores)


@pytest.fixture
async def chat(sign_in: SignIn) -> ChatScenario:
    ann, bob, eve = [await sign_in(name) for name in ("ann", "bob", "eve")]
    community = await ann.create_community()
    await bob.join(community)
    return ChatScenario(ann, bob, eve, community, await ann.create_topic(community))
