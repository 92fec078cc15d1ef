"""Profiles: the bio is changed by its owner alone, seen by the organization, reported, exported and erased."""

import pytest

from resolvers.identity import MAX_BIO_CHARS
from storage.feed.content_reports.records import ContentReportSubject, content_report_id
from storage.identity.audit import Actor
from storage.identity.personal_data import PERSONAL_DATA
from storage.identity.records import user_document_id
from storage.ids import UserKey
from tests.resolvers.people import ChatScenario, Person, SignIn

pytestmark = pytest.mark.anyio

UPDATE = "mutation ($input: UpdateProfileInput!) { updateProfile(input: $input) { id bio } }"
BIO = "query ($id: ID!) { user(id: $id) { bio } }"
REPORT = 'mutation { reportContent(subject: USER, subjectId: "bob", category: SPAM) }'


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
    await chat.ann.stores.users.set_bio(UserKey("acme", "bob"), "late")
    assert await bio_of(chat.ann, "bob") is None
