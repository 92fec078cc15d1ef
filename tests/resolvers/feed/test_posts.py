"""Post mutations and queries: checks of input, fields, timelines, and blocked authors."""

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


async def texts_by_timeline(person: Person) -> dict[str, list[str]]:
    answer = await person.run(f"{{ {' '.join(PAGES.values())} }}")
    return {name: [item["text"] for item in answer[name]["items"]] for name in PAGES}


async def test_post_shows_its_fields(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    text = "Ebb @bob #Tide #２０２６ #狼煙 see https://example.org/"
    id_ = await ann.create_post(text, mediaUrls=["https://example.org/a.png"])
    post = await read(ann, id_)
    assert (post["text"], post["hashtags"]) == (text, ["tide", "狼煙"])
    assert post["mediaUrls"] == ["/images/signed/https://example.org/a.png"]
    assert post["mentions"] == [{"handle": "bob"}]
    assert post["fanOut"] == {"postId": id_, "state": "PENDING", "total": 0, "delivered": 0, "failed": 0}
    assert (await read(bob, id_))["fanOut"] is None


async def test_names_in_words_and_addresses_mention_nobody(sign_in: SignIn) -> None:
    ann = await sign_in("ann")
    for name in ("bob", "caf"):
        await sign_in(name)
    text = "@caf\u00e9 @cafe\u0301 https://mastodon.social/@bob mastodon.social/@bob @bob@example.com [@bob](https://a.example)"
    assert (await read(ann, await ann.create_post(text)))["mentions"] == []
    assert (await read(ann, await ann.create_post("\uff20bob\u3055\u3093")))["mentions"] == [{"handle": "bob"}]


@pytest.mark.parametrize("tag", ["caf\u00e9", "#CAFE\u0301", "\uff03\uff43\uff41\uff46\u00e9"])
async def test_hashtag_is_found_in_every_equal_form(sign_in: SignIn, tag: str) -> None:
    ann = await sign_in("ann")
    await ann.create_post("#cafe\u0301 #\u0939\u093f\u0928\u094d\u0926\u0940")
    query = 'query ($tag: String!) { hashtagPosts(tag: $tag, latest: "now") { items { hashtags } } }'
    hashtags = ["caf\u00e9", "\u0939\u093f\u0928\u094d\u0926\u0940"]
    assert (await ann.run(query, tag=tag))["hashtagPosts"]["items"] == [{"hashtags": hashtags}]


async def test_created_post_is_on_every_timeline_at_once(sign_in: SignIn) -> None:
    bob = await sign_in("bob")
    for n in range(5):
        await bob.create_post(f"{n} #tide")
        assert {texts[0] for texts in (await texts_by_timeline(bob)).values()} == {f"{n} #tide"}


async def test_blocked_author_is_on_no_timeline_until_unblocked(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    id_ = await bob.create_post("#tide")
    await ann.block(bob)
    assert await texts_by_timeline(ann) == {key: [] for key in PAGES}
    assert await ann.code(READ, id=id_) == "NOT_FOUND"
    await ann.unblock(bob)
    assert await texts_by_timeline(ann) == {**{key: ["#tide"] for key in PAGES}, "homeFeed": []}
    assert (await read(ann, id_))["text"] == "#tide"


async def test_deleted_post_is_gone_from_every_timeline(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    id_ = await bob.create_post("#tide @ann", mediaUrls=["https://example.org/a.png"])
    for _ in range(2):
        deleted = (await bob.run(DELETE, id=id_))["deletePost"]
        assert (deleted["id"], deleted["text"], deleted["mediaUrls"], deleted["hashtags"]) == (id_, "", [], [])
    assert await ann.code(READ, id=id_) == "NOT_FOUND"
    assert await texts_by_timeline(bob) == {key: [] for key in PAGES}
    other = await bob.create_post("mine")
    assert await ann.code(DELETE, id=other) == "FORBIDDEN"


@pytest.mark.parametrize(
    ("input_", "field"),
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
async def test_invalid_post_names_field(shared_sign_in: SignIn, input_: dict[str, object], field: str) -> None:
    extensions = await (await shared_sign_in("ann")).fails(CREATE_POST, input=input_)
    assert (extensions["code"], extensions["field"]) == ("BAD_USER_INPUT", field)


async def test_repeated_key_returns_post_or_conflicts(sign_in: SignIn) -> None:
    ann, _ = await sign_in("ann"), await sign_in("bob")
    ids = {await ann.create_post("once", idempotencyKey="k") for _ in range(3)}
    assert len(ids) == 1
    assert await ann.code(CREATE_POST, input={"text": "twice", "idempotencyKey": "k"}) == "CONFLICT"
    assert (await texts_by_timeline(ann))["localFeed"] == ["once"]


async def test_post_timelines_follow_timeline_rule(sign_in: SignIn) -> None:
    bob = await sign_in("bob")
    ids = [await bob.create_post(f"{n} #tide") for n in range(7)]
    timestamps = [str((await read(bob, id_))["timestamp"]) for id_ in ids]
    assert timestamps == sorted(timestamps)
    query = "query ($at: Timestamp!) {{ page: {}{}oldest: $at, limit: 2) {{ items {{ text }} hasOlder hasNewer }} }}"
    for name, arguments in {"localFeed": "(", "posts": '(authorId: "bob", ', "hashtagPosts": '(tag: "tide", '}.items():
        page = (await bob.run(query.format(name, arguments), at=timestamps[3]))["page"]
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
def test_find_hashtags_normalizes_tags_and_skips_other_text(text: str, tags: list[str]) -> None:
    assert find_hashtags(text) == tags
