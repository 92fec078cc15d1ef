"""Posting, reading, editing and deleting messages, as members see it (docs/semantics.md, 2)."""

import pytest

from storage.identity.roles import Role
from storage.ids import message_key
from storage.link_previews import LinkPreview
from tests.resolvers.people import DELETE, EDIT, POST, REACT, UNREACT, Room, SignIn

pytestmark = pytest.mark.anyio

MESSAGE = "query ($id: ID!) { message(id: $id) { id text deletedAt } }"
AROUND = """
query ($topic: ID!, $at: Timestamp!, $limit: Int! = 50) {
  messagesAround(topicId: $topic, timestamp: $at, limit: $limit) { items { text } hasOlder hasNewer }
}
"""


async def test_posted_message_is_on_the_page_and_found_by_id(room: Room) -> None:
    posted = await room.ann.post(room.topic, "Ebb at six", stampId="hello")
    assert (posted["text"], posted["author"]["id"], posted["topicId"]) == ("Ebb at six", "ann", room.topic)
    assert posted["stamp"] == {"id": "hello"}
    assert (posted["editedAt"], posted["deletedAt"], posted["reactions"], posted["mentions"]) == (None, None, [], [])
    assert (await room.bob.page(room.topic))["items"] == [posted]
    assert (await room.bob.run(MESSAGE, id=posted["id"]))["message"]["text"] == "Ebb at six"


async def test_timestamps_increase_with_every_message(room: Room) -> None:
    stamps = [(await room.ann.post(room.topic, str(number)))["timestamp"] for number in range(5)]
    assert stamps == sorted(set(stamps))


async def test_text_is_stored_as_written(room: Room) -> None:
    for text in ("x", "x" * 4000, " x ", "👨‍👩‍👧" * 500, "a\nb\tc", "\u0000", "狼煙"):
        assert (await room.ann.post(room.topic, text))["text"] == text
        assert (await room.bob.page(room.topic))["items"][0]["text"] == text


async def test_blank_long_or_malformed_text_is_refused(room: Room) -> None:
    empty: tuple[dict[str, str], ...] = (
        {},
        {"text": ""},
        {"text": " "},
        {"text": "\n\t\u3000\u2003"},
        {"text": " ", "stampId": "hello"},
    )
    long = ({"text": "x" * 4001}, {"text": "x" * 4001, "stampId": "hello"})
    surrogates = ({"text": "\ud800"}, {"text": "a\udfffb", "stampId": "hello"})
    for input_ in (*empty, *long, *surrogates):
        refusal = await room.ann.fails(POST, input={"topicId": room.topic, **input_})
        assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", "text"), input_
    assert (await room.ann.page(room.topic))["items"] == []


async def test_stamp_needs_no_text_and_must_exist(room: Room) -> None:
    posted = await room.ann.do(POST, input={"topicId": room.topic, "stampId": "hello"})
    assert (posted["text"], posted["stamp"]) == ("", {"id": "hello"})
    refusal = await room.ann.fails(POST, input={"topicId": room.topic, "text": "a", "stampId": "nonesuch"})
    assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", "stampId")
    null = await room.ann.do(POST, input={"topicId": room.topic, "text": "a", "stampId": None})
    assert null["stamp"] is None


MENTIONS = [
    ("@bob", ["bob"]),
    ("Hi @bob, @eve!", ["bob", "eve"]),
    ("@eve @bob @eve", ["eve", "bob"]),
    ("@BOB and @Bob", ["bob"]),
    ("こんにちは@bobさん", ["bob"]),
    ("(@bob) [@eve]", ["bob", "eve"]),
    ("@ann is me", ["ann"]),
    ("@bob-2 has a number", ["bob-2"]),
    ("@bob-", ["bob"]),
    ("@bob.", ["bob"]),
    ("mail bob@eve.example", []),
    ("@@bob", []),
    ("@nobody", []),
    ("@bobby", []),
    ("@bob_", []),
    ("@ bob", []),
    ("＠bob", []),
    (f"@{'b' * 30}", ["b" * 30]),
    (f"@{'b' * 31}", []),
]


async def test_mentions_are_resolved_in_the_order_of_the_text(room: Room, sign_in: SignIn) -> None:
    await sign_in("bob2", handle="bob")
    await sign_in("long", handle="b" * 40)
    for text, handles in MENTIONS:
        found = (await room.ann.post(room.topic, text))["mentions"]
        assert [user["handle"] for user in found] == handles, text


async def test_users_of_other_organizations_are_not_mentioned(room: Room, sign_in: SignIn) -> None:
    await sign_in("eve", "elsewhere", handle="zoe")
    assert (await room.ann.post(room.topic, "@zoe"))["mentions"] == []


async def test_text_mentions_at_most_fifty_users(room: Room, sign_in: SignIn) -> None:
    names = [f"crowd{number}" for number in range(52)]
    for name in names:
        await sign_in(name)
    mentioned = (await room.ann.post(room.topic, " ".join(f"@{name}" for name in names)))["mentions"]
    assert [user["handle"] for user in mentioned] == names[:50]


async def test_edit_replaces_text_and_mentions(room: Room) -> None:
    posted = await room.ann.post(room.topic, "Ebb at six @bob")
    edited = await room.ann.do(EDIT, id=posted["id"], text="Ebb at seven @eve")
    assert (edited["id"], edited["timestamp"], edited["text"]) == (
        posted["id"],
        posted["timestamp"],
        "Ebb at seven @eve",
    )
    assert edited["editedAt"] is not None
    assert [user["handle"] for user in edited["mentions"]] == ["eve"]
    assert (await room.bob.page(room.topic))["items"] == [edited]


async def test_edit_by_another_user_or_admin_is_forbidden(room: Room, sign_in: SignIn) -> None:
    posted = await room.ann.post(room.topic)
    admin = await sign_in("root", roles=[Role.ADMIN])
    await admin.join(room.community)
    for somebody in (room.bob, room.eve, admin):
        assert await somebody.code(EDIT, id=posted["id"], text="Changed") == "FORBIDDEN"
    assert await room.ann.texts(room.topic) == ["Hello"]


async def test_edit_obeys_the_limits_of_a_text(room: Room) -> None:
    posted = await room.ann.post(room.topic)
    for text in ("", " ", "x" * 4001, "\ud800"):
        refusal = await room.ann.fails(EDIT, id=posted["id"], text=text)
        assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", "text"), text


async def test_text_of_a_message_with_stamp_may_be_removed(room: Room) -> None:
    posted = await room.ann.post(room.topic, "Hello", stampId="hello")
    edited = await room.ann.do(EDIT, id=posted["id"], text="")
    assert (edited["text"], edited["stamp"]) == ("", {"id": "hello"})


async def test_former_member_cannot_read_edit_or_delete(room: Room) -> None:
    posted = await room.ann.post(room.topic)
    await room.ann.leave(room.community)
    for query, more in ((MESSAGE, {}), (EDIT, {"text": "Changed"}), (DELETE, {})):
        assert await room.ann.code(query, id=posted["id"], **more) == "FORBIDDEN"


async def test_deleted_message_becomes_a_tombstone_in_place(room: Room) -> None:
    await room.ann.post(room.topic, "before")
    posted = await room.ann.post(room.topic, "Secret @bob", stampId="hello")
    await room.ann.post(room.topic, "after")
    await room.bob.run(REACT, id=posted["id"], emoji="👍")
    await room.ann.run(EDIT, id=posted["id"], text="Secret again @bob")
    tombstone = await room.ann.do(DELETE, id=posted["id"])
    assert tombstone.pop("deletedAt") is not None
    assert tombstone == {
        "id": posted["id"],
        "timestamp": posted["timestamp"],
        "topicId": room.topic,
        "author": {"id": "ann"},
        "text": "",
        "stamp": None,
        "mentions": [],
        "reactions": [],
        "editedAt": None,
    }
    assert await room.bob.texts(room.topic) == ["before", "", "after"]
    assert (await room.bob.run(MESSAGE, id=posted["id"]))["message"]["text"] == ""
    stored = repr([document async for document in room.ann.stores.mongo["messages"].find()])
    assert "Secret" not in stored


async def test_delete_is_idempotent(room: Room) -> None:
    posted = await room.ann.post(room.topic)
    first = await room.ann.do(DELETE, id=posted["id"])
    assert await room.ann.do(DELETE, id=posted["id"]) == first


async def test_only_author_and_admin_delete(room: Room, sign_in: SignIn) -> None:
    posted = await room.ann.post(room.topic)
    operator, admin = await sign_in("op", roles=[Role.OPERATOR]), await sign_in("root", roles=[Role.ADMIN])
    await operator.join(room.community)
    for somebody in (room.bob, room.eve, operator):
        assert await somebody.code(DELETE, id=posted["id"]) == "FORBIDDEN"
    assert (await admin.do(DELETE, id=posted["id"]))["deletedAt"] is not None
    assert await room.ann.texts(room.topic) == [""]


async def test_admin_deletes_nothing_of_another_organization(room: Room, sign_in: SignIn) -> None:
    posted = await room.ann.post(room.topic)
    admin = await sign_in("root", "elsewhere", roles=[Role.ADMIN])
    assert await admin.code(DELETE, id=posted["id"]) == "NOT_FOUND"
    assert await room.ann.texts(room.topic) == ["Hello"]


async def test_tombstone_accepts_no_edit_or_reaction(room: Room) -> None:
    posted = await room.ann.post(room.topic)
    await room.bob.run(REACT, id=posted["id"], emoji="👍")
    tombstone = await room.ann.do(DELETE, id=posted["id"])
    assert await room.ann.code(EDIT, id=posted["id"], text="Back") == "CONFLICT"
    assert await room.bob.code(REACT, id=posted["id"], emoji="👍") == "CONFLICT"
    assert await room.bob.do(UNREACT, id=posted["id"], emoji="👍") == tombstone


async def test_timestamp_of_a_deleted_message_is_not_reused(room: Room) -> None:
    posted = await room.ann.post(room.topic)
    await room.ann.run(DELETE, id=posted["id"])
    again = await room.ann.post(room.topic)
    assert float(again["timestamp"]) > float(posted["timestamp"])
    assert again["id"] != posted["id"]


async def test_messages_around_are_half_older_half_newer(room: Room) -> None:
    posted = [await room.ann.post(room.topic, str(number)) for number in range(9)]
    page = (await room.bob.run(AROUND, topic=room.topic, at=posted[4]["timestamp"], limit=5))["messagesAround"]
    assert [item["text"] for item in page["items"]] == ["2", "3", "4", "5", "6"]
    assert (page["hasOlder"], page["hasNewer"]) == (True, True)


async def test_messages_around_now_are_refused(room: Room) -> None:
    refusal = await room.ann.fails(AROUND, topic=room.topic, at="now")
    assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", "timestamp")


async def test_preview_image_is_served_by_the_image_proxy(room: Room) -> None:
    url = "https://tides.example/"
    posted = await room.ann.post(room.topic, f"See {url}")
    for image, shown in (("https://tides.example/a.png", "/images/signed/https://tides.example/a.png"), (None, None)):
        preview = LinkPreview(url, "Tides", None, image, None)
        await room.ann.stores.messages.set_preview(message_key(posted["id"]), url, preview)
        query = "query ($id: ID!) { message(id: $id) { linkPreview { url title imageUrl siteName } } }"
        found = (await room.bob.run(query, id=posted["id"]))["message"]["linkPreview"]
        assert found == {"url": url, "title": "Tides", "imageUrl": shown, "siteName": None}


async def test_preview_stays_only_while_its_link_stays(room: Room) -> None:
    url = "https://tides.example/"
    posted = await room.ann.post(room.topic, f"See {url}")
    preview = LinkPreview(url, "Tides", None, None, None)
    await room.ann.stores.messages.set_preview(message_key(posted["id"]), url, preview)
    query = "query ($id: ID!) { message(id: $id) { linkPreview { url } } }"
    for text, shown in ((f"Look at {url}", {"url": url}), ("Nothing to see", None)):
        await room.ann.run(EDIT, id=posted["id"], text=text)
        assert (await room.bob.run(query, id=posted["id"]))["message"]["linkPreview"] == shown
