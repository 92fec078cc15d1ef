"""Moderation through the API: who may do what, what each person sees, and what errors say."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from storage.identity.roles import Role
from tests.client import GraphQLFailed
from tests.resolvers.people import DELETE, TOPIC_EVENTS, ChatScenario, Person, SignIn

pytestmark = pytest.mark.anyio

SET_ROLE = """
mutation ($c: ID!, $u: ID!, $role: CommunityRole!) {
  done: setCommunityRole(communityId: $c, userId: $u, role: $role) { user { id } role }
}
"""
KICK = "mutation ($c: ID!, $u: ID!) { done: kickMember(communityId: $c, userId: $u) { memberCount } }"
BAN = """
mutation ($c: ID!, $u: ID!, $until: DateTime, $reason: String!) {
  done: banMember(communityId: $c, userId: $u, until: $until, reason: $reason) {
    user { id } bannedBy { id } reason until
  }
}
"""
UNBAN = "mutation ($c: ID!, $u: ID!) { done: unbanMember(communityId: $c, userId: $u) { id } }"
MUTE = """
mutation ($c: ID!, $u: ID!, $until: DateTime!) {
  done: muteMember(communityId: $c, userId: $u, until: $until) { mutedUntil }
}
"""
UNMUTE = "mutation ($c: ID!, $u: ID!) { done: unmuteMember(communityId: $c, userId: $u) { id } }"
BANS = "query ($c: ID!) { communityBans(communityId: $c) { user { id } reason } }"
MEMBERS = """
query ($c: ID!, $role: CommunityRole) { communityMembers(communityId: $c, role: $role) { user { id } role mutedUntil } }
"""
ONE_MEMBER = """
query ($c: ID!, $u: ID!, $role: CommunityRole) { communityMembers(communityId: $c, userId: $u, role: $role) { role } }
"""
VIEWER_ROLE = "query ($c: ID!) { community(id: $c) { viewerRole } }"


async def error_of(person: Person, query: str, /, **variables: Any) -> dict[str, Any]:
    """Executes an operation that is refused, and returns the error."""
    (error,) = (await person.execute(query, **variables))["errors"]
    return dict(error)


async def viewer_role(person: Person, chat: ChatScenario) -> str | None:
    role: str | None = (await person.run(VIEWER_ROLE, c=chat.community))["community"]["viewerRole"]
    return role


WITHOUT_OWNER = "{ done: communitiesWithoutOwner { id name memberCount } }"
DEACTIVATE = 'mutation ($id: ID!) { deactivateUser(userId: $id, reason: "left") { id } }'
SET_VISIBILITY = """
mutation ($id: ID!, $visibility: CommunityVisibility!) { updateCommunity(id: $id, visibility: $visibility) { id } }
"""
SET_ROLE_OF = """
mutation ($community: ID!, $user: ID!, $role: CommunityRole!) {
  done: setCommunityRole(communityId: $community, userId: $user, role: $role) { role }
}
"""
MEMBERS_OF = "query ($community: ID!) { done: communityMembers(communityId: $community) { user { id } role } }"


async def test_members_are_filtered_by_user_and_role(chat: ChatScenario) -> None:
    async def listed(user_id: str, role: str | None = None) -> list[dict[str, str]]:
        found: list[dict[str, str]] = (await chat.eve.run(ONE_MEMBER, c=chat.community, u=user_id, role=role))[
            "communityMembers"
        ]
        return found

    assert await listed("ann") == await listed("ann", "OWNER") == [{"role": "OWNER"}]
    assert await listed("ann", "MEMBER") == await listed("eve") == []


async def test_founder_owns_the_community_and_sets_roles(chat: ChatScenario) -> None:
    roles = [await viewer_role(person, chat) for person in (chat.ann, chat.bob, chat.eve)]
    assert roles == ["OWNER", "MEMBER", None]
    done = await chat.ann.do(SET_ROLE, c=chat.community, u=chat.bob.id, role="MODERATOR")
    assert done == {"user": {"id": "bob"}, "role": "MODERATOR"}
    assert await viewer_role(chat.bob, chat) == "MODERATOR"
    members = (await chat.eve.run(MEMBERS, c=chat.community, role="MODERATOR"))["communityMembers"]
    assert members == [{"user": {"id": "bob"}, "role": "MODERATOR", "mutedUntil": None}]
    error = await error_of(chat.bob, SET_ROLE, c=chat.community, u=chat.bob.id, role="OWNER")
    assert (error["extensions"]["code"], error["message"]) == (
        "FORBIDDEN",
        "Only an owner of the community can change roles.",
    )
    error = await error_of(chat.ann, "mutation ($c: ID!) { leaveCommunity(communityId: $c) { id } }", c=chat.community)
    assert error["extensions"]["code"] == "CONFLICT"
    error = await error_of(chat.ann, SET_ROLE, c=chat.community, u=chat.eve.id, role="OWNER")
    assert (error["extensions"]["code"], error["extensions"]["field"]) == ("BAD_USER_INPUT", "userId")


async def test_members_and_non_members_cannot_moderate(chat: ChatScenario, sign_in: SignIn) -> None:
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    zoe = await sign_in("zoe", "elsewhere", [Role.MEMBER, Role.ADMIN])
    for person, code in ((chat.bob, "FORBIDDEN"), (chat.eve, "FORBIDDEN"), (zoe, "NOT_FOUND")):
        for query, variables in (
            (KICK, {}),
            (BAN, {"reason": "x"}),
            (UNBAN, {}),
            (MUTE, {"until": later}),
            (UNMUTE, {}),
            (SET_ROLE, {"role": "OWNER"}),
        ):
            error = await error_of(person, query, c=chat.community, u=chat.bob.id, **variables)
            assert error["extensions"]["code"] == code, query
        assert (await error_of(person, BANS, c=chat.community))["extensions"]["code"] == code
    assert await viewer_role(chat.bob, chat) == "MEMBER"


async def test_banned_person_loses_subscription_and_cannot_return(chat: ChatScenario) -> None:
    async with chat.bob.subscribed(TOPIC_EVENTS, topic=chat.topic) as events:
        ban = await chat.ann.do(BAN, c=chat.community, u=chat.bob.id, reason="spam")
        assert ban == {"user": {"id": "bob"}, "bannedBy": {"id": "ann"}, "reason": "spam", "until": None}
        with pytest.raises(GraphQLFailed) as failure:
            await events.next_event()
    assert failure.value.codes == ["FORBIDDEN"]
    error = await error_of(chat.bob, "mutation ($c: ID!) { joinCommunity(communityId: $c) { id } }", c=chat.community)
    assert (error["extensions"], error["message"]) == (
        {"code": "FORBIDDEN"},
        "You are banned from this community.",
    )
    assert (await chat.ann.run(BANS, c=chat.community))["communityBans"] == [{"user": {"id": "bob"}, "reason": "spam"}]
    await chat.ann.run(UNBAN, c=chat.community, u=chat.bob.id)
    await chat.bob.join(chat.community)
    assert (await chat.ann.do(KICK, c=chat.community, u=chat.bob.id)) == {"memberCount": 1}
    assert (await chat.ann.do(KICK, c=chat.community, u=chat.bob.id)) == {"memberCount": 1}
    await chat.bob.join(chat.community)


async def test_muted_member_reads_and_learns_until_when(chat: ChatScenario) -> None:
    later = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
    await chat.ann.post(chat.topic, "hello")
    done = await chat.ann.do(MUTE, c=chat.community, u=chat.bob.id, until=later.isoformat())
    assert datetime.fromisoformat(done["mutedUntil"]) == later
    assert await chat.bob.texts(chat.topic) == ["hello"]
    with pytest.raises(GraphQLFailed) as failure:
        await chat.bob.post(chat.topic, "no")
    (error,) = failure.value.errors
    assert error["extensions"] == {"code": "FORBIDDEN", "until": later.isoformat().replace("+00:00", "Z")}

    async def are_muted(viewer: Person) -> list[Any]:
        members = (await viewer.run(MEMBERS, c=chat.community))["communityMembers"]
        return [each["mutedUntil"] is not None for each in members]

    assert [await are_muted(viewer) for viewer in (chat.ann, chat.bob, chat.eve)] == [
        [False, True],
        [False, True],
        [False, False],
    ]
    await chat.ann.run(UNMUTE, c=chat.community, u=chat.bob.id)
    await chat.bob.post(chat.topic, "yes")


async def test_moderators_delete_messages_of_lower_ranks(chat: ChatScenario, sign_in: SignIn) -> None:
    cyd, dan = [await sign_in(name) for name in ("cyd", "dan")]
    for person in (cyd, dan):
        await person.join(chat.community)
    for person in (chat.bob, cyd):
        await chat.ann.run(SET_ROLE, c=chat.community, u=person.id, role="MODERATOR")
    by_ann, by_cyd, by_dan = [(await each.post(chat.topic, "x"))["id"] for each in (chat.ann, cyd, dan)]
    for id_ in (by_ann, by_cyd):
        assert (await error_of(chat.bob, DELETE, id=id_))["extensions"]["code"] == "FORBIDDEN"
    assert (await error_of(dan, DELETE, id=by_cyd))["extensions"]["code"] == "FORBIDDEN"
    assert (await chat.bob.do(DELETE, id=by_dan))["deletedAt"]
    assert (await chat.ann.do(DELETE, id=by_cyd))["deletedAt"]


async def test_admin_moderates_without_membership(chat: ChatScenario) -> None:
    admin = replace(chat.eve, roles=frozenset({Role.MEMBER, Role.ADMIN}))
    assert (await error_of(admin, KICK, c=chat.community, u=chat.ann.id))["extensions"]["code"] == "FORBIDDEN"
    await admin.run(BAN, c=chat.community, u=chat.bob.id, reason="spam")
    assert (await error_of(admin, SET_ROLE, c=chat.community, u=chat.ann.id, role="MEMBER"))["extensions"][
        "code"
    ] == "FORBIDDEN"
    assert await viewer_role(admin, chat) is None


@pytest.mark.parametrize("visibility", ["PUBLIC", "PRIVATE"])
async def test_admin_appoints_an_owner_where_none_can_act(chat: ChatScenario, sign_in: SignIn, visibility: str) -> None:
    admin = await sign_in("zoe", roles=[Role.MEMBER, Role.ADMIN])
    await chat.ann.run(SET_VISIBILITY, id=chat.community, visibility=visibility)
    name = "Fishers" if visibility == "PUBLIC" else None
    shown = {"id": f"CommunityWithoutOwner:{chat.community}", "name": name, "memberCount": 2}
    refusal = "FORBIDDEN" if visibility == "PUBLIC" else "NOT_FOUND"
    appoint = {"community": chat.community, "user": "bob", "role": "OWNER"}
    assert await admin.do(WITHOUT_OWNER) == []
    assert await admin.code(SET_ROLE_OF, **appoint) == refusal
    await admin.run(DEACTIVATE, id="ann")
    assert await admin.do(WITHOUT_OWNER) == [shown]
    assert await admin.do(MEMBERS_OF, community=chat.community) == [
        {"user": {"id": "ann"}, "role": "OWNER"},
        {"user": {"id": "bob"}, "role": "MEMBER"},
    ]
    assert await admin.code(SET_ROLE_OF, **{**appoint, "user": "ann"}) == "BAD_USER_INPUT"
    if visibility == "PRIVATE":
        assert await admin.code(SET_ROLE_OF, **{**appoint, "role": "MODERATOR"}) == "FORBIDDEN"
        assert await admin.code("query ($id: ID!) { community(id: $id) { id } }", id=chat.community) == "NOT_FOUND"
    assert await chat.bob.code(SET_ROLE_OF, **appoint) == "FORBIDDEN"
    assert (await admin.do(SET_ROLE_OF, **appoint))["role"] == "OWNER"
    assert await admin.do(WITHOUT_OWNER) == []
    assert await admin.code(SET_ROLE_OF, **{**appoint, "role": "MODERATOR"}) == refusal
    if visibility == "PRIVATE":
        assert await admin.code(MEMBERS_OF, community=chat.community) == "NOT_FOUND"


async def test_only_admins_list_communities_without_owner(chat: ChatScenario) -> None:
    assert await chat.ann.code(WITHOUT_OWNER) == "FORBIDDEN"
