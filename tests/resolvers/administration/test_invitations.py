"""Invitations through the API: who may create and accept one, and what the answers show."""

import pytest

from storage.identity.roles import Role
from tests.resolvers.people import SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

CREATE = """
mutation ($input: CreateInvitationInput!) {
  done: createInvitation(input: $input) {
    url
    invitation { id state role email maxUses uses community { name } creator { id } revokedAt }
  }
}
"""
REVOKE = "mutation ($id: ID!) { done: revokeInvitation(id: $id) { state revokedAt } }"
ACCEPT = "mutation ($token: String!) { done: acceptInvitation(token: $token) { id roles } }"
NOTIFICATIONS = '{ notifications(latest: "now") { items { kind actor { id } community { name } } } }'
LIST = "query ($after: ID) { invitations(after: $after) { id state uses creator { id } community { id } } }"
COMMUNITIES = "{ done: invitations { communityId community { id } } }"


def token_of(url: str) -> str:
    return url.partition("#invitation=")[2]


async def test_only_administrators_invite(sign_in: SignIn) -> None:
    for role in (Role.MEMBER, Role.OPERATOR, Role.SERVICE):
        other = await sign_in(f"user-{role.value}", roles=[role])
        assert await other.code(CREATE, input={"role": "ADMIN"}) == "FORBIDDEN"
        assert await other.code(LIST) == "FORBIDDEN"
        assert await other.code(REVOKE, id="x") == "FORBIDDEN"


async def test_accepted_invitation_grants_role_and_counts_one_use(sign_in: SignIn) -> None:
    ada, bob = await sign_in("ada", roles=[Role.ADMIN]), await sign_in("bob")
    community = await ada.create_community("Hills")
    created = await ada.do(CREATE, input={"role": "OPERATOR", "communityId": community, "maxUses": 2})
    assert created["invitation"] == {
        "id": created["invitation"]["id"],
        "state": "OPEN",
        "role": "OPERATOR",
        "email": None,
        "maxUses": 2,
        "uses": 0,
        "community": {"name": "Hills"},
        "creator": {"id": "ada"},
        "revokedAt": None,
    }
    for _ in range(2):
        accepted = await bob.do(ACCEPT, token=token_of(created["url"]))
        assert accepted == {"id": "bob", "roles": ["MEMBER", "OPERATOR"]}
    await until_outbox_is_empty(ada.stores)
    added = {"kind": "ADDED_TO_COMMUNITY", "actor": None, "community": {"name": "Hills"}}
    assert (await bob.run(NOTIFICATIONS))["notifications"]["items"] == [added]
    (listed,) = (await ada.run(LIST))["invitations"]
    assert listed == {
        "id": created["invitation"]["id"],
        "state": "OPEN",
        "uses": 1,
        "creator": {"id": "ada"},
        "community": {"id": community},
    }
    assert (await ada.do(REVOKE, id=listed["id"]))["state"] == "REVOKED"
    eve = await sign_in("eve")
    assert await eve.code(ACCEPT, token=token_of(created["url"])) == "CONFLICT"
    assert await eve.code(ACCEPT, token="unknown") == "NOT_FOUND"


async def test_private_community_is_shown_to_its_members_only(sign_in: SignIn) -> None:
    ada, boss = [await sign_in(id_, roles=[Role.ADMIN]) for id_ in ("ada", "boss")]
    community = await ada.create_community("Cave", visibility="PRIVATE")
    created = await ada.do(CREATE, input={"communityId": community})
    assert created["invitation"]["community"] == {"name": "Cave"}
    shown, hidden = {"communityId": community, "community": {"id": community}}, {"communityId": None, "community": None}
    assert await boss.do(COMMUNITIES) == [hidden]
    add = "mutation ($c: ID!, $u: ID!) { addMember(communityId: $c, userId: $u) { role } }"
    await ada.run(add, c=community, u=boss.id)
    assert await boss.do(COMMUNITIES) == [shown]
    await boss.leave(community)
    revoke = "mutation ($id: ID!) { done: revokeInvitation(id: $id) { communityId community { id } } }"
    assert await boss.do(revoke, id=created["invitation"]["id"]) == hidden


async def test_repeated_idempotency_key_shows_no_second_link(sign_in: SignIn) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    first = await ada.do(CREATE, input={"idempotencyKey": "k", "email": "Bob@Example.org"})
    second = await ada.do(CREATE, input={"idempotencyKey": "k", "email": "Bob@Example.org"})
    assert first["url"].startswith("/#invitation=")
    assert (second["url"], second["invitation"]) == (None, first["invitation"])
    assert first["invitation"]["email"] == "bob@example.org"
    assert await ada.code(CREATE, input={"idempotencyKey": "k", "role": "ADMIN"}) == "CONFLICT"


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("role", {"role": "SERVICE"}),
        ("email", {"email": "nobody"}),
        ("maxUses", {"maxUses": 0}),
        ("maxUses", {"maxUses": 1001}),
        ("maxUses", {"maxUses": 2, "email": "bob@example.org"}),
        ("expiresInHours", {"expiresInHours": 0}),
        ("expiresInHours", {"expiresInHours": 2161}),
        ("idempotencyKey", {"idempotencyKey": ""}),
    ],
)
async def test_invalid_invitation_names_the_field(
    shared_sign_in: SignIn, field: str, values: dict[str, object]
) -> None:
    ada = await shared_sign_in("ada", roles=[Role.ADMIN])
    assert (await ada.fails(CREATE, input=values))["field"] == field


async def test_invalid_link_names_the_argument(sign_in: SignIn) -> None:
    bob = await sign_in("bob")
    for token in ("", "x" * 201):
        assert (await bob.fails(ACCEPT, token=token))["field"] == "token"
    ada = await sign_in("ada", roles=[Role.ADMIN])
    assert await ada.code(CREATE, input={"communityId": "unknown"}) == "NOT_FOUND"
    assert await ada.code(REVOKE, id="unknown") == "NOT_FOUND"
