"""People and places on an empty database."""

import pytest

from storage.stores import Stores
from tests.resolvers.people import Room, SignIn


@pytest.fixture
def sign_in(stores: Stores) -> SignIn:
    return SignIn(stores)


@pytest.fixture
async def room(sign_in: SignIn) -> Room:
    ann, bob, eve = [await sign_in(name) for name in ("ann", "bob", "eve")]
    community = await ann.found()
    await bob.join(community)
    return Room(ann, bob, eve, community, await ann.open_topic(community))
