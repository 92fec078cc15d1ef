"""Profiles: name, handle and bio are changed by their owner alone, seen by the organization, exported and erased."""

import pytest

from resolvers.identity import MAX_BIO_CHARS, MAX_NAME_CHARS
from storage.errors import Forbidden
from storage.feed.content_reports.records import ContentReportSubject, content_report_id
from storage.identity.audit import Actor
from storage.identity.handles.suggestions import HANDLE_FORMAT, MAX_HANDLE
from storage.identity.personal_data import PERSONAL_DATA
from storage.identity.records import user_document_id
from storage.ids import UserKey
from tests.resolvers.people import EDIT, ChatScenario, Person, SignIn

pytestmark = pytest.mark.anyio

UPDATE = "mutation ($input: UpdateProfileInput!) { updateProfile(input: $input) { id name bio } }"
CHANGE_HANDLE = "mutation ($handle: String!) { changeHandle(handle: $handle) { id handle } }"
MEMBERS = "query ($id: ID!, $after: ID) { community(id: $id) { members(after: $after) { handle } } }"
SEARCH = "query ($query: String!) { searchPeople(query: $query) { user { id } } }"
BIO = "query ($id: ID!) { user(id: $id) { bio } }"
REPORT = 'mutation { reportContent(subject: USER, subjectId: "bob", category: SPAM) }'


async def no_progress(_changed: int) -> None:
    """Records nothing about the progress of an erasure."""


async def set_bio(person: Person, bio: str | None) -> str | None:
    """Changes the bio, and returns the new one."""
    new_bio: str | None = (await person.run(UPDATE, input={"bio": bio}))["updateProfile"]["bio"]
    return new_bio


async def bio_of(reader: Person, user_id: str) -> str | None:
    """Returns the bio that the reader sees."""
    bio: str | None = (await reader.run(BIO, id=user_id))["user"]["bio"]
    return bio


async def test_bio_is_seen_by_the_organization(chat: ChatScenario) -> None:
    assert await bio_of(chat.bob, "ann") is None
    text = "Sets up *beacons*\n灯台が好き"
    assert await set_bio(chat.ann, text) == text
    assert await bio_of(chat.bob, "ann") == text
    assert await bio_of(chat.bob, "bob") is None


async def test_bio_is_kept_removed_or_refused(chat: ChatScenario) -> None:
    await set_bio(chat.ann, "first")
    assert (await chat.ann.run(UPDATE, input={}))["updateProfile"]["bio"] == "first"
    for bad in ("x" * (MAX_BIO_CHARS + 1), " \n", "\ud800"):
        assert await chat.ann.code(UPDATE, input={"bio": bad}) == "BAD_USER_INPUT"
    assert await set_bio(chat.ann, "𝒳" * MAX_BIO_CHARS) == "𝒳" * MAX_BIO_CHARS
    for empty in (None, ""):
        await set_bio(chat.ann, "again")
        assert await set_bio(chat.ann, empty) is None
    stored = await chat.ann.stores.mongo["users"].find_one({"_id": user_document_id("acme", "ann")})
    assert stored is not None
    assert "bio" not in stored


async def test_sign_in_with_a_token_keeps_the_bio(chat: ChatScenario, sign_in: SignIn) -> None:
    await set_bio(chat.ann, "Beacons")
    await sign_in("ann", name="Ann Renamed")
    assert await bio_of(chat.bob, "ann") == "Beacons"


async def test_name_is_changed_or_refused(chat: ChatScenario) -> None:
    await set_bio(chat.ann, "first")
    for bad in ("", " ", "x" * (MAX_NAME_CHARS + 1), "\u200b", "An\nn", "An\u202en"):
        refusal = await chat.ann.fails(UPDATE, input={"name": bad, "bio": "second"})
        assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", "name"), bad
    assert await chat.ann.code(UPDATE, input={"name": "\ud800"}) == "BAD_USER_INPUT"
    assert (await chat.ann.fails(UPDATE, input={"name": "Own", "bio": "x" * 301}))["field"] == "bio"
    unchanged = {"updateProfile": {"id": "ann", "name": "ann", "bio": "first"}}
    assert await chat.ann.run(UPDATE, input={"name": None}) == unchanged
    changed = {"id": "ann", "name": "山田 花", "bio": "first"}
    assert await chat.ann.run(UPDATE, input={"name": " 山田 花 "}) == {"updateProfile": changed}
    long_name = "𝒳" * MAX_NAME_CHARS
    assert (await chat.ann.run(UPDATE, input={"name": long_name}))["updateProfile"]["name"] == long_name


async def test_members_are_found_by_new_names(chat: ChatScenario) -> None:
    await chat.ann.run(UPDATE, input={"name": "Hana Sato"})
    for query, found in (("hana sa", ["ann"]), (f"sato in:{chat.community}", ["ann"])):
        people = (await chat.bob.run(SEARCH, query=query))["searchPeople"]
        assert [each["user"]["id"] for each in people] == found


async def test_bio_is_seen_through_blocks_as_the_name(chat: ChatScenario) -> None:
    await set_bio(chat.ann, "Beacons")
    await chat.ann.block(chat.bob)
    assert await bio_of(chat.bob, "ann") == "Beacons"


async def test_report_of_a_person_keeps_the_bio(chat: ChatScenario) -> None:
    await set_bio(chat.bob, "Cheap shoes")
    await chat.ann.run(REPORT)
    await set_bio(chat.bob, None)
    id_ = content_report_id("acme", ContentReportSubject.USER, "bob", "ann")
    report = await chat.ann.stores.content_reports.get("acme", id_)
    assert report.content_text.split("\n\n")[1:] == ["Cheap shoes"]


async def test_bio_is_exported(chat: ChatScenario) -> None:
    await set_bio(chat.ann, "Beacons")
    (users,) = [entry for entry in PERSONAL_DATA if entry.collection == "users"]
    document = await chat.ann.stores.mongo["users"].find_one({"_id": user_document_id("acme", "ann")})
    assert users.exports[0].write(document)["bio"] == "Beacons"


async def test_bio_cannot_be_changed_once_an_erasure_began(chat: ChatScenario) -> None:
    await chat.ann.stores.erasures.request(Actor("acme", "ann", is_command_line=True), "bob", "bob")
    with pytest.raises(Forbidden):
        await chat.ann.stores.users.change_profile(Actor("acme", "bob"), {"bio": "late"})
    assert await bio_of(chat.ann, "bob") is None


async def test_change_of_handle_is_refused_with_a_reason(chat: ChatScenario) -> None:
    for bad in ("", "x" * (MAX_HANDLE + 1), "Ann", "@ann", "ann-2", "アン", "ann\n", "me"):
        reason = await chat.ann.fails(CHANGE_HANDLE, handle=bad)
        assert reason == {"code": "BAD_USER_INPUT", "field": "handle", "expected": HANDLE_FORMAT}
    assert await chat.ann.code(CHANGE_HANDLE, handle="bob") == "CONFLICT"
    assert await chat.ann.run(CHANGE_HANDLE, handle="newt") == {"changeHandle": {"id": "ann", "handle": "newt"}}
    reason = await chat.ann.fails(CHANGE_HANDLE, handle="frog")
    assert reason["code"] == "RATE_LIMITED"
    assert 0 <= 30 * 86_400_000 - reason["retryAfterMs"] < 600_000


async def test_members_are_listed_and_found_by_new_handles(chat: ChatScenario) -> None:
    await chat.ann.run(CHANGE_HANDLE, handle="newt")
    for after, handles in ((None, ["bob", "newt"]), ("bob", ["newt"]), ("ann", [])):
        members = (await chat.bob.run(MEMBERS, id=chat.community, after=after))["community"]["members"]
        assert [each["handle"] for each in members] == handles
    for query, found in (("newt", ["ann"]), (f"newt in:{chat.community}", ["ann"]), ("new ann", ["ann"])):
        people = (await chat.bob.run(SEARCH, query=query))["searchPeople"]
        assert [each["user"]["id"] for each in people] == found


async def test_texts_mention_the_person_after_a_change(chat: ChatScenario) -> None:
    before = await chat.bob.post(chat.topic, "Hello @ann")
    await chat.ann.run(CHANGE_HANDLE, handle="newt")
    assert [each["mentions"] for each in (await chat.bob.page(chat.topic))["items"]] == [[{"handle": "newt"}]]
    assert (await chat.bob.post(chat.topic, "Hello @newt and @ann"))["mentions"] == [{"handle": "newt"}]
    assert (await chat.bob.post(chat.topic, "Hello @ann"))["mentions"] == []
    assert (await chat.bob.do(EDIT, id=before["id"], text="Hello, @ann"))["mentions"] == []


async def test_former_handles_are_exported_and_erased(chat: ChatScenario) -> None:
    await chat.ann.run(CHANGE_HANDLE, handle="newt")
    stores, key = chat.ann.stores, user_document_id("acme", "ann")
    (users,) = [entry for entry in PERSONAL_DATA if entry.collection == "users"]
    exported = users.exports[0].write(await stores.mongo["users"].find_one({"_id": key}))
    assert [each["handle"] for each in exported["formerHandles"]] == ["ann"]
    await stores.erasures.request(Actor("acme", "bob", is_command_line=True), "ann", "newt")
    await stores.eraser.reduce_user(UserKey("acme", "ann"), no_progress)
    reduced = await stores.mongo["users"].find_one({"_id": key})
    assert reduced is not None
    assert reduced.keys().isdisjoint({"former_handles", "handle_changed_at"})
    for handle in ("ann", "newt"):
        assert await chat.bob.code(CHANGE_HANDLE, handle=handle) == "CONFLICT"
