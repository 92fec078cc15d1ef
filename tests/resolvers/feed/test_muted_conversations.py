"""A mute of a post hides what happens in its conversation: from notifications only, and from the muting person only."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from storage.identity.mutes import Mute, MuteStore, MuteSubject
from storage.ids import UserKey
from storage.mongo import Mongo
from tests.resolvers.people import Person, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

MUTE = "mutation ($id: ID!, $until: DateTime) { done: mutePost(postId: $id, until: $until) { id subject subjectId } }"
UNMUTE = "mutation ($id: ID!) { done: unmutePost(postId: $id) { id muted } }"
DELETE = "mutation ($id: ID!) { deletePost(id: $id) { id } }"
REPOST = "mutation ($id: ID!) { done: repost(postId: $id) { id } }"
REACT = 'mutation ($id: ID!) { addPostReaction(postId: $id, emoji: "👍") { id } }'
SUMMARY = '{ notifications(latest: "now") { items { kind subjectId post { id } } } unreadNotificationCount }'
MUTES = "{ myMutes(of: POST) { id subjectId post { id text } } }"
MUTED = "query ($id: ID!) { done: post(id: $id) { muted } }"
EVENTS = "subscription { notificationEvents { ... on NotificationArrived { notification { post { text } } } } }"


@pytest.fixture
async def people(sign_in: SignIn) -> tuple[Person, Person, Person]:
    """Ann, Bob and Cat."""
    return await sign_in("ann"), await sign_in("bob"), await sign_in("cat")


async def reply(person: Person, parent: str, text: str = "reply") -> str:
    return await person.create_post(text, inReplyTo=parent)


async def kinds_of(person: Person) -> list[str]:
    """Returns the kinds of the person's notifications in the order of the alphabet. All of them are unread."""
    await until_outbox_is_empty(person.stores)
    answer = await person.run(SUMMARY)
    kinds = sorted(each["kind"] for each in answer["notifications"]["items"])
    assert answer["unreadNotificationCount"] == len(kinds)
    return kinds


async def mutes_of(person: Person) -> list[dict[str, Any]]:
    mutes: list[dict[str, Any]] = (await person.run(MUTES))["myMutes"]
    return mutes


async def is_muted(person: Person, id_: str) -> bool:
    return bool((await person.do(MUTED, id=id_))["muted"])


async def cause_everything(people: tuple[Person, Person, Person], post: str) -> None:
    """Lets Cat do everything with Bob's post that notifies Bob, and mention him elsewhere in its conversation."""
    _, bob, cat = people
    await reply(cat, post)
    await cat.create_post("quote", quoteOf=post)
    for query in (REPOST, REACT):
        await cat.run(query, id=post)
    beside = await reply(cat, post)
    await reply(cat, beside, f"Hello @{bob.id}")


EVERYTHING = ["MENTION", "QUOTE", "REACTION", "REPLY", "REPLY", "REPOST"]


async def test_nothing_in_a_muted_conversation_is_notified(people: tuple[Person, Person, Person]) -> None:
    ann, bob, _ = people
    root = await ann.create_post("root")
    post = await reply(bob, root)
    await cause_everything(people, post)
    assert await kinds_of(bob) == EVERYTHING
    mute = await bob.do(MUTE, id=post)
    assert mute == {"id": f"POST:{root}", "subject": "POST", "subjectId": root}
    assert await kinds_of(bob) == []
    await cause_everything(people, await reply(bob, post))
    assert await kinds_of(bob) == []
    assert await kinds_of(ann) == ["REPLY"]
    assert await bob.do(UNMUTE, id=post) == {"id": post, "muted": False}
    assert (await kinds_of(bob)).count("QUOTE") == 2


async def test_other_conversations_are_still_notified(people: tuple[Person, Person, Person]) -> None:
    _, bob, cat = people
    muted, other = await bob.create_post("muted"), await bob.create_post("other")
    await bob.run(MUTE, id=muted)
    await cause_everything(people, other)
    assert await kinds_of(bob) == EVERYTHING
    quote = await cat.create_post("A quote begins a conversation", quoteOf=muted)
    own = await reply(bob, quote)
    await reply(cat, own)
    assert (await kinds_of(bob)).count("REPLY") == 3


async def test_posts_say_whether_their_conversation_is_muted(people: tuple[Person, Person, Person]) -> None:
    ann, bob, cat = people
    root = await ann.create_post("root")
    replies = [first := await reply(bob, root), await reply(cat, first)]
    repost = (await cat.do(REPOST, id=root))["id"]
    await bob.run(MUTE, id=repost)
    assert [await is_muted(bob, each) for each in (root, *replies, repost)] == [True] * 4
    assert not await is_muted(bob, await cat.create_post("quote", quoteOf=root))
    assert [await is_muted(person, root) for person in (ann, cat)] == [False] * 2


async def test_list_shows_the_first_post_until_it_is_hidden(people: tuple[Person, Person, Person]) -> None:
    ann, bob, _ = people
    root = await ann.create_post("root")
    await bob.run(MUTE, id=root)
    await bob.run(MUTE, id=await reply(bob, root))
    shown = {"id": f"POST:{root}", "subjectId": root, "post": {"id": root, "text": "root"}}
    assert await mutes_of(bob) == [shown]
    await bob.block(ann)
    assert await mutes_of(bob) == [{**shown, "post": None}]
    assert await bob.do(UNMUTE, id=root) is None
    assert await mutes_of(bob) == []
    assert await bob.code(UNMUTE, id=root) == await bob.code(MUTE, id=root) == "NOT_FOUND"


async def test_deletion_of_the_first_post_ends_its_mutes(people: tuple[Person, Person, Person]) -> None:
    ann, bob, cat = people
    root, other = await ann.create_post("root"), await ann.create_post("other")
    post = await reply(bob, root)
    for person in (bob, cat):
        for id_ in (root, other):
            await person.run(MUTE, id=id_)
    await bob.run(DELETE, id=post)
    assert len(await mutes_of(bob)) == 2
    left = await reply(cat, root)
    await ann.run(DELETE, id=root)
    for person in (bob, cat):
        assert [each["subjectId"] for each in await mutes_of(person)] == [other]
    assert await bob.code(MUTE, id=root) == "NOT_FOUND"
    await bob.run(MUTE, id=left)
    assert await is_muted(bob, await reply(ann, left))
    assert [each["post"] for each in await mutes_of(bob) if each["subjectId"] == root] == [None]
    await bob.run(UNMUTE, id=root)
    assert len(await mutes_of(bob)) == 1


class LateMuteStore(MuteStore):
    """Stores a mute after a deletion that begins when the post was already found."""

    def __init__(self, mongo: Mongo, delete: Callable[[], Awaitable[object]]) -> None:
        super().__init__(mongo)
        self._delete = delete

    async def mute(self, owner: UserKey, subject: MuteSubject, subject_id: str, until: datetime | None) -> Mute:
        await self._delete()
        return await super().mute(owner, subject, subject_id, until)


async def test_mute_of_a_post_deleted_meanwhile_does_not_stay(people: tuple[Person, Person, Person]) -> None:
    ann, bob, _ = people
    post = await ann.create_post("root")
    late = LateMuteStore(bob.stores.mongo, lambda: ann.run(DELETE, id=post))
    slow = replace(bob, stores=replace(bob.stores, mutes=late))
    assert await slow.code(MUTE, id=post) == "NOT_FOUND"
    assert await mutes_of(bob) == []


async def test_mute_while_replies_arrive_hides_all_of_them(people: tuple[Person, Person, Person]) -> None:
    ann, bob, cat = people
    root, other = await ann.create_post("root"), await ann.create_post("other")

    async def reply_often(person: Person) -> None:
        for n in range(5):
            await reply(person, root, f"{person.id} {n}")

    async with ann.subscribed(EVENTS) as events:
        await asyncio.gather(reply_often(bob), ann.run(MUTE, id=root), reply_often(cat))
        assert await kinds_of(ann) == []
        await reply(cat, root, "hidden")
        await until_outbox_is_empty(ann.stores)
        await reply(cat, other, "elsewhere")
        texts = [(await events.next_event())["notification"]["post"]["text"]]
        while texts[-1] != "elsewhere":
            texts.append((await events.next_event())["notification"]["post"]["text"])
    assert "hidden" not in texts
    await ann.run(UNMUTE, id=root)
    assert await kinds_of(ann) == ["REPLY"] * 12


async def test_posts_of_muted_conversations_stay_in_lists(people: tuple[Person, Person, Person]) -> None:
    ann, bob, _ = people
    root = await ann.create_post("root")
    await bob.run(MUTE, id=root)
    await reply(ann, root, "still here")
    page = 'query ($id: ID!) { post(id: $id) { replies(latest: "now") { items { text } } } }'
    assert (await bob.run(page, id=root))["post"]["replies"]["items"] == [{"text": "still here"}]
    feed = await bob.run('{ localFeed(latest: "now") { items { text } } }')
    assert feed["localFeed"]["items"] == [{"text": "root"}]


async def test_notifications_name_the_post_that_groups_them(people: tuple[Person, Person, Person]) -> None:
    ann, bob, cat = people
    post = await ann.create_post("root")
    for person in (bob, cat):
        await reply(person, post)
    await cause_everything((bob, ann, cat), post)
    await until_outbox_is_empty(ann.stores)
    items = (await ann.run(SUMMARY))["notifications"]["items"]
    groups = {(each["kind"], each["subjectId"]) for each in items if each["kind"] != "MENTION"}
    assert groups == {(kind, post) for kind in ("REPLY", "QUOTE", "REACTION", "REPOST")}
    assert [each["subjectId"] for each in items if each["kind"] == "MENTION"] == [None]
    await ann.run(DELETE, id=post)
    left = (await ann.run(SUMMARY))["notifications"]["items"]
    assert {(each["kind"], each["subjectId"]) for each in left if each["kind"] == "REPLY"} == {("REPLY", post)}
