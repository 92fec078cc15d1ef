"""Posts as clients make, see and delete them: what is checked, shown, and hidden."""

import pytest

from storage.identity.mentions import find_hashtags
from tests.resolvers.people import CREATE_POST, Person, SignIn

pytestmark = pytest.mark.anyio

POST = """
fragment post on Post {
  id timestamp text mediaUrls hashtags author { id } mentions { handle } linkPreview { title imageUrl }
  fanOut { postId state total delivered failed }
}
"""
READ = "query ($id: ID!) { post(id: $id) { ...post } }" + POST
PAGES = {
    "localFeed": 'localFeed(latest: "now") { items { text } }',
    "posts": 'posts(authorId: "bob", latest: "now") { items { text } }',
    "hashtagPosts": 'hashtagPosts(tag: "#Tide", latest: "now") { items { text } }',
    "homeFeed": 'homeFeed(latest: "now") { items { text } }',
}
DELETE = "mutation ($id: ID!) { deletePost(id: $id) { ...post } }" + POST


async def read(person: Person, id_: str) -> dict[str, object]:
    post: dict[str, object] = (await person.run(READ, id=id_))["post"]
    return post


async def pages(person: Person) -> dict[str, list[str]]:
    answer = await person.run(f"{{ {' '.join(PAGES.values())} }}")
    return {name: [item["text"] for item in answer[name]["items"]] for name in PAGES}


async def test_a_post_shows_what_it_is_made_of(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    text = "Ebb @bob #Tide #２０２６ #狼煙 see https://example.org/"
    id_ = await ann.create_post(text, mediaUrls=["https://example.org/a.png"])
    found = await read(ann, id_)
    assert (found["text"], found["hashtags"]) == (text, ["tide", "狼煙"])
    assert found["mediaUrls"] == ["/images/signed/https://example.org/a.png"]
    assert found["mentions"] == [{"handle": "bob"}]
    assert found["fanOut"] == {"postId": id_, "state": "PENDING", "total": 0, "delivered": 0, "failed": 0}
    assert (await read(bob, id_))["fanOut"] is None


async def test_an_author_sees_the_own_post_in_the_next_query_of_all_timelines(sign_in: SignIn) -> None:
    bob = await sign_in("bob")
    for n in range(5):
        await bob.create_post(f"{n} #tide")
        assert {texts[0] for texts in (await pages(bob)).values()} == {f"{n} #tide"}


async def test_who_is_blocked_is_on_no_timeline_and_comes_back_when_unblocked(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    id_ = await bob.create_post("#tide")
    await ann.block(bob)
    assert await pages(ann) == {key: [] for key in PAGES}
    assert await ann.code(READ, id=id_) == "NOT_FOUND"
    await ann.unblock(bob)
    assert await pages(ann) == {**{key: ["#tide"] for key in PAGES}, "homeFeed": []}
    assert (await read(ann, id_))["text"] == "#tide"


async def test_a_deleted_post_is_gone_everywhere_and_twice_is_once(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    id_ = await bob.create_post("#tide @ann", mediaUrls=["https://example.org/a.png"])
    for _ in range(2):
        gone = (await bob.run(DELETE, id=id_))["deletePost"]
        assert (gone["id"], gone["text"], gone["mediaUrls"], gone["hashtags"]) == (id_, "", [], [])
    assert await ann.code(READ, id=id_) == "NOT_FOUND"
    assert await pages(bob) == {key: [] for key in PAGES}
    other = await bob.create_post("mine")
    assert await ann.code(DELETE, id=other) == "FORBIDDEN"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": " \n"}, "text"),
        ({"text": "x" * 4001}, "text"),
        ({"text": "x", "mediaUrls": ["ftp://example.org/a"]}, "mediaUrls"),
        ({"text": "x", "mediaUrls": ["javascript:alert(1)"]}, "mediaUrls"),
        ({"text": "x", "mediaUrls": ["https://example.org/a b"]}, "mediaUrls"),
        ({"text": "x", "mediaUrls": ["https://example.org/" + "a" * 2048]}, "mediaUrls"),
        ({"text": "x", "mediaUrls": ["https://example.org/a.png"] * 11}, "mediaUrls"),
        ({"text": "x", "idempotencyKey": ""}, "idempotencyKey"),
    ],
)
async def test_what_can_not_be_posted_says_why(sign_in: SignIn, wrong: dict[str, object], field: str) -> None:
    extensions = await (await sign_in("ann")).fails(CREATE_POST, input=wrong)
    assert (extensions["code"], extensions["field"]) == ("BAD_USER_INPUT", field)


async def test_a_repeated_key_gives_the_post_and_with_other_arguments_is_a_conflict(sign_in: SignIn) -> None:
    ann, _ = await sign_in("ann"), await sign_in("bob")
    ids = {await ann.create_post("once", idempotencyKey="k") for _ in range(3)}
    assert len(ids) == 1
    assert await ann.code(CREATE_POST, input={"text": "twice", "idempotencyKey": "k"}) == "CONFLICT"
    assert (await pages(ann))["localFeed"] == ["once"]


async def test_pages_of_every_timeline_follow_its_rule(sign_in: SignIn) -> None:
    bob = await sign_in("bob")
    ids = [await bob.create_post(f"{n} #tide") for n in range(7)]
    stamps = [str((await read(bob, id_))["timestamp"]) for id_ in ids]
    assert stamps == sorted(stamps)
    query = "query ($at: Timestamp!) {{ page: {}{}oldest: $at, limit: 2) {{ items {{ text }} hasOlder hasNewer }} }}"
    for name, arguments in {"localFeed": "(", "posts": '(authorId: "bob", ', "hashtagPosts": '(tag: "tide", '}.items():
        page = (await bob.run(query.format(name, arguments), at=stamps[3]))["page"]
        assert page == {"items": [{"text": "3 #tide"}, {"text": "4 #tide"}], "hasOlder": True, "hasNewer": True}


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#Tide, #tide!", ["tide"]),
        ("＃狼煙 #ｆｕｌｌ", ["狼煙", "full"]),
        ("#1 #2026 #1a", ["1a"]),
        ("https://example.org/#part a#b ##c", []),
        ("(#one)#two", ["one", "two"]),
        ("#" + "a" * 101, []),
    ],
)
def test_hashtags_are_found_and_folded(text: str, tags: list[str]) -> None:
    assert find_hashtags(text) == tags
