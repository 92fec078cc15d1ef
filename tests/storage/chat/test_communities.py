"""Communities, their members, and the list of communities in order of name."""

import asyncio

import pytest

from storage.chat.communities import NewCommunity
from storage.chat.records import Community, CommunityVisibility
from storage.errors import Conflict, NotFound
from storage.idempotency import idempotency_key
from storage.identity.records import User
from storage.ids import new_id
from storage.mongo.batch_loader import MAX_KEYS
from storage.stores import Stores
from tests.storage.topic_scenario import TopicScenario

pytestmark = pytest.mark.anyio


async def sign_in(stores: Stores, organization_id: str, id_: str) -> User:
    return await stores.users.sign_in(organization_id, id_, (), id_.title(), None)


async def test_create_community_joins_founder_and_is_idempotent(shared_stores: Stores) -> None:
    ann = await sign_in(shared_stores, org := new_id(), "ann")
    key = idempotency_key(org, "ann", "createCommunity", "k", {"name": "Hills"})
    new = NewCommunity(org, "Hills", "Beacons")
    created = await asyncio.gather(*(shared_stores.communities.create(new, ann, key) for _ in range(5)))
    assert len({community.id for community in created}) == 1
    assert (created[0].name, created[0].description, created[0].member_count) == ("Hills", "Beacons", 1)
    assert await shared_stores.communities.is_member(created[0].id, "ann")
    other = idempotency_key(org, "ann", "createCommunity", "k", {"name": "Other"})
    with pytest.raises(Conflict):
        await shared_stores.communities.create(NewCommunity(org, "Other", ""), ann, other)


async def test_community_of_another_organization_is_not_found(scenario: TopicScenario) -> None:
    communities = scenario.stores.communities
    assert await communities.find("another", scenario.community.id) is None
    with pytest.raises(NotFound):
        await communities.get("another", scenario.community.id)
    with pytest.raises(NotFound):
        await communities.list_communities("another", "ann", None, scenario.community.id, 10)


async def test_concurrent_joins_and_leaves_of_one_user_count_once(scenario: TopicScenario) -> None:
    communities, bob = scenario.stores.communities, await sign_in(scenario.stores, scenario.organization_id, "bob")
    await asyncio.gather(*(communities.join(scenario.community, bob) for _ in range(8)))
    assert (await communities.get(scenario.organization_id, scenario.community.id)).member_count == 2
    await asyncio.gather(*(communities.leave(scenario.community, "bob") for _ in range(8)))
    assert (await communities.get(scenario.organization_id, scenario.community.id)).member_count == 1
    assert not await communities.is_member(scenario.community.id, "bob")


async def test_concurrent_joins_of_many_users_are_all_counted(scenario: TopicScenario) -> None:
    users = [await sign_in(scenario.stores, scenario.organization_id, f"user{number}") for number in range(15)]
    await asyncio.gather(*(scenario.stores.communities.join(scenario.community, each) for each in users))
    assert (await scenario.stores.communities.get(scenario.organization_id, scenario.community.id)).member_count == 16


async def test_departures_grow_by_one_for_each_departure(scenario: TopicScenario) -> None:
    communities, community = scenario.stores.communities, scenario.community
    await communities.join(community, await sign_in(scenario.stores, scenario.organization_id, "bob"))
    assert await communities.departures(community.id) == 0
    await asyncio.gather(*(communities.leave(community, name) for name in ("bob", "bob", "eve")))
    assert await communities.departures(community.id) == 1
    await communities.join(community, await sign_in(scenario.stores, scenario.organization_id, "bob"))
    assert await communities.departures(community.id) == 1


async def test_members_are_paged_by_handle_in_storage(scenario: TopicScenario) -> None:
    communities = scenario.stores.communities
    for name in ("dan", "bob", "cyd"):
        await communities.join(scenario.community, await sign_in(scenario.stores, scenario.organization_id, name))
    assert await communities.member_ids(scenario.community.id, None, 3) == ["ann", "bob", "cyd"]
    assert await communities.member_ids(scenario.community.id, "cyd", 3) == ["dan"]
    assert await communities.members_among(scenario.community.id, ["bob", "eve", "ann"]) == {"ann", "bob"}


@pytest.fixture
async def communities_by_name(shared_stores: Stores) -> list[Community]:
    """Communities of one organization, sorted by name. Ann created all of them; Bob has joined the second."""
    ann = await sign_in(shared_stores, org := new_id(), "ann")
    names = ["alpha", "Beta", "beta", "Gamma", "山"]
    created = [await shared_stores.communities.create(NewCommunity(org, name, ""), ann, None) for name in names]
    await shared_stores.communities.join(created[1], await sign_in(shared_stores, org, "bob"))
    return created


async def listed_names(
    stores: Stores, communities_by_name: list[Community], joined: bool | None, limit: int = 10
) -> list[str]:
    """Returns the names of the communities that are listed for Bob, read page by page."""
    names: list[str] = []
    after = None
    while True:
        page = await stores.communities.list_communities(
            communities_by_name[0].organization_id, "bob", joined, after, limit
        )
        names += [community.name for community in page]
        if len(page) < limit:
            return names
        after = page[-1].id


@pytest.mark.parametrize("limit", [1, 2, 10])
async def test_communities_are_listed_by_name_and_membership(
    shared_stores: Stores, communities_by_name: list[Community], limit: int
) -> None:
    all_names = await listed_names(shared_stores, communities_by_name, None, limit)
    assert [name.lower() for name in all_names] == ["alpha", "beta", "beta", "gamma", "山"]
    assert sorted(all_names) == sorted(community.name for community in communities_by_name)
    assert await listed_names(shared_stores, communities_by_name, True, limit) == ["Beta"]
    others = await listed_names(shared_stores, communities_by_name, False, limit)
    assert [name.lower() for name in others] == ["alpha", "beta", "gamma", "山"]


async def test_list_after_a_missing_community_is_not_found(
    shared_stores: Stores, communities_by_name: list[Community]
) -> None:
    with pytest.raises(NotFound):
        await shared_stores.communities.list_communities(
            communities_by_name[0].organization_id, "bob", None, "nowhere", 10
        )


async def test_members_among_thousands_of_users(scenario: TopicScenario) -> None:
    community, users = scenario.community.id, [f"user{number}" for number in range(2 * MAX_KEYS + 5)]
    joined = {*users[::7], users[0], users[-1]}
    common = {"org": scenario.community.organization_id}
    memberships = [{**common, "community": community, "user": id_, "handle": id_} for id_ in joined]
    others = [{**common, "community": "another", "user": id_, "handle": id_} for id_ in users]
    await scenario.stores.mongo["memberships"].insert_many([*memberships, *others])
    assert await scenario.stores.communities.members_among(community, set(users)) == joined


@pytest.mark.parametrize("user_ids", [[], ["ann"], ["bob"], ["ann", "bob"]])
async def test_members_among_few_users(scenario: TopicScenario, user_ids: list[str]) -> None:
    assert await scenario.stores.communities.members_among(scenario.community.id, user_ids) == {"ann"} & set(user_ids)


async def test_readers_of_communities_are_members_or_all(shared_stores: Stores) -> None:
    ann = await sign_in(shared_stores, org := new_id(), "ann")
    communities = shared_stores.communities
    ids = {
        each: (await communities.create(NewCommunity(org, each.value, "", each), ann, None)).id
        for each in CommunityVisibility
    }
    assert await communities.readable_by({*ids.values(), "nowhere"}, "ann") == {*ids.values()}
    assert await communities.readable_by({*ids.values(), "nowhere"}, "bob") == {ids[CommunityVisibility.PUBLIC]}
    assert await communities.readable_by([], "bob") == set()
