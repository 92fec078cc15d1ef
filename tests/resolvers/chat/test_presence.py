"""Presence: members of a community or conversation see who is online, unless a setting or a block hides it."""

from dataclasses import replace
from typing import Any

import pytest

from resolvers.chat import presence
from storage.chat.conversations.records import ConversationState
from storage.identity.audit import AuditAction, AuditFilter, command_line_actor
from storage.identity.roles import Role
from tests.resolvers.chat.test_conversations import ACCEPT, start
from tests.resolvers.people import ChatScenario, Person, SignIn
from tests.waiting import until

pytestmark = pytest.mark.anyio

ONLINE = "query ($id: ID!, $users: [ID!]!) { done: onlineUserIds(communityId: $id, userIds: $users) }"
EVENTS = """
subscription ($id: ID!, $users: [ID!]!) {
  presenceEvents(communityId: $id, userIds: $users) {
    type: __typename
    ... on OnlinePeopleChanged { onlineUserIds }
  }
}
"""
SHOW = "mutation ($shown: Boolean!) { done: setPresenceShown(shown: $shown) { shown enabled } }"
ENABLE = "mutation ($enabled: Boolean!) { done: setPresenceEnabled(enabled: $enabled) { shown enabled } }"


async def online(viewer: Person, community: str, *people: Person) -> Any:
    """Returns those of the people whom the viewer sees online."""
    return (await viewer.run(ONLINE, id=community, users=[each.id for each in people]))["done"]


async def connect(*people: Person) -> None:
    """Registers an open socket of each person, and waits until all are online."""
    for person in people:
        assert person.user is not None
        person.stores.online.connect(person.user.key)

    async def are_online() -> bool:
        ids = {person.id for person in people}
        return await people[0].stores.online.online_among("acme", ids) == ids

    await until(are_online)


async def test_members_see_who_is_online(chat: ChatScenario) -> None:
    await connect(chat.bob, chat.eve)
    assert await online(chat.ann, chat.community, chat.eve, chat.bob, chat.ann) == [chat.bob.id]


async def test_people_outside_a_community_see_nobody(chat: ChatScenario, sign_in: SignIn) -> None:
    private = await chat.ann.create_community("Cave", visibility="PRIVATE")
    namesake = await sign_in("ann", "elsewhere")
    await connect(chat.ann)
    variables = {"id": chat.community, "users": [chat.ann.id]}
    assert await chat.eve.code(ONLINE, **variables) == "FORBIDDEN"
    assert await namesake.code(ONLINE, **variables) == "NOT_FOUND"
    assert await chat.eve.code(ONLINE, id=private, users=[chat.ann.id]) == "NOT_FOUND"
    assert await chat.ann.code(ONLINE, id="nowhere", users=[chat.ann.id]) == "NOT_FOUND"


async def test_blocked_people_do_not_see_each_other_online(chat: ChatScenario) -> None:
    await connect(chat.ann, chat.bob)
    await chat.ann.block(chat.bob)
    assert await online(chat.ann, chat.community, chat.bob) == []
    assert await online(chat.bob, chat.community, chat.ann) == []
    await chat.ann.unblock(chat.bob)
    assert await online(chat.bob, chat.community, chat.ann) == [chat.ann.id]


async def test_hidden_and_deactivated_people_look_offline(chat: ChatScenario) -> None:
    await connect(chat.bob)
    assert await chat.bob.do(SHOW, shown=False) == {"shown": False, "enabled": True}
    assert await online(chat.ann, chat.community, chat.bob) == []
    assert (await chat.bob.do(SHOW, shown=True))["shown"]
    assert await online(chat.ann, chat.community, chat.bob) == [chat.bob.id]
    stores = chat.ann.stores
    await stores.user_administration.deactivate(command_line_actor("acme"), chat.bob.id, "")
    assert await online(chat.ann, chat.community, chat.bob) == []


async def test_banned_person_looks_offline(chat: ChatScenario) -> None:
    await connect(chat.bob)
    await chat.ann.run(
        'mutation ($c: ID!, $u: ID!) { banMember(communityId: $c, userId: $u, reason: "Spam") { __typename } }',
        c=chat.community,
        u=chat.bob.id,
    )
    assert await online(chat.ann, chat.community, chat.bob) == []


async def test_online_people_are_null_if_presence_is_disabled(chat: ChatScenario) -> None:
    await connect(chat.bob)
    assert await chat.ann.code(ENABLE, enabled=False) == "FORBIDDEN"
    admin = replace(chat.ann, roles=frozenset({Role.ADMIN}))
    await chat.ann.stores.mongo["users"].update_one({"_id.id": chat.ann.id}, {"$set": {"roles": ["ADMIN"]}})
    for _ in range(2):
        assert await admin.do(ENABLE, enabled=False) == {"shown": True, "enabled": False}
    assert await online(chat.ann, chat.community, chat.bob) is None
    assert (await admin.do(ENABLE, enabled=True))["enabled"]
    assert await online(chat.ann, chat.community, chat.bob) == [chat.bob.id]
    audit_filter = AuditFilter(action=AuditAction.PRESENCE_SET)
    entries = await chat.ann.stores.audit.list_entries("acme", audit_filter, None, 10)
    assert [entry.details[0].value for entry in entries] == ["on", "off"]


async def test_request_to_a_stranger_shows_no_presence(chat: ChatScenario) -> None:
    await connect(chat.ann, chat.eve)
    conversation = await start(chat.eve, chat.ann)
    await chat.eve.post(conversation)
    found = await chat.ann.stores.conversations.find(chat.ann.user, conversation)  # type: ignore[arg-type]
    assert found is not None
    assert found.state_of(chat.ann.id) is ConversationState.REQUESTED
    assert await online(chat.eve, conversation, chat.ann) == []
    assert await chat.ann.code(ONLINE, id=conversation, users=[chat.eve.id]) == "NOT_FOUND"
    await chat.ann.do(ACCEPT, id=conversation)
    assert await online(chat.eve, conversation, chat.ann) == [chat.ann.id]
    assert await chat.bob.code(ONLINE, id=conversation, users=[chat.ann.id]) == "NOT_FOUND"


async def test_people_met_anywhere_are_seen_without_a_community(chat: ChatScenario, sign_in: SignIn) -> None:
    await connect(chat.ann, chat.bob, chat.eve)
    seen = "query ($users: [ID!]!) { done: onlineUserIds(userIds: $users) }"
    everybody = [chat.ann.id, chat.bob.id, chat.eve.id]
    assert await chat.ann.do(seen, users=everybody) == [chat.ann.id, chat.bob.id]
    assert await chat.eve.do(seen, users=everybody) == []
    namesake = await sign_in("ann", "elsewhere")
    assert await namesake.code(seen, users=[chat.bob.id]) == "NOT_FOUND"
    conversation = await start(chat.eve, chat.ann)
    await chat.eve.post(conversation)
    assert await chat.ann.do(seen, users=everybody) == [chat.ann.id, chat.bob.id]
    assert await chat.eve.do(seen, users=everybody) == [chat.eve.id]
    await chat.ann.do(ACCEPT, id=conversation)
    assert await chat.ann.do(seen, users=everybody) == everybody
    await chat.bob.block(chat.ann)
    assert await chat.ann.do(seen, users=everybody) == [chat.ann.id, chat.eve.id]


@pytest.mark.parametrize("count", [0, presence.MAX_PEOPLE + 1])
async def test_number_of_people_is_limited(chat: ChatScenario, count: int) -> None:
    users = [f"user{number}" for number in range(count)]
    assert await chat.ann.code(ONLINE, id=chat.community, users=users) == "BAD_USER_INPUT"


async def test_changes_arrive_until_the_viewer_leaves(chat: ChatScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "READ_EVERY_S", 0.05)
    monkeypatch.setattr(presence, "READ_TOGETHER_S", 0.05)
    async with chat.bob.subscribed(EVENTS, id=chat.community, users=[chat.ann.id]) as events:
        assert await events.next_event() == {"type": "OnlinePeopleChanged", "onlineUserIds": []}
        await connect(chat.ann)
        assert (await events.next_event())["onlineUserIds"] == [chat.ann.id]
        await chat.ann.block(chat.bob)
        assert (await events.next_event())["onlineUserIds"] == []
        await chat.bob.leave(chat.community)
        (error,) = (await events.next_answer())["errors"]
        assert error["extensions"]["code"] == "FORBIDDEN"
