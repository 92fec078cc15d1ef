"""The query homeFeed."""

import pytest

from storage.stores import Stores
from tests.resolvers.people import HOME, SignIn
from tests.storage.feed.feed_scenario import limit_feeds

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


async def test_home_feed_that_lost_posts_is_rebuilt(
    sign_in: SignIn, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_feeds(monkeypatch, 4)
    ann, bob, cyd = await sign_in("ann"), await sign_in("bob"), await sign_in("cyd")
    for n in range(3):
        await cyd.create_post(f"older {n}")
    for n in range(6):
        await ann.create_post(f"newer {n}")
    await bob.follow(cyd)
    await bob.follow(ann)
    assert await bob.home() == [f"newer {n}" for n in (5, 4, 3, 2)]
    await bob.unfollow(ann)
    assert (await bob.run(HOME, latest="now"))["homeFeed"]["state"] == "REBUILDING"
    await stores.home.rebuild("acme", "bob")
    answer = (await bob.run(HOME, latest="now"))["homeFeed"]
    assert (answer["state"], [item["text"] for item in answer["items"]]) == ("READY", ["older 2", "older 1", "older 0"])


async def test_home_feed_without_valid_bounds_is_refused(sign_in: SignIn) -> None:
    ann = await sign_in("ann")
    for bounds in ({}, {"oldest": "now"}, {"latest": "now", "limit": 0}, {"latest": "now", "limit": 1000}):
        assert await ann.code(HOME, **bounds) == "BAD_USER_INPUT"
