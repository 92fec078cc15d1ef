"""Search of posts: operators, and posts that nobody may find."""

import pytest

from storage.ids import post_key
from tests.resolvers.people import ChatScenario, Person, SignIn

pytestmark = pytest.mark.anyio

SEARCH = """
query ($query: String!) {
  done: searchPosts(query: $query, latest: "now") { items { post { id text } excerpt { text isMatch } } }
}
"""
DELETE = "mutation ($id: ID!) { deletePost(id: $id) { id } }"


async def found(person: Person, query: str) -> list[str]:
    page = await person.do(SEARCH, query=query)
    return [item["post"]["text"] for item in page["items"]]


async def test_posts_are_found_newest_first(chat: ChatScenario) -> None:
    await chat.ann.create_post("Fireworks 花火大会")
    await chat.bob.create_post("A firework https://example.com")
    await chat.bob.create_post("Rain", mediaUrls=["https://example.com/a.png"])
    assert await found(chat.eve, "firework") == ["A firework https://example.com", "Fireworks 花火大会"]
    assert await found(chat.eve, "大会") == ["Fireworks 花火大会"]
    assert await found(chat.eve, "firework from:bob has:link") == ["A firework https://example.com"]
    assert await found(chat.eve, "has:media") == ["Rain"]
    assert (await chat.eve.fails(SEARCH, query="in:Fishers x"))["term"] == "in:Fishers"


async def test_deleted_posts_and_their_terms_are_gone(chat: ChatScenario) -> None:
    id_ = await chat.ann.create_post("lighthouse")
    await chat.ann.run(DELETE, id=id_)
    assert await found(chat.ann, "lighthouse") == await found(chat.ann, "from:me") == []
    entry = await chat.ann.stores.mongo["post_terms"].find_one({"_id": post_key("acme", id_).document_id})
    assert entry is not None
    assert entry["terms"] == []


async def test_posts_of_blocked_authors_are_not_found(chat: ChatScenario) -> None:
    await chat.ann.create_post("lighthouse")
    await chat.bob.block(chat.ann)
    assert await found(chat.bob, "lighthouse") == await found(chat.bob, "from:ann") == []
    assert await found(chat.eve, "lighthouse") == ["lighthouse"]
    await chat.bob.unblock(chat.ann)
    assert await found(chat.bob, "lighthouse") == ["lighthouse"]


async def test_posts_of_muted_authors_are_not_found(chat: ChatScenario) -> None:
    await chat.ann.create_post("lighthouse")
    await chat.bob.run("mutation ($id: ID!) { muteUser(userId: $id) { __typename } }", id=chat.ann.id)
    assert await found(chat.bob, "lighthouse") == []


async def test_stale_search_entry_of_a_post_is_not_found(chat: ChatScenario) -> None:
    id_ = await chat.ann.create_post("lighthouse")
    key = {"_id": post_key("acme", id_).document_id}
    await chat.ann.stores.mongo["posts"].update_one(key, {"$set": {"text": "harbour"}})
    assert await found(chat.ann, "lighthouse") == []


async def test_other_organization_finds_no_posts(sign_in: SignIn) -> None:
    ann, twin = await sign_in("ann"), await sign_in("ann", "other")
    await ann.create_post("lighthouse")
    assert await found(twin, "lighthouse") == await found(twin, "from:me") == []
