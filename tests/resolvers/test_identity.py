"""The viewer, lookup and search of users, and the list of blocked users."""

from typing import Any

import pytest

from storage.identity.roles import Role
from tests.resolvers.people import ChatScenario, Person, SignIn

pytestmark = pytest.mark.anyio

USER = "id handle name organizationId roles followerCount followingCount following blocked"
SEARCH = """
query ($search: String!, $community: ID, $limit: Int! = 10) {
  users(query: $search, communityId: $community, limit: $limit) { handle }
}
"""


async def search(person: Person, query: str, **more: Any) -> list[str]:
    return [user["handle"] for user in (await person.run(SEARCH, search=query, **more))["users"]]


async def test_viewer_is_the_signed_in_user_or_null(sign_in: SignIn) -> None:
    ann = await sign_in("ann-17", name="Ann Lee", handle="Ann", roles=[Role.OPERATOR])
    assert (await ann.run(f"{{ viewer {{ {USER} }} }}"))["viewer"] == {
        "id": "ann-17",
        "handle": "ann",
        "name": "Ann Lee",
        "organizationId": "acme",
        "roles": ["OPERATOR"],
        "followerCount": 0,
        "followingCount": 0,
        "following": False,
        "blocked": False,
    }
    assert await Person(sign_in.stores).run("{ viewer { id } }") == {"viewer": None}


async def test_user_is_found_by_id_or_null_with_error(sign_in: SignIn) -> None:
    ann = await sign_in("ann")
    await sign_in("bob", name="Bob")
    query = "query ($id: ID!) { user(id: $id) { name } }"
    assert await ann.run(query, id="bob") == {"user": {"name": "Bob"}}
    answer = await ann.execute(query, id="nobody")
    assert answer["data"] == {"user": None}
    assert answer["errors"][0]["extensions"] == {"code": "NOT_FOUND"}


@pytest.fixture
async def searcher(sign_in: SignIn) -> Person:
    """Returns ann, who searches. Signs in the users that searches find."""
    for id_, name in (
        ("mika", "Mika Sato"),
        ("mina", "Mina Mori"),
        ("sato", "Ken Sato"),
        ("kato", "Ren Kato"),
        ("u1", "佐藤 花子"),
        ("u2", "Ｍｉｋｅ"),
        ("u3", "ÉMILE"),
    ):
        await sign_in(id_, name=name)
    await sign_in("mikael", "elsewhere")
    return await sign_in("ann")


async def test_users_are_found_by_prefix(searcher: Person) -> None:
    for query, handles in (
        ("mi", ["mika", "mina", "u2"]),
        ("MIK", ["mika", "u2"]),
        ("@mika", ["mika"]),
        ("sato", ["mika", "sato"]),
        (" sato ", ["mika", "sato"]),
        ("mika s", ["mika"]),
        ("佐", ["u1"]),
        ("花", ["u1"]),
        ("mike", ["u2"]),
        ("émi", ["u3"]),
        ("ika", []),
        (".*", []),
        ("$", []),
    ):
        assert await search(searcher, query) == handles, query


async def test_search_returns_at_most_limit_users(searcher: Person) -> None:
    assert await search(searcher, "mi", limit=2) == ["mika", "mina"]
    assert await search(searcher, "a" * 100) == []
    assert await searcher.fails(SEARCH, search="a" * 101) == {
        "code": "BAD_USER_INPUT",
        "field": "query",
        "expected": "1 to 100 characters",
    }


async def test_search_lists_members_first_then_others_by_handle(searcher: Person, sign_in: SignIn) -> None:
    community = await searcher.create_community()
    for id_ in ("u2", "mina"):
        await (await sign_in(id_)).join(community)
    assert await search(searcher, "mi", community=community) == ["mina", "u2", "mika"]
    assert await search(searcher, "mi", community=community, limit=1) == ["mina"]
    assert await search(searcher, "mi", community=community, limit=2) == ["mina", "u2"]
    assert await search(searcher, "mi", community=None) == ["mika", "mina", "u2"]


async def test_search_finds_the_new_name_only(searcher: Person, sign_in: SignIn) -> None:
    community = await searcher.create_community()
    await (await sign_in("kato")).join(community)
    await sign_in("kato", name="Ren Abe")
    assert await search(searcher, "abe", community=community) == ["kato"]
    assert await search(searcher, "abe") == ["kato"]
    assert await search(searcher, "ren kato", community=community) == []


async def test_blocking_oneself_or_an_unknown_user_is_refused(chat: ChatScenario) -> None:
    block = "mutation ($id: ID!) { blockUser(userId: $id) { id } }"
    assert await chat.ann.fails(block, id="ann") == {
        "code": "BAD_USER_INPUT",
        "field": "userId",
        "expected": "the id of another user; you cannot block yourself",
    }
    assert await chat.ann.code(block, id="nobody") == "NOT_FOUND"
    assert await chat.ann.code(block.replace("blockUser", "unblockUser"), id="nobody") == "NOT_FOUND"


async def test_blocked_users_are_listed_by_handle_and_marked(chat: ChatScenario) -> None:
    for other in (chat.eve, chat.bob, chat.eve):
        await chat.ann.block(other)
    query = "{ blockedUsers { id blocked } }"
    expected = [{"id": "bob", "blocked": True}, {"id": "eve", "blocked": True}]
    assert (await chat.ann.run(query))["blockedUsers"] == expected
    assert (await chat.bob.run(query))["blockedUsers"] == []
    assert (await chat.bob.run('{ user(id: "ann") { blocked } }'))["user"] == {"blocked": False}
    await chat.ann.unblock(chat.bob)
    await chat.ann.unblock(chat.bob)
    assert (await chat.ann.run(query))["blockedUsers"] == expected[1:]


async def test_viewer_is_read_as_stored_now(sign_in: SignIn) -> None:
    ann, _bob = await sign_in("ann"), await sign_in("bob")
    before = await ann.run("{ viewer { followingCount } }")
    await ann.run('mutation { follow(userId: "bob") { id } }')
    after = await ann.run("{ viewer { followingCount } }")
    assert (before, after) == ({"viewer": {"followingCount": 0}}, {"viewer": {"followingCount": 1}})
