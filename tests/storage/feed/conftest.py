"""The feed scenario of a test, with the users Ann and Bob."""

import pytest

from storage.stores import Stores
from tests.storage.feed.feed_scenario import FeedScenario


@pytest.fixture
async def feed(shared_stores: Stores) -> FeedScenario:
    feed = FeedScenario(shared_stores)
    await feed.sign_in("ann", "bob")
    return feed
