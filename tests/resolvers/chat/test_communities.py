"""Communities: creating, listing, joining, leaving, members and topics (docs/semantics.md, 2)."""

import asyncio
from typing import Any

import pytest

from tests.execution import run_operation
from tests.resolvers.people import OPERATIONS, ChatScenario, Person, SignIn

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
  trendingTopics(limit: $limit) { topic { title lastMessage { id } } messagesPerMinute people }
}
"""
UNKNOWN_ID = "01aaaaaaaaaaaaaaaaaaaaaaaa"


async def community_names(person: Person, **arguments: Any) -> list[str]:
    return [community["name"] for community in (await person.run(LIST, **arguments))["communities"]]


async def community_fields(person: Person, community: str) -> dict[str, Any]:
    fields: dict[str, Any] = (await person.run(COMMUNITY, id=community))["community"]
    return fields


async def topics(person: Person, community: str, **bounds: Any) -> dict[str, Any]:
    page: dict[str, Any] = (await person.run(TOPICS, id=community, **bounds))["communityTopics"]
    return page


async def test_founder_is_the_first_member(sign_in: SignIn) -> None:
    ann = await sign_in("ann")
    community = await ann.create_community("Fishers", description="Of the bay")
    expected = {"name": "Fishers", "description": "Of the bay", "memberCount": 1, "joined": True}
    assert await community_fields(ann, community) == expected


async def test_community_shows_its_basics_to_non_members(chat: ChatScenario) -> None:
    assert await community_fields(chat.eve, chat.community) == {
        "name": "Fishers",
        "description": "",
        "memberCount": 2,
        "joined": False,
    }


async def test_join_and_leave_are_idempotent(chat: ChatScenario) -> None:
    for _ in range(2):
        await chat.eve.join(chat.community)
        assert (await community_fields(chat.eve, chat.community))["memberCount"] == 3
    for _ in range(2):
        await chat.eve.leave(chat.community)
        assert (await community_fields(chat.eve, chat.community))["memberCount"] == 2
    assert not (await community_fields(chat.eve, chat.community))["joined"]


async def test_next_query_of_a_socket_reads_facts_again(chat: ChatScenario) -> None:
    context, topic = (
        chat.bob.context,
        "query ($id: ID!) { topic(id: $id) { community { joined } lastMessage { text } } }",
    )
    await chat.ann.post(chat.topic, "Hello")

    async def read_topic() -> Any:
        data = (await run_operation(OPERATIONS, context, topic, {"id": chat.topic})).data
        assert data is not None
        return data["topic"]

    assert await read_topic() == {"community": {"joined": True}, "lastMessage": {"text": "Hello"}}
    await chat.bob.block(chat.ann)
    assert await read_topic() == {"community": {"joined": True}, "lastMessage": None}
    await chat.bob.leave(chat.community)
    assert await read_topic() == {"community": {"joined": False}, "lastMessage": None}


async def test_member_count_holds_under_concurrent_joins_and_leaves(chat: ChatScenario, sign_in: SignIn) -> None:
    people = [await sign_in(f"member{number}") for number in range(6)]
    await asyncio.gather(*(person.join(chat.community) for person in people for _ in range(2)))
    assert (await community_fields(chat.ann, chat.community))["memberCount"] == 8
    await asyncio.gather(*(person.leave(chat.community) for person in people[:4] for _ in range(2)))
    assert (await community_fields(chat.ann, chat.community))["memberCount"] == 4


async def test_communities_are_paged_by_folded_name(sign_in: SignIn) -> None:
    ann = await sign_in("ann")
    for name in ("pier", "Anchor", "Ｂuoy", "anchor", "Zeal", "狼煙"):
        await ann.create_community(name)
    all_names = await community_names(ann)
    assert [name.casefold() for name in all_names] == ["anchor", "anchor", "ｂuoy", "pier", "zeal", "狼煙"]
    items: list[str] = []
    after = None
    while page := (await ann.run(LIST, after=after, limit=2))["communities"]:
        assert len(page) == 2
        items += [community["name"] for community in page]
        after = page[-1]["id"]
    assert items == all_names


async def test_joined_selects_joined_or_other_communities(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    for person, name in ((ann, "a"), (bob, "b"), (ann, "c"), (bob, "d")):
        await person.create_community(name)
    assert await community_names(ann) == await community_names(ann, joined=None) == ["a", "b", "c", "d"]
    assert await community_names(ann, joined=True) == ["a", "c"]
    assert await community_names(ann, joined=False) == ["b", "d"]
    first = (await ann.run(LIST, joined=False, limit=1))["communities"][0]["id"]
    assert await community_names(ann, joined=False, after=first) == ["d"]
    assert await community_names(ann, joined=True, after=first) == ["c"]


async def test_list_after_an_unknown_id_is_not_found(chat: ChatScenario) -> None:
    assert await chat.ann.code(LIST, after=UNKNOWN_ID) == "NOT_FOUND"
    assert await chat.ann.code(MEMBERS, id=chat.community, after="nobody") == "NOT_FOUND"


async def test_members_are_paged_by_handle(chat: ChatScenario, sign_in: SignIn) -> None:
    for id_, handle in (("u1", "zoe"), ("u2", "aaron"), ("u3", "mika")):
        await (await sign_in(id_, handle=handle)).join(chat.community)
    items: list[str] = []
    after = None
    while page := (await chat.eve.run(MEMBERS, id=chat.community, after=after, limit=2))["community"]["members"]:
        items += [member["handle"] for member in page]
        after = page[-1]["id"]
    assert items == ["aaron", "ann", "bob", "mika", "zoe"]


async def test_list_of_members_continues_after_a_former_member(chat: ChatScenario) -> None:
    await chat.eve.join(chat.community)
    await chat.bob.leave(chat.community)
    page = (await chat.eve.run(MEMBERS, id=chat.community, after="bob"))["community"]["members"]
    assert [member["id"] for member in page] == ["eve"]


async def test_create_topic_by_a_non_member_is_forbidden(chat: ChatScenario) -> None:
    create = 'mutation ($id: ID!) { createTopic(input: {communityId: $id, title: "Nets"}) { id } }'
    assert await chat.eve.code(create, id=chat.community) == "FORBIDDEN"
    assert await chat.bob.code(create, id=chat.community) is None


async def test_topics_are_paged_by_last_activity(chat: ChatScenario) -> None:
    nets, buoys = (
        await chat.ann.create_topic(chat.community, "Nets"),
        await chat.ann.create_topic(chat.community, "Buoys"),
    )
    await chat.ann.post(chat.topic)
    last_message = await chat.bob.post(nets)
    page = await topics(chat.eve, chat.community, latest="now")
    assert [topic["title"] for topic in page["items"]] == ["Nets", "Tides", "Buoys"]
    assert page["newest"] == page["items"][0]["lastActivity"] == last_message["timestamp"]
    assert (page["hasOlder"], page["hasNewer"]) == (False, False)
    first = await topics(chat.eve, chat.community, latest="now", limit=2)
    assert (first["hasOlder"], first["hasNewer"]) == (True, False)
    remaining = await topics(chat.eve, chat.community, latest=first["oldest"], inclusive=False)
    assert [topic["id"] for topic in remaining["items"]] == [buoys]
    assert (remaining["hasOlder"], remaining["hasNewer"]) == (False, True)
    ascending = await topics(chat.eve, chat.community, oldest="0.000000")
    assert [topic["title"] for topic in ascending["items"]] == ["Buoys", "Tides", "Nets"]


async def test_paging_misses_no_concurrently_created_topic(chat: ChatScenario) -> None:
    created = await asyncio.gather(*(chat.ann.create_topic(chat.community) for _ in range(7)))
    items: list[str] = []
    bounds: dict[str, Any] = {"latest": "now"}
    while (page := await topics(chat.ann, chat.community, limit=3, **bounds))["items"]:
        items += [topic["id"] for topic in page["items"]]
        bounds = {"latest": page["oldest"], "inclusive": False}
    assert sorted(items) == sorted([*created, chat.topic])


async def test_community_topics_are_the_most_recently_active(chat: ChatScenario) -> None:
    nets = await chat.ann.create_topic(chat.community, "Nets")
    await chat.ann.post(chat.topic)
    latest = (await chat.eve.run(LATEST, id=chat.community))["community"]["topics"]
    assert latest == [{"title": "Tides"}, {"title": "Nets"}]
    await chat.ann.post(nets)
    assert (await chat.eve.run(LATEST, id=chat.community, limit=1))["community"]["topics"] == [{"title": "Nets"}]


async def test_trending_topics_are_ranked_by_number_of_people(chat: ChatScenario, sign_in: SignIn) -> None:
    nets, _ = await chat.ann.create_topic(chat.community, "Nets"), await chat.ann.create_topic(chat.community, "Quiet")
    await asyncio.gather(*(chat.bob.post(chat.topic) for _ in range(4)), *(chat.bob.post(nets) for _ in range(9)))
    assert (await chat.eve.run(TRENDING))["trendingTopics"] == []
    await asyncio.gather(chat.ann.post(nets), chat.ann.post(chat.topic))
    trends = (await chat.eve.run(TRENDING))["trendingTopics"]
    trends.sort(key=lambda trend: str(trend["topic"]["title"]))
    assert [trend["topic"]["title"] for trend in trends] == ["Nets", "Tides"]
    assert [trend["people"] for trend in trends] == [2, 2]
    rates = [trend["messagesPerMinute"] for trend in trends]
    assert rates[0] / rates[1] == pytest.approx(10 / 5, rel=0.01)
    assert rates[0] == pytest.approx(10 / 5, rel=0.05)
    assert [trend["topic"]["lastMessage"] for trend in trends] == [None, None]
    cat = await sign_in("cat")
    await cat.join(chat.community)
    await cat.post(chat.topic)
    assert (await chat.eve.run(TRENDING, limit=1))["trendingTopics"][0]["topic"]["title"] == "Tides"


async def test_topics_of_another_organization_do_not_trend(chat: ChatScenario, sign_in: SignIn) -> None:
    await chat.ann.post(chat.topic)
    assert (await (await sign_in("zoe", "elsewhere")).run(TRENDING))["trendingTopics"] == []
