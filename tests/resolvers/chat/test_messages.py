"""Posting, reading, editing and deleting messages, as members see it (docs/semantics.md, 2)."""

import pytest

from storage.files.link_previews import LinkPreview, PreviewPicture
from storage.files.preview_pictures import preview_picture_id
from storage.identity.roles import Role
from storage.ids import message_key
from tests.resolvers.people import DELETE, EDIT, POST, REACT, UNREACT, ChatScenario, SignIn

pytestmark = pytest.mark.anyio

MESSAGE = "query ($id: ID!) { message(id: $id) { id text deletedAt } }"
AROUND = """
query ($topic: ID!, $at: Timestamp!, $limit: Int! = 50) {
  messagesAround(topicId: $topic, timestamp: $at, limit: $limit) { items { text } hasOlder hasNewer }
}
"""


async def test_posted_message_is_on_the_page_and_found_by_id(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic, "Ebb at six", stampId="hello")
    assert (message["text"], message["author"]["id"], message["topicId"]) == ("Ebb at six", "ann", chat.topic)
    assert message["stamp"] == {"id": "hello"}
    assert (message["editedAt"], message["deletedAt"], message["reactions"], message["mentions"]) == (
        None,
        None,
        [],
        [],
    )
    assert (await chat.bob.page(chat.topic))["items"] == [message]
    assert (await chat.bob.run(MESSAGE, id=message["id"]))["message"]["text"] == "Ebb at six"


async def test_timestamps_increase_with_every_message(chat: ChatScenario) -> None:
    timestamps = [(await chat.ann.post(chat.topic, str(number)))["timestamp"] for number in range(5)]
    assert timestamps == sorted(set(timestamps))


async def test_text_is_stored_as_written(chat: ChatScenario) -> None:
    for text in ("x", "x" * 4000, " x ", "👨‍👩‍👧" * 500, "a\nb\tc", "a\u0000", "狼煙"):
        assert (await chat.ann.post(chat.topic, text))["text"] == text
        assert (await chat.bob.page(chat.topic))["items"][0]["text"] == text


async def test_blank_long_or_malformed_text_is_refused(chat: ChatScenario) -> None:
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
        refusal = await chat.ann.fails(POST, input={"topicId": chat.topic, **input_})
        assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", "text"), input_
    assert (await chat.ann.page(chat.topic))["items"] == []


async def test_stamp_needs_no_text_and_must_exist(chat: ChatScenario) -> None:
    message = await chat.ann.do(POST, input={"topicId": chat.topic, "stampId": "hello"})
    assert (message["text"], message["stamp"]) == ("", {"id": "hello"})
    refusal = await chat.ann.fails(POST, input={"topicId": chat.topic, "text": "a", "stampId": "nonesuch"})
    assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", "stampId")
    without_stamp = await chat.ann.do(POST, input={"topicId": chat.topic, "text": "a", "stampId": None})
    assert without_stamp["stamp"] is None


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
    ("＠bob ＠ｅｖｅ", ["bob", "eve"]),
    ("@bobé @bobe\u0301 @bob.example.org", []),
    ("@bob@example.com https://mastodon.social/@bob", []),
    ("`@bob` **@ann**", ["ann"]),
    ("```\n@bob\n```", []),
    (f"@{'b' * 30}", ["b" * 30]),
    (f"@{'b' * 31}", []),
]


async def test_mentions_are_resolved_in_the_order_of_the_text(chat: ChatScenario, sign_in: SignIn) -> None:
    await sign_in("bob2", handle="bob")
    await sign_in("long", handle="b" * 40)
    for text, handles in MENTIONS:
        mentions = (await chat.ann.post(chat.topic, text))["mentions"]
        assert [user["handle"] for user in mentions] == handles, text


async def test_users_of_other_organizations_are_not_mentioned(chat: ChatScenario, sign_in: SignIn) -> None:
    await sign_in("eve", "elsewhere", handle="zoe")
    assert (await chat.ann.post(chat.topic, "@zoe"))["mentions"] == []


async def test_text_mentions_at_most_fifty_users(chat: ChatScenario, sign_in: SignIn) -> None:
    names = [f"member{number}" for number in range(52)]
    for name in names:
        await sign_in(name)
    mentions = (await chat.ann.post(chat.topic, " ".join(f"@{name}" for name in names)))["mentions"]
    assert [user["handle"] for user in mentions] == names[:50]


async def test_edit_replaces_text_and_mentions(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic, "Ebb at six @bob")
    edited = await chat.ann.do(EDIT, id=message["id"], text="Ebb at seven @eve")
    assert (edited["id"], edited["timestamp"], edited["text"]) == (
        message["id"],
        message["timestamp"],
        "Ebb at seven @eve",
    )
    assert edited["editedAt"] is not None
    assert [user["handle"] for user in edited["mentions"]] == ["eve"]
    assert (await chat.bob.page(chat.topic))["items"] == [edited]


async def test_edit_by_another_user_or_admin_is_forbidden(chat: ChatScenario, sign_in: SignIn) -> None:
    message = await chat.ann.post(chat.topic)
    admin = await sign_in("root", roles=[Role.ADMIN])
    await admin.join(chat.community)
    for person in (chat.bob, chat.eve, admin):
        assert await person.code(EDIT, id=message["id"], text="Changed") == "FORBIDDEN"
    assert await chat.ann.texts(chat.topic) == ["Hello"]


async def test_edit_obeys_the_limits_of_a_text(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic)
    for text in ("", " ", "x" * 4001, "\ud800"):
        refusal = await chat.ann.fails(EDIT, id=message["id"], text=text)
        assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", "text"), text


async def test_text_of_a_message_with_stamp_may_be_removed(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic, "Hello", stampId="hello")
    edited = await chat.ann.do(EDIT, id=message["id"], text="")
    assert (edited["text"], edited["stamp"]) == ("", {"id": "hello"})


async def test_former_member_cannot_read_edit_or_delete(chat: ChatScenario) -> None:
    message = await chat.bob.post(chat.topic)
    await chat.bob.leave(chat.community)
    for query, more in ((MESSAGE, {}), (EDIT, {"text": "Changed"}), (DELETE, {})):
        assert await chat.bob.code(query, id=message["id"], **more) == "FORBIDDEN"


async def test_deleted_message_becomes_a_tombstone_in_place(chat: ChatScenario) -> None:
    await chat.ann.post(chat.topic, "before")
    message = await chat.ann.post(chat.topic, "Secret @bob", stampId="hello")
    await chat.ann.post(chat.topic, "after")
    await chat.bob.run(REACT, id=message["id"], emoji="👍")
    await chat.ann.run(EDIT, id=message["id"], text="Secret again @bob")
    tombstone = await chat.ann.do(DELETE, id=message["id"])
    assert tombstone.pop("deletedAt") is not None
    assert tombstone == {
        "id": message["id"],
        "timestamp": message["timestamp"],
        "topicId": chat.topic,
        "author": {"id": "ann"},
        "text": "",
        "stamp": None,
        "mentions": [],
        "reactions": [],
        "editedAt": None,
    }
    assert await chat.bob.texts(chat.topic) == ["before", "", "after"]
    assert (await chat.bob.run(MESSAGE, id=message["id"]))["message"]["text"] == ""
    documents = repr([document async for document in chat.ann.stores.mongo["messages"].find()])
    assert "Secret" not in documents


async def test_delete_is_idempotent(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic)
    first = await chat.ann.do(DELETE, id=message["id"])
    assert await chat.ann.do(DELETE, id=message["id"]) == first


async def test_admin_deletes_messages_of_others_and_members_do_not(chat: ChatScenario, sign_in: SignIn) -> None:
    message = await chat.ann.post(chat.topic)
    operator, admin = await sign_in("op", roles=[Role.OPERATOR]), await sign_in("root", roles=[Role.ADMIN])
    await operator.join(chat.community)
    for person in (chat.bob, chat.eve, operator):
        assert await person.code(DELETE, id=message["id"]) == "FORBIDDEN"
    assert (await admin.do(DELETE, id=message["id"]))["deletedAt"] is not None
    assert await chat.ann.texts(chat.topic) == [""]


async def test_admin_deletes_nothing_of_another_organization(chat: ChatScenario, sign_in: SignIn) -> None:
    message = await chat.ann.post(chat.topic)
    admin = await sign_in("root", "elsewhere", roles=[Role.ADMIN])
    assert await admin.code(DELETE, id=message["id"]) == "NOT_FOUND"
    assert await chat.ann.texts(chat.topic) == ["Hello"]


async def test_tombstone_accepts_no_edit_or_reaction(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic)
    await chat.bob.run(REACT, id=message["id"], emoji="👍")
    tombstone = await chat.ann.do(DELETE, id=message["id"])
    assert await chat.ann.code(EDIT, id=message["id"], text="Back") == "CONFLICT"
    assert await chat.bob.code(REACT, id=message["id"], emoji="👍") == "CONFLICT"
    assert await chat.bob.do(UNREACT, id=message["id"], emoji="👍") == tombstone


async def test_timestamp_of_a_deleted_message_is_not_reused(chat: ChatScenario) -> None:
    message = await chat.ann.post(chat.topic)
    await chat.ann.run(DELETE, id=message["id"])
    next_message = await chat.ann.post(chat.topic)
    assert float(next_message["timestamp"]) > float(message["timestamp"])
    assert next_message["id"] != message["id"]


async def test_messages_around_are_half_older_half_newer(chat: ChatScenario) -> None:
    messages = [await chat.ann.post(chat.topic, str(number)) for number in range(9)]
    page = (await chat.bob.run(AROUND, topic=chat.topic, at=messages[4]["timestamp"], limit=5))["messagesAround"]
    assert [item["text"] for item in page["items"]] == ["2", "3", "4", "5", "6"]
    assert (page["hasOlder"], page["hasNewer"]) == (True, True)


async def test_messages_around_now_are_refused(chat: ChatScenario) -> None:
    refusal = await chat.ann.fails(AROUND, topic=chat.topic, at="now")
    assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", "timestamp")


async def test_preview_image_is_served_by_the_image_proxy(chat: ChatScenario) -> None:
    url = "https://tides.example/"
    message = await chat.ann.post(chat.topic, f"See {url}")
    image = "https://tides.example/a.png"
    signed = f"/images/signed/{image}#{preview_picture_id(chat.ann.user.organization_id, image)}"
    copy = {"url": signed, "width": 40, "height": 30, "blurhash": "a-hash"}
    for image_url, picture, expected in (
        (image, None, {"imageUrl": signed, "image": None}),
        (image, PreviewPicture(image, 40, 30, "a-hash"), {"imageUrl": signed, "image": copy}),
        (None, None, {"imageUrl": None, "image": None}),
    ):
        preview = LinkPreview(url, "Tides", None, image_url, None, picture)
        await chat.ann.stores.messages.set_preview(message_key(message["id"]), url, preview)
        query = (
            "query ($id: ID!) { message(id: $id) { linkPreview { url imageUrl image { url width height blurhash } } } }"
        )
        assert (await chat.bob.run(query, id=message["id"]))["message"]["linkPreview"] == {"url": url, **expected}


async def test_preview_stays_only_while_its_link_stays(chat: ChatScenario) -> None:
    url = "https://tides.example/"
    message = await chat.ann.post(chat.topic, f"See {url}")
    preview = LinkPreview(url, "Tides", None, None, None)
    await chat.ann.stores.messages.set_preview(message_key(message["id"]), url, preview)
    query = "query ($id: ID!) { message(id: $id) { linkPreview { url } } }"
    for text, link_preview in ((f"Look at {url}", {"url": url}), ("Nothing to see", None)):
        await chat.ann.run(EDIT, id=message["id"], text=text)
        assert (await chat.bob.run(query, id=message["id"]))["message"]["linkPreview"] == link_preview


AUTHOR_ROLES = 'query ($topic: ID!) { messages(topicId: $topic, oldest: "1.000000") { items { authorRole } } }'
SET_ROLE = """
mutation ($id: ID!, $user: ID!) { setCommunityRole(communityId: $id, userId: $user, role: MODERATOR) { role } }
"""


async def test_messages_show_the_role_of_their_author(chat: ChatScenario) -> None:
    await chat.eve.join(chat.community)
    for person in (chat.ann, chat.bob, chat.eve):
        await person.post(chat.topic)

    async def roles() -> list[str | None]:
        return [
            each["authorRole"] for each in (await chat.bob.run(AUTHOR_ROLES, topic=chat.topic))["messages"]["items"]
        ]

    assert await roles() == ["OWNER", "MEMBER", "MEMBER"]
    await chat.ann.run(SET_ROLE, id=chat.community, user="bob")
    await chat.eve.leave(chat.community)
    assert await roles() == ["OWNER", "MODERATOR", None]
