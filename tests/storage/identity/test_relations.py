"""Blocks and follows between users of one organization."""

import asyncio

import pytest

from storage.identity.relations import FEW_BLOCKERS
from storage.stores import Stores

pytestmark = pytest.mark.anyio


async def test_blocks_are_directed_and_listed_from_both_sides(shared_stores: Stores, org: str) -> None:
    relations = shared_stores.relations
    await asyncio.gather(*(relations.block(org, "ann", "bob") for _ in range(3)))
    await relations.block(org, "cyd", "bob")
    assert await relations.blocked_users_of(org, "ann") == {"bob"}
    assert await relations.blocked_users_of(org, "bob") == set()
    assert await relations.blockers_among(org, "bob", ["ann", "cyd", "dan"]) == {"ann", "cyd"}
    assert await relations.blockers_among(org, "bob", ["ann", "dan"]) == {"ann"}
    assert await relations.blockers_among(org, "bob", []) == set()
    assert await relations.blocked_users_of(org + "x", "ann") == set()
    await relations.unblock(org, "ann", "bob")
    await relations.unblock(org, "ann", "bob")
    assert await relations.blockers_among(org, "bob", ["ann", "cyd"]) == {"cyd"}


async def test_block_ends_follows_both_ways_and_their_counts(shared_stores: Stores, org: str) -> None:
    mongo, users = shared_stores.mongo, shared_stores.users
    for user, other in (("ann", "bob"), ("bob", "ann")):
        await users.sign_in(org, user, (), None, None)
        await mongo["follows"].insert_one({"org": org, "follower": user, "followee": other})
    await mongo["users"].update_many({"_id.org": org}, {"$set": {"followers": 1, "following": 1}})
    for _ in range(2):
        await shared_stores.relations.block(org, "ann", "bob")
    assert not await shared_stores.relations.follows(org, "ann", "bob")
    assert not await shared_stores.relations.follows(org, "bob", "ann")
    for user in ("ann", "bob"):
        record = await users.get(org, user)
        assert (record.follower_count, record.following_count) == (0, 0)


async def test_relations_ignore_equal_user_ids_of_another_organization(shared_stores: Stores, org: str) -> None:
    mongo, relations, other = shared_stores.mongo, shared_stores.relations, org + "x"
    await relations.block(other, "ann", "bob")
    await mongo["follows"].insert_one({"org": other, "follower": "bob", "followee": "cyd"})
    await relations.block(org, "bob", "cyd")
    await relations.unblock(org, "ann", "bob")
    assert await relations.users_with_blocks(org, ["ann", "bob", "cyd"]) == {"bob"}
    assert await relations.users_with_blocks(other, ["ann", "bob", "cyd"]) == {"ann"}
    assert await relations.blockers_among(org, "bob", ["ann"]) == set()
    assert await relations.blockers_among(other, "bob", ["ann"]) == {"ann"}
    assert await relations.follows(other, "bob", "cyd")
    assert not await relations.follows(org, "bob", "cyd")


async def test_many_blockers_are_of_the_same_organization(shared_stores: Stores, org: str) -> None:
    blocks = shared_stores.mongo["blocks"]
    await blocks.insert_many([{"org": org, "user": f"u{n}", "blocked": "bob"} for n in range(FEW_BLOCKERS + 1)])
    await blocks.insert_one({"org": org + "x", "user": "ann", "blocked": "bob"})
    await blocks.insert_one({"org": org, "user": "ann", "blocked": "cyd"})
    assert await shared_stores.relations.blockers_among(org, "bob", ["ann", "u1"]) == {"u1"}
