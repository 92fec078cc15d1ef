"""Follow mutations: counts, the viewer's fields, and refusals."""

import pytest

from tests.resolvers.people import SignIn

pytestmark = pytest.mark.anyio

FOLLOW = "mutation ($id: ID!) { follow(userId: $id) { id followerCount followingCount following } }"
UNFOLLOW = FOLLOW.replace("follow(userId", "unfollow(userId")


async def test_follow_counts_match_after_each_change(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    for _ in range(2):
        user = (await bob.run(FOLLOW, id="ann"))["follow"]
        assert user == {"id": "ann", "followerCount": 1, "followingCount": 0, "following": True}
    assert (await ann.run('{ user(id: "bob") { followingCount following } }'))["user"] == {
        "followingCount": 1,
        "following": False,
    }
    for _ in range(2):
        user = (await bob.run(UNFOLLOW, id="ann"))["unfollow"]
        assert user == {"id": "ann", "followerCount": 0, "followingCount": 0, "following": False}


async def test_follow_shows_in_next_home_feed(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    await ann.create_post("before")
    assert await bob.home() == []
    await bob.follow(ann)
    assert await bob.home() == ["before"]
    await bob.unfollow(ann)
    assert await bob.home() == []


async def test_follow_of_self_or_across_block_is_refused(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    assert (await ann.fails(FOLLOW, id="ann"))["field"] == "userId"
    await bob.follow(ann)
    await ann.block(bob)
    assert await bob.code(FOLLOW, id="ann") == "FORBIDDEN"
    assert await ann.code(FOLLOW, id="bob") == "CONFLICT"
    assert (await bob.run('{ user(id: "ann") { following followerCount } }'))["user"] == {
        "following": False,
        "followerCount": 0,
    }
    assert await bob.code(FOLLOW, id="nobody") == "NOT_FOUND"
