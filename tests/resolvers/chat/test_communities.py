"""Communities: creating, listing, joining and leaving; members and topics (docs/semantics.md, 2)."""

import asyncio
from typing import Any

import pytest

from tests.resolvers.people import Person, Room, SignIn

pytestmark = pytest.mark.anyio

LIST = """
query ($joined: Boolean, $after: ID, $limit: Int! = 50) {
  communities(joined: $joined, after: $after, limit: $limit) { id name }
}
"""
COMMUNITY = "query ($id: ID!) { community(id: $id) { name description memberCount joined } }"
MEMBERS = """
query ($id: ID!, $after: ID, $limit: Int! = 50) {
  community(id: $id) { members(after: $after, limit: $limit) { id handle } }
}
"""
TOPICS = """
query ($id: ID!, $oldest: Timestamp, $latest: Timestamp, $limit: Int! = 50, $inclusive: Boolean! = true) {
  communityTopics(communityId: $id, oldest: $oldest, latest: $latest, limit: $limit, inclusive: $inclusive) {
    items { id title lastActivity } hasOlder hasNewer oldest newest
  }
}
"""
LATEST = "query ($id: ID!, $limit: Int! = 20) { community(id: $id) { topics(limit: $limit) { title } } }"
TRENDING = """
query ($limit: Int! = 10) {
  trendingTopics(limit: $limit) { topic { title lastMessage { id } } messagesPerMinute }
}
"""
NOWHERE = "01aaaaaaaaaaaaaaaaaaaaaaaa"


async def names(person: Person, **arguments: Any) -> list[str]:
    return [community["name"] for community in (await person.run(LIST, **arguments))["communities"]]


async def about(person: Person, community: str) -> dict[str, Any]:
    found: dict[str, Any] = (await person.run(COMMUNITY, id=community))["community"]
    return found


async def topics(person: Person, community: str, **bounds: Any) -> dict[str, Any]:
    page: dict[str, Any] = (await person.run(TOPICS, id=community, **bounds))["communityTopics"]
    return page


async def test_founder_is_the_first_member(sign_in: SignIn) -> None:
    ann = await sign_in("ann")
    community = await ann.found("Fishers", description="Of the bay")
    expected = {"name": "Fishers", "description": "Of the bay", "memberCount": 1, "joined": True}
    assert await about(ann, community) == expected


async def test_community_shows_its_basics_to_non_members(room: Room) -> None:
    assert await about(room.eve, room.community) == {
        "name": "Fishers",
        "description": "",
        "memberCount": 2,
        "joined": False,
    }


async def test_join_and_leave_are_idempotent(room: Room) -> None:
    for _ in range(2):
        await room.eve.join(room.community)
        assert (await about(room.eve, room.community))["memberCount"] == 3
    for _ in range(2):
        await room.eve.leave(room.community)
        assert (await about(room.eve, room.community))["memberCount"] == 2
    assert not (await about(room.eve, room.community))["joined"]


async def test_member_count_holds_under_concurrent_joins_and_leaves(room: Room, sign_in: SignIn) -> None:
    people = [await sign_in(f"crowd{number}") for number in range(6)]
    await asyncio.gather(*(person.join(room.community) for person in people for _ in range(2)))
    assert (await about(room.ann, room.community))["memberCount"] == 8
    await asyncio.gather(*(person.leave(room.community) for person in people[:4] for _ in range(2)))
    assert (await about(room.ann, room.community))["memberCount"] == 4


async def test_communities_are_paged_by_folded_name(sign_in: SignIn) -> None:
    ann = await sign_in("ann")
    for name in ("pier", "Anchor", "Ｂuoy", "anchor", "Zeal", "狼煙"):
        await ann.found(name)
    everything = await names(ann)
    assert [name.casefold() for name in everything] == ["anchor", "anchor", "ｂuoy", "pier", "zeal", "狼煙"]
    seen: list[str] = []
    after = None
    while page := (await ann.run(LIST, after=after, limit=2))["communities"]:
        assert len(page) == 2
        seen += [community["name"] for community in page]
        after = page[-1]["id"]
    assert seen == everything


async def test_joined_selects_joined_or_other_communities(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    for person, name in ((ann, "a"), (bob, "b"), (ann, "c"), (bob, "d")):
        await person.found(name)
    assert await names(ann) == await names(ann, joined=None) == ["a", "b", "c", "d"]
    assert await names(ann, joined=True) == ["a", "c"]
    assert await names(ann, joined=False) == ["b", "d"]
    first = (await ann.run(LIST, joined=False, limit=1))["communities"][0]["id"]
    assert await names(ann, joined=False, after=first) == ["d"]
    assert await names(ann, joined=True, after=first) == ["c"]


async def test_list_after_an_unknown_id_is_not_found(room: Room) -> None:
    assert await room.ann.code(LIST, after=NOWHERE) == "NOT_FOUND"
    assert await room.ann.code(MEMBERS, id=room.community, after="nobody") == "NOT_FOUND"


async def test_members_are_paged_by_handle(room: Room, sign_in: SignIn) -> None:
    for id_, handle in (("u1", "zoe"), ("u2", "aaron"), ("u3", "mika")):
        await (await sign_in(id_, handle=handle)).join(room.community)
    seen: list[str] = []
    after = None
    while page := (await room.eve.run(MEMBERS, id=room.community, after=after, limit=2))["community"]["members"]:
        seen += [member["handle"] for member in page]
        after = page[-1]["id"]
    assert seen == ["aaron", "ann", "bob", "mika", "zoe"]


async def test_list_of_members_continues_after_one_who_left(room: Room) -> None:
    await room.ann.leave(room.community)
    page = (await room.eve.run(MEMBERS, id=room.community, after="ann"))["community"]["members"]
    assert [member["id"] for member in page] == ["bob"]


async def test_create_topic_by_a_non_member_is_forbidden(room: Room) -> None:
    create = 'mutation ($id: ID!) { createTopic(input: {communityId: $id, title: "Nets"}) { id } }'
    assert await room.eve.code(create, id=room.community) == "FORBIDDEN"
    assert await room.bob.code(create, id=room.community) is None


async def test_topics_are_paged_by_last_activity(room: Room) -> None:
    nets, buoys = await room.ann.open_topic(room.community, "Nets"), await room.ann.open_topic(room.community, "Buoys")
    await room.ann.post(room.topic)
    posted = await room.bob.post(nets)
    page = await topics(room.eve, room.community, latest="now")
    assert [topic["title"] for topic in page["items"]] == ["Nets", "Tides", "Buoys"]
    assert page["newest"] == page["items"][0]["lastActivity"] == posted["timestamp"]
    assert (page["hasOlder"], page["hasNewer"]) == (False, False)
    first = await topics(room.eve, room.community, latest="now", limit=2)
    assert (first["hasOlder"], first["hasNewer"]) == (True, False)
    rest = await topics(room.eve, room.community, latest=first["oldest"], inclusive=False)
    assert [topic["id"] for topic in rest["items"]] == [buoys]
    assert (rest["hasOlder"], rest["hasNewer"]) == (False, True)
    ascending = await topics(room.eve, room.community, oldest="0.000000")
    assert [topic["title"] for topic in ascending["items"]] == ["Buoys", "Tides", "Nets"]


async def test_paging_misses_no_concurrently_created_topic(room: Room) -> None:
    opened = await asyncio.gather(*(room.ann.open_topic(room.community) for _ in range(7)))
    seen: list[str] = []
    bounds: dict[str, Any] = {"latest": "now"}
    while (page := await topics(room.ann, room.community, limit=3, **bounds))["items"]:
        seen += [topic["id"] for topic in page["items"]]
        bounds = {"latest": page["oldest"], "inclusive": False}
    assert sorted(seen) == sorted([*opened, room.topic])


async def test_community_topics_are_the_most_recently_active(room: Room) -> None:
    nets = await room.ann.open_topic(room.community, "Nets")
    await room.ann.post(room.topic)
    found = (await room.eve.run(LATEST, id=room.community))["community"]["topics"]
    assert found == [{"title": "Tides"}, {"title": "Nets"}]
    await room.ann.post(nets)
    assert (await room.eve.run(LATEST, id=room.community, limit=1))["community"]["topics"] == [{"title": "Nets"}]


async def test_trending_topics_rank_the_whole_organization(room: Room) -> None:
    nets, _ = await room.ann.open_topic(room.community, "Nets"), await room.ann.open_topic(room.community, "Quiet")
    await asyncio.gather(*(room.bob.post(room.topic) for _ in range(4)), *(room.bob.post(nets) for _ in range(9)))
    found = (await room.eve.run(TRENDING))["trendingTopics"]
    assert [trend["topic"]["title"] for trend in found] == ["Nets", "Tides"]
    rates = [trend["messagesPerMinute"] for trend in found]
    assert rates[0] / rates[1] == pytest.approx(9 / 4, rel=0.01)
    assert rates[0] == pytest.approx(9 / 5, rel=0.05)
    assert [trend["topic"]["lastMessage"] for trend in found] == [None, None]
    await asyncio.gather(*(room.bob.post(room.topic) for _ in range(9)))
    assert (await room.eve.run(TRENDING, limit=1))["trendingTopics"][0]["topic"]["title"] == "Tides"


async def test_topics_of_another_organization_do_not_trend(room: Room, sign_in: SignIn) -> None:
    await room.ann.post(room.topic)
    assert (await (await sign_in("zoe", "elsewhere")).run(TRENDING))["trendingTopics"] == []
