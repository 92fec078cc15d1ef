"""Visibility of communities, requests to join, and people whom moderators add."""

import asyncio

import pytest

from server.graphql.broadcasts import RECHECK_EVERY_S
from storage.chat import community_changes
from storage.chat.memberships import removals_stream
from storage.identity.audit import AuditFilter
from tests.client import GraphQLFailed
from tests.resolvers.chat.test_events import COMMUNITY_EVENTS
from tests.resolvers.people import ChatScenario, Person, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

UPDATE = """
mutation ($id: ID!, $name: String, $visibility: CommunityVisibility) {
  done: updateCommunity(id: $id, name: $name, visibility: $visibility) { name description visibility }
}
"""
REQUEST = """
mutation ($id: ID!, $message: String! = "") {
  done: requestToJoin(communityId: $id, message: $message) { joined }
}
"""
REQUESTS = "query ($id: ID!) { joinRequests(communityId: $id) { user { id } message } }"
DECIDE = """
mutation ($id: ID!, $user: ID!, $approve: Boolean!) {
  done: decideJoinRequest(communityId: $id, userId: $user, approve: $approve) { memberCount }
}
"""
BAN = 'mutation ($id: ID!, $user: ID!) { banMember(communityId: $id, userId: $user, reason: "x") { reason } }'
JOIN = "mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }"
ADD = "mutation ($id: ID!, $user: ID!) { addMember(communityId: $id, userId: $user) { role } }"
UNBAN = "mutation ($id: ID!, $user: ID!) { unbanMember(communityId: $id, userId: $user) { id } }"
RACING_MUTATIONS: list[tuple[str, dict[str, bool]]] = [(BAN, {}), (DECIDE, {"approve": True}), (ADD, {})]
COMMUNITY_AS_SEEN = """
query ($id: ID!) { community(id: $id) { name memberCount joined members { id } topics { title } } }
"""
TOPICS = 'query ($id: ID!) { communityTopics(communityId: $id, latest: "now") { items { id } } }'
TOPIC = "query ($id: ID!) { topic(id: $id) { title } }"
KICK = "mutation ($id: ID!, $user: ID!) { kickMember(communityId: $id, userId: $user) { id } }"
NOTIFICATIONS = (
    '{ notifications(latest: "now") { items { kind actor { id } community { id joined } message { id } } } }'
)
ARRIVALS = """
subscription {
  notificationEvents { ... on NotificationArrived { notification { kind community { id joined } } } }
}
"""
USERS = 'query ($id: ID!) { users(query: "a", communityId: $id) { id } }'


async def set_visibility(person: Person, community: str, visibility: str) -> None:
    await person.run(UPDATE, id=community, visibility=visibility)


async def requests(person: Person, community: str) -> list[tuple[str, str]]:
    join_requests = (await person.run(REQUESTS, id=community))["joinRequests"]
    return [(each["user"]["id"], each["message"]) for each in join_requests]


async def test_owners_change_a_community(chat: ChatScenario) -> None:
    changed = await chat.ann.do(UPDATE, id=chat.community, name="Reef", visibility="LISTED")
    assert (changed["name"], changed["visibility"]) == ("Reef", "LISTED")
    assert await chat.bob.code(UPDATE, id=chat.community, name="Mine") == "FORBIDDEN"
    assert await chat.eve.code(UPDATE, id=chat.community, name="Mine") == "FORBIDDEN"


async def test_listed_community_hides_members_and_topics(chat: ChatScenario) -> None:
    await set_visibility(chat.ann, chat.community, "LISTED")
    visible_community = (await chat.eve.run(COMMUNITY_AS_SEEN, id=chat.community))["community"]
    assert (
        visible_community["memberCount"],
        visible_community["joined"],
        visible_community["members"],
        visible_community["topics"],
    ) == (2, False, [], [])
    codes = [await chat.eve.code(query, id=chat.community) for query in (TOPICS, USERS, JOIN)]
    assert codes == ["FORBIDDEN"] * 3
    assert await chat.eve.code(TOPIC, id=chat.topic) == "NOT_FOUND"
    visible_community = (await chat.bob.run(COMMUNITY_AS_SEEN, id=chat.community))["community"]
    assert (len(visible_community["members"]), len(visible_community["topics"])) == (2, 1)


async def test_requests_are_approved_or_refused(chat: ChatScenario) -> None:
    await set_visibility(chat.ann, chat.community, "LISTED")
    assert await chat.eve.do(REQUEST, id=chat.community) == {"joined": False}
    await asyncio.gather(*(chat.eve.do(REQUEST, id=chat.community, message="hi") for _ in range(5)))
    assert await requests(chat.ann, chat.community) == [("eve", "hi")]
    assert await chat.bob.code(REQUESTS, id=chat.community) == "FORBIDDEN"
    assert await chat.bob.code(DECIDE, id=chat.community, user="eve", approve=True) == "FORBIDDEN"
    decisions = [chat.ann.do(DECIDE, id=chat.community, user="eve", approve=True) for _ in range(5)]
    assert {each["memberCount"] for each in await asyncio.gather(*decisions)} == {3}
    assert await requests(chat.ann, chat.community) == []
    await chat.eve.leave(chat.community)
    await chat.eve.run(REQUEST, id=chat.community)
    await chat.ann.run(DECIDE, id=chat.community, user="eve", approve=False)
    assert await chat.ann.code(DECIDE, id=chat.community, user="eve", approve=True) == "CONFLICT"
    await chat.eve.run(REQUEST, id=chat.community)
    await chat.ann.run(BAN, id=chat.community, user="eve")
    assert await requests(chat.ann, chat.community) == []
    assert await chat.eve.code(REQUEST, id=chat.community) == "FORBIDDEN"


async def test_requests_that_wait_are_limited(
    chat: ChatScenario, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(community_changes, "MAX_JOIN_REQUESTS", 2)
    await set_visibility(chat.ann, chat.community, "LISTED")
    people = [await sign_in(f"p{number}") for number in range(4)]
    codes = await asyncio.gather(*(person.code(REQUEST, id=chat.community) for person in people))
    assert sorted(str(code) for code in codes) == ["None"] * 2 + ["RATE_LIMITED"] * 2
    assert len(await requests(chat.ann, chat.community)) == 2


async def test_leaving_withdraws_a_request(chat: ChatScenario) -> None:
    await set_visibility(chat.ann, chat.community, "LISTED")
    await chat.eve.run(REQUEST, id=chat.community)
    await asyncio.gather(*(chat.eve.leave(chat.community) for _ in range(3)))
    assert await requests(chat.ann, chat.community) == []
    assert await chat.ann.code(DECIDE, id=chat.community, user="eve", approve=True) == "CONFLICT"


async def test_each_decision_leaves_one_audit_entry(chat: ChatScenario) -> None:
    ann, community = chat.ann, chat.community
    for _ in range(2):
        await set_visibility(ann, community, "LISTED")
        await ann.run(ADD, id=community, user="eve")
    await chat.eve.leave(community)
    await chat.eve.run(REQUEST, id=community)
    await asyncio.gather(*(ann.run(DECIDE, id=community, user="eve", approve=False) for _ in range(3)))
    await chat.eve.run(REQUEST, id=community)
    await asyncio.gather(*(ann.run(DECIDE, id=community, user="eve", approve=True) for _ in range(3)))
    entries = await ann.stores.audit.list_entries("acme", AuditFilter(), None, 50)
    assert [(entry.action.name, entry.target_id) for entry in reversed(entries)] == [
        ("COMMUNITY_CHANGED", community),
        ("COMMUNITY_MEMBER_ADDED", "eve"),
        ("COMMUNITY_JOIN_REFUSED", "eve"),
        ("COMMUNITY_MEMBER_ADDED", "eve"),
    ]


async def test_person_is_banned_or_added_but_never_both(chat: ChatScenario) -> None:
    await set_visibility(chat.ann, chat.community, "LISTED")
    for _ in range(5):
        await chat.eve.run(REQUEST, id=chat.community)
        acts = [chat.ann.execute(query, id=chat.community, user="eve", **more) for query, more in RACING_MUTATIONS]
        ban, *_ = await asyncio.gather(*acts)
        visible_community = (await chat.eve.run(COMMUNITY_AS_SEEN, id=chat.community))["community"]
        # A membership that is added during the ban lets the person write again. The ban is then refused (UNAVAILABLE).
        assert visible_community["joined"] == bool(ban["errors"])
        await chat.ann.run(BAN, id=chat.community, user="eve")
        await chat.ann.run(UNBAN, id=chat.community, user="eve")


async def test_public_community_is_joined_by_a_request(chat: ChatScenario) -> None:
    assert await chat.eve.do(REQUEST, id=chat.community) == {"joined": True}


async def test_subscription_ends_when_the_community_is_hidden(chat: ChatScenario) -> None:
    assert RECHECK_EVERY_S < 4
    async with chat.eve.subscribed(COMMUNITY_EVENTS, community=chat.community) as events:
        await chat.ann.run(UPDATE, id=chat.community, name="Secret", visibility="PRIVATE")
        assert (await events.next_event())["community"] is None
        with pytest.raises(GraphQLFailed) as failure:
            await events.next_event()
    assert failure.value.codes == ["FORBIDDEN"]
    communities = (await chat.eve.run("{ communities { id } }"))["communities"]
    assert communities == []
    assert await chat.eve.code(JOIN, id=chat.community) == "NOT_FOUND"


async def test_each_change_of_visibility_rechecks_subscribers(chat: ChatScenario) -> None:
    for visibility in ("PRIVATE", "PRIVATE", "PUBLIC"):
        await set_visibility(chat.ann, chat.community, visibility)
    await until_outbox_is_empty(chat.ann.stores)
    events = await chat.ann.stores.events.read(removals_stream(chat.community), 0)
    assert [each.kind for each in events] == ["MemberRemoved"] * 2
    assert await chat.ann.stores.communities.departures(chat.community) == 2


async def additions(person: Person) -> list[tuple[str | None, str | None]]:
    """Returns actor and community of each notification that the person was added to a community, newest first."""
    await until_outbox_is_empty(person.stores)
    items = (await person.run(NOTIFICATIONS))["notifications"]["items"]
    added = [each for each in items if each["kind"] == "ADDED_TO_COMMUNITY"]
    assert all(each["message"] is None for each in added)
    return [((each["actor"] or {}).get("id"), (each["community"] or {}).get("id")) for each in added]


async def test_approved_person_is_notified_once(chat: ChatScenario) -> None:
    await set_visibility(chat.ann, chat.community, "LISTED")
    await chat.eve.run(REQUEST, id=chat.community)
    async with chat.eve.subscribed(ARRIVALS) as events:
        decisions = (chat.ann.run(DECIDE, id=chat.community, user="eve", approve=True) for _ in range(5))
        await asyncio.gather(*decisions)
        notification = (await events.next_event())["notification"]
    assert notification == {"kind": "ADDED_TO_COMMUNITY", "community": {"id": chat.community, "joined": True}}
    assert await additions(chat.eve) == [("ann", chat.community)]
    await chat.bob.leave(chat.community)
    await chat.bob.run(REQUEST, id=chat.community)
    await chat.ann.run(DECIDE, id=chat.community, user="bob", approve=False)
    assert await additions(chat.bob) == []


async def test_each_addition_by_a_moderator_is_notified(chat: ChatScenario) -> None:
    await set_visibility(chat.ann, chat.community, "PRIVATE")
    for _ in range(2):
        await asyncio.gather(*(chat.ann.run(ADD, id=chat.community, user="eve") for _ in range(3)))
        await until_outbox_is_empty(chat.ann.stores)
        added = await additions(chat.eve)
        await chat.ann.run(KICK, id=chat.community, user="eve")
    assert added == [("ann", chat.community)] * 2
    # The person may not see the private community any more.
    assert await additions(chat.eve) == [("ann", None)] * 2
    assert (await additions(chat.ann), await additions(chat.bob)) == ([], [])


async def test_addition_is_hidden_by_mutes_and_blocks(chat: ChatScenario) -> None:
    await chat.eve.run("mutation ($id: ID!) { muteCommunity(communityId: $id) { id } }", id=chat.community)
    await chat.ann.run(ADD, id=chat.community, user="eve")
    assert await additions(chat.eve) == []
    await chat.eve.run("mutation ($id: ID!) { unmuteCommunity(communityId: $id) { id } }", id=chat.community)
    assert await additions(chat.eve) == [("ann", chat.community)]
    await chat.eve.block(chat.ann)
    assert await additions(chat.eve) == []
