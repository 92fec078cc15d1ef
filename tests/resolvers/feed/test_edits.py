"""editPost: who may edit, what the edit changes, and what it shows."""

import pytest

from tests.resolvers.people import Person, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

EDIT = "mutation ($id: ID!, $text: String!) { done: editPost(id: $id, text: $text) { ...post } }"
READ = "query ($id: ID!) { post(id: $id) { ...post } }"
POST = """
fragment post on Post { text hashtags editedAt mentions { id } versions { text writtenAt } }
"""
REPOST = "mutation ($id: ID!) { done: repost(postId: $id) { id } }"
TAGGED = 'query ($tag: String!) { hashtagPosts(tag: $tag, latest: "now") { items { text } } }'
FOUND = 'query ($query: String!) { searchPosts(query: $query, latest: "now") { items { post { text } } } }'
MENTIONS = '{ notifications(latest: "now") { items { kind post { text } } } }'


async def tagged(person: Person, tag: str) -> list[str]:
    return [each["text"] for each in (await person.run(TAGGED, tag=tag))["hashtagPosts"]["items"]]


async def found(person: Person, query: str) -> list[str]:
    return [each["post"]["text"] for each in (await person.run(FOUND, query=query))["searchPosts"]["items"]]


async def test_edit_moves_the_post_to_new_hashtags_and_words(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    id_ = await ann.create_post("harbour #sea @bob")
    edited = await ann.do(EDIT + POST, id=id_, text="mountain #hill @bob")
    assert edited == (await bob.run(READ + POST, id=id_))["post"]
    assert (edited["text"], edited["hashtags"]) == ("mountain #hill @bob", ["hill"])
    assert [each["text"] for each in edited["versions"]] == ["harbour #sea @bob"]
    assert edited["versions"][0]["writtenAt"] < edited["editedAt"]
    assert (await tagged(bob, "sea"), await tagged(bob, "hill")) == ([], ["mountain #hill @bob"])
    assert (await found(bob, "harbour"), await found(bob, "mountain")) == ([], ["mountain #hill @bob"])
    await until_outbox_is_empty(bob.stores)
    assert len((await bob.run(MENTIONS))["notifications"]["items"]) == 1


async def test_only_the_author_edits_a_post_with_content(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    id_ = await ann.create_post("news")
    assert await bob.code(EDIT + POST, id=id_, text="fake") == "FORBIDDEN"
    for text in ("", "x" * 4001):
        assert await ann.code(EDIT + POST, id=id_, text=text) == "BAD_USER_INPUT"
    repost = (await bob.do(REPOST, id=id_))["id"]
    assert await bob.code(EDIT + POST, id=repost, text="mine") == "CONFLICT"
    pictured = await ann.create_post("look", mediaUrls=["https://example.org/a.png"])
    assert (await ann.do(EDIT + POST, id=pictured, text=""))["text"] == ""
    unedited = (await ann.run(READ + POST, id=id_))["post"]
    assert (unedited["editedAt"], unedited["versions"]) == (None, [])
