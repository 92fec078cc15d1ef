"""The query homeFeed."""

import pytest

from storage.stores import Stores
from tests.resolvers.people import HOME, SignIn

pytestmark = pytest.mark.anyio


async def test_home_feed_of_absent_reader_is_rebuilding(sign_in: SignIn, stores: Stores) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    await bob.follow(ann)
    await bob.home()
    past = [{"$set": {"seen_at": {"$subtract": ["$$NOW", 31 * 86_400_000]}}}]
    await stores.mongo["feeds"].update_one({"_id": {"o": "acme", "u": "bob"}}, past)
    await ann.create_post("meanwhile")
    assert (await bob.run(HOME, latest="now"))["homeFeed"]["state"] == "REBUILDING"
    await stores.home.rebuild("acme", "bob")
    answer = (await bob.run(HOME, latest="now"))["homeFeed"]
    assert (answer["state"], [item["text"] for item in answer["items"]]) == ("READY", ["meanwhile"])


async def test_home_feed_without_valid_bounds_is_refused(sign_in: SignIn) -> None:
    ann = await sign_in("ann")
    for bounds in ({}, {"oldest": "now"}, {"latest": "now", "limit": 0}, {"latest": "now", "limit": 1000}):
        assert await ann.code(HOME, **bounds) == "BAD_USER_INPUT"
