"""Communities, their members and their lists by name."""

import asyncio

import pytest

from storage.batch_loader import MAX_KEYS
from storage.chat.communities import NewCommunity
from storage.chat.records import Community
from storage.errors import Conflict, NotFound
from storage.idempotency import idempotency_key
from storage.identity.records import User
from storage.ids import new_id
from storage.stores import Stores
from tests.storage.places import Place

pytestmark = pytest.mark.anyio


async def user(stores: Stores, organization_id: str, id_: str) -> User:
    return await stores.users.sign_in(organization_id, id_, (), id_.title(), None)


async def test_create_community_joins_founder_and_repeats_by_key(shared_stores: Stores) -> None:
    ann = await user(shared_stores, org := new_id(), "ann")
    key = idempotency_key(org, "ann", "createCommunity", "k", {"name": "Hills"})
    new = NewCommunity(org, "Hills", "Beacons")
    made = await asyncio.gather(*(shared_stores.communities.create(new, ann, key) for _ in range(5)))
    assert len({community.id for community in made}) == 1
    assert (made[0].name, made[0].description, made[0].member_count) == ("Hills", "Beacons", 1)
    assert await shared_stores.communities.is_member(made[0].id, "ann")
    other = idempotency_key(org, "ann", "createCommunity", "k", {"name": "Other"})
    with pytest.raises(Conflict):
        await shared_stores.communities.create(NewCommunity(org, "Other", ""), ann, other)


async def test_community_of_another_organization_is_not_found(place: Place) -> None:
    communities = place.stores.communities
    assert await communities.find("another", place.community.id) is None
    with pytest.raises(NotFound):
        await communities.get("another", place.community.id)


async def test_concurrent_joins_and_leaves_of_one_user_count_once(place: Place) -> None:
    communities, bob = place.stores.communities, await user(place.stores, place.organization_id, "bob")
    await asyncio.gather(*(communities.join(place.community, bob) for _ in range(8)))
    assert (await communities.get(place.organization_id, place.community.id)).member_count == 2
    await asyncio.gather(*(communities.leave(place.community, "bob") for _ in range(8)))
    assert (await communities.get(place.organization_id, place.community.id)).member_count == 1
    assert not await communities.is_member(place.community.id, "bob")


async def test_concurrent_joins_of_many_users_are_all_counted(place: Place) -> None:
    users = [await user(place.stores, place.organization_id, f"user{number}") for number in range(15)]
    await asyncio.gather(*(place.stores.communities.join(place.community, each) for each in users))
    assert (await place.stores.communities.get(place.organization_id, place.community.id)).member_count == 16


async def test_departures_grow_by_one_for_each_departure(place: Place) -> None:
    communities, community = place.stores.communities, place.community
    await communities.join(community, await user(place.stores, place.organization_id, "bob"))
    assert await communities.departures(community.id) == 0
    await asyncio.gather(*(communities.leave(community, name) for name in ("bob", "bob", "eve")))
    assert await communities.departures(community.id) == 1
    await communities.join(community, await user(place.stores, place.organization_id, "bob"))
    assert await communities.departures(community.id) == 1


async def test_members_are_paged_by_handle_in_storage(place: Place) -> None:
    communities = place.stores.communities
    for name in ("dan", "bob", "cyd"):
        await communities.join(place.community, await user(place.stores, place.organization_id, name))
    assert await communities.members(place.community.id, None, 3) == ["ann", "bob", "cyd"]
    assert await communities.members(place.community.id, "cyd", 3) == ["dan"]
    assert await communities.members_among(place.community.id, ["bob", "eve", "ann"]) == {"ann", "bob"}


@pytest.fixture
async def hills(shared_stores: Stores) -> list[Community]:
    """Communities of one organization by name. Ann created all; bob has joined the second."""
    ann = await user(shared_stores, org := new_id(), "ann")
    names = ["alpha", "Beta", "beta", "Gamma", "山"]
    made = [await shared_stores.communities.create(NewCommunity(org, name, ""), ann, None) for name in names]
    await shared_stores.communities.join(made[1], await user(shared_stores, org, "bob"))
    return made


async def listed(stores: Stores, hills: list[Community], joined: bool | None, limit: int = 10) -> list[str]:
    """Returns the names that bob sees, read page by page."""
    names: list[str] = []
    after = None
    while True:
        page = await stores.communities.list_by_name(hills[0].organization_id, "bob", joined, after, limit)
        names += [community.name for community in page]
        if len(page) < limit:
            return names
        after = page[-1].id


@pytest.mark.parametrize("limit", [1, 2, 10])
async def test_communities_are_listed_by_name_and_membership(
    shared_stores: Stores, hills: list[Community], limit: int
) -> None:
    everything = await listed(shared_stores, hills, None, limit)
    assert [name.lower() for name in everything] == ["alpha", "beta", "beta", "gamma", "山"]
    assert sorted(everything) == sorted(community.name for community in hills)
    assert await listed(shared_stores, hills, True, limit) == ["Beta"]
    others = await listed(shared_stores, hills, False, limit)
    assert [name.lower() for name in others] == ["alpha", "beta", "gamma", "山"]


async def test_list_after_a_missing_community_is_not_found(shared_stores: Stores, hills: list[Community]) -> None:
    with pytest.raises(NotFound):
        await shared_stores.communities.list_by_name(hills[0].organization_id, "bob", None, "nowhere", 10)


async def test_members_among_thousands_of_users(place: Place) -> None:
    community, users = place.community.id, [f"user{number}" for number in range(2 * MAX_KEYS + 5)]
    joined = {*users[::7], users[0], users[-1]}
    common = {"org": place.community.organization_id}
    rows = [{**common, "community": community, "user": id_, "handle": id_} for id_ in joined]
    elsewhere = [{**common, "community": "another", "user": id_, "handle": id_} for id_ in users]
    await place.stores.mongo["memberships"].insert_many([*rows, *elsewhere])
    assert await place.stores.communities.members_among(community, set(users)) == joined


@pytest.mark.parametrize("asked", [[], ["ann"], ["bob"], ["ann", "bob"]])
async def test_members_among_few_users(place: Place, asked: list[str]) -> None:
    assert await place.stores.communities.members_among(place.community.id, asked) == {"ann"} & set(asked)
