"""Erasure of users: nothing about them is left, also when workers are killed at any step."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobs.account_mails import send_account_mails
from jobs.erasures import erase_users
from jobs.fan_out import finish_fan_outs
from jobs.providers.mailer import Mail, Mailer
from jobs.publishing.author_mails import send_author_mails
from storage.identity.audit import Actor
from storage.identity.privacy_rules import ErasureMethod, read_batches
from storage.ids import UserKey
from storage.privacy.erasures import ErasureState
from storage.privacy.registry import PERSONAL_DATA
from storage.privacy.steps import ERASED_NAME, STEPS
from storage.stores import Stores
from tests.canary import TEXTS_WITHOUT_PERSON, CanaryPerson, create_canary, text_arguments
from tests.jobs.contexts import job_context
from tests.resolvers.people import TOPIC_EVENTS, Person, SignIn, until_outbox_is_empty
from tests.stored_strings import WORD, documents_with_strings, files_with_strings, found_strings, keys_with_strings

pytestmark = pytest.mark.anyio

CANARY = UserKey("acme", "user-1")
OTHER = UserKey("other", CANARY.user_id)
"""A person with the same id in another organization, who is erased later."""

MAX_SWEEPS = 50


async def make_due(stores: Stores) -> None:
    """Makes all erasures due now, also those that wait or are claimed."""
    await stores.mongo["erasures"].update_many(
        {"due": {"$exists": True}}, [{"$set": {"due": {"$subtract": ["$$NOW", 1]}}}]
    )


async def request_erasure(stores: Stores, person: UserKey = CANARY) -> None:
    """Requests the person's erasure, as the person."""
    await stores.erasures.request(Actor(*person), person.user_id, f"@{WORD}_q")


async def run_until_erased(
    stores: Stores, person: UserKey = CANARY, workers: int = 1, mailer: Mailer | None = None
) -> None:
    """Runs the sweepers of some workers until the erasure is completed."""
    jobs = job_context(stores, mailer=mailer)
    for _ in range(MAX_SWEEPS):
        await make_due(stores)
        await asyncio.gather(finish_fan_outs(jobs), *(erase_users(jobs) for _ in range(workers)))
        erasure = await stores.erasures.find(*person)
        if erasure is not None and erasure.state is ErasureState.COMPLETED:
            break
    else:
        raise AssertionError("The erasure does not end.")
    await until_outbox_is_empty(stores)


@dataclass(frozen=True)
class ErasedPerson:
    """A person who has been erased, and what was stored and shown before and meanwhile."""

    stores: Stores
    canary: CanaryPerson
    bob: Person
    topic: str
    stored_before: frozenset[str]
    """The collections that had the person's data."""

    texts_before: list[str]
    """The texts of others in the topic."""

    mails: Path
    mails_before: int
    """The number of stored mails with the person's data."""

    events: list[str]
    """The types of the first events that Bob received."""

    of_other: dict[str, set[str]]
    """The documents of the other organization's person before the first erasure, by collection."""

    left: dict[str, set[str]]
    """The documents of both persons after it."""


@pytest.fixture(scope="module")
async def erased(module_stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> ErasedPerson:
    """Erases a person with three concurrent workers, and then the other organization's person by killed workers.

    The person's invitation and the reports of a failed and of an unknown publication were mailed. Bob got a mail, too.
    """
    stores, mails = module_stores, tmp_path_factory.mktemp("mails")
    mailer = Mailer(None, "noroshi@example.org", mails)
    canary, bob = await create_canary(stores)
    await mailer.send(Mail("Bob", "bob@example.org", "Unread", "2 things", recipient=UserKey("acme", "bob")), "bobs")
    jobs = job_context(stores, mailer=mailer)
    assert (await send_account_mails(jobs), await send_author_mails(jobs)) == (2, 2)
    mails_before = len(files_with_strings(mails))
    (topic,) = [each["_id"] async for each in stores.mongo["topics"].find({"title": "Tides"})]
    texts = [text for text in await bob.texts(topic) if text and WORD not in text]
    await until_outbox_is_empty(stores)
    before = await personal_documents(stores)
    of_other = await create_other(stores, before)
    async with bob.subscribed(TOPIC_EVENTS, topic=topic) as subscription:
        await request_erasure(stores)
        await run_until_erased(stores, workers=3, mailer=mailer)
        events = [(await subscription.next_event())["type"] for _ in range(2)]
    left = await personal_documents(stores)
    await erase_with_kills(stores, OTHER)
    return ErasedPerson(
        stores, canary, bob, topic, frozenset(before), texts, mails, mails_before, events, of_other, left
    )


async def create_other(stores: Stores, before: dict[str, set[str]]) -> dict[str, set[str]]:
    """Creates the other organization's person. Returns the documents that were not there before."""
    await create_canary(stores, OTHER.organization_id)
    await until_outbox_is_empty(stores)
    documents = await personal_documents(stores)
    return {name: new for name, each in documents.items() if (new := each - before.get(name, set()))}


async def personal_documents(stores: Stores) -> dict[str, set[str]]:
    """Returns the documents of both persons, by collection."""
    return {name: set(documents) for name, documents in (await documents_with_strings(stores.mongo)).items()}


async def erase_with_kills(stores: Stores, person: UserKey) -> None:
    """Erases a person. At each step, a worker is killed first."""
    await request_erasure(stores, person)
    await kill_at_each_step(stores, person)
    erasure = await stores.erasures.find(*person)
    assert erasure is not None
    assert erasure.state is ErasureState.PENDING
    await run_until_erased(stores, person)


async def kill_at_each_step(stores: Stores, person: UserKey) -> None:
    """Starts each step of the erasure, and kills the worker at the first progress."""
    jobs = job_context(stores)

    async def die(_changed: int) -> None:
        raise asyncio.CancelledError

    for step in range(len(STEPS)):
        while await finish_fan_outs(jobs):
            pass
        with suppress(asyncio.CancelledError):
            await stores.eraser.run(step, person, die)


@pytest.mark.parametrize("text", [WORD, f"a {WORD.upper()} b"])
def test_search_finds_strings_in_all_encodings(text: str) -> None:
    import base64

    data = text.encode()
    forms = [data, data.hex().encode(), *(base64.b64encode(b"x" * n + text.lower().encode() + b"yz") for n in range(3))]
    assert all(found_strings(form) == [WORD] for form in forms[: 1 if text != WORD else None])
    assert found_strings(b"nothing") == []


def test_search_of_files_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    log = tmp_path / "folder" / "log"
    log.write_text(f'first\n{{"user": "{WORD}_q"}}\nlast\n')
    (line,) = files_with_strings(tmp_path)[str(log)]
    assert f"{WORD}_q" in line


async def test_nothing_about_erased_persons_is_left(erased: ErasedPerson) -> None:
    """One was erased by concurrent workers, and one by workers that were killed at each step."""
    stores = erased.stores
    expected_collections = {
        *("users", "memberships", "messages", "posts", "scheduled_posts", "publications", "sandbox_posts", "accounts"),
        *("audit", "mail_audit", "mail_addresses", "mail_domains", "idempotency", "community_restrictions"),
    }
    assert expected_collections <= erased.stored_before
    assert await documents_with_strings(stores.mongo) == {}
    assert await keys_with_strings(stores.redis, stores.keys.prefix) == []
    for person in (CANARY, OTHER):
        user = await stores.users.get(*person)
        texts = (user.name, user.email, user.roles)
        assert (*texts, user.is_erased, user.is_deactivated) == (ERASED_NAME, None, (), True, True)
    user = await stores.users.get(*CANARY)
    assert (user.follower_count, user.following_count) == (0, 0)


async def test_stored_mails_to_an_erased_person_are_deleted(erased: ErasedPerson) -> None:
    """The invitation is for the person's address. The notice of a failed publication is for the person."""
    assert erased.mails_before == 3
    assert [file.name for file in erased.mails.iterdir()] == ["bobs.eml"]


async def test_person_has_used_every_text_of_mutations(erased: ErasedPerson) -> None:
    unused = set(text_arguments()) - erased.canary.used_arguments - TEXTS_WITHOUT_PERSON.keys()
    assert not unused, "Let the person use the argument in tests/canary.py, so that an erasure has to find its text."
    assert set(text_arguments()) >= TEXTS_WITHOUT_PERSON.keys()


async def test_registry_finds_nothing_of_an_erased_person(erased: ErasedPerson) -> None:
    """Only tombstones, emptied records and the user's record are left."""
    left = {
        entry.collection
        for entry in PERSONAL_DATA.values()
        for rule in entry.rules
        async for documents in read_batches(erased.stores.mongo, entry.collection, rule.documents, CANARY)
        if documents or rule.erasure is not ErasureMethod.CHANGE
    }
    assert left == {"users", "messages", "posts", "scheduled_posts", "accounts"}


async def test_namesake_in_another_organization_is_untouched(erased: ErasedPerson) -> None:
    """Exactly the documents of the other organization's person are left."""
    expected = {"users", "messages", "posts", "scheduled_posts", "publications", "accounts", "audit"}
    assert expected <= erased.left.keys()
    assert erased.left == erased.of_other


async def test_concurrent_workers_erase_once(erased: ErasedPerson) -> None:
    followed = await erased.stores.users.get("acme", erased.bob.id)
    assert (followed.follower_count, followed.following_count) == (0, 0)


async def test_erasure_waits_and_then_continues_after_a_dead_worker(stores: Stores) -> None:
    await SignIn(stores)("user-1", handle=f"{WORD}_q")
    await request_erasure(stores)
    assert await stores.erasures.claim() is None
    await make_due(stores)
    assert await stores.erasures.claim() is not None
    assert await stores.erasures.claim() is None
    await run_until_erased(stores)


async def test_clients_see_deletions_and_texts_of_others_stay(erased: ErasedPerson) -> None:
    bob = erased.bob
    assert set(erased.events) == {"MessageDeleted"}
    assert [text for text in await bob.texts(erased.topic) if text] == erased.texts_before
    assert await bob.home() == ["Hello"]
    page = await bob.page(erased.topic)
    assert [item["reactions"] for item in page["items"]] == [[] for _ in page["items"]]


async def test_erased_person_is_in_no_conversation(erased: ErasedPerson) -> None:
    bob, stores = erased.bob, erased.stores
    topics = [each["direct"] async for each in stores.mongo["topics"].find({"direct": {"$exists": True}})]
    assert all("user-1" not in [*each["joined"], *each["requested"]] for each in topics)
    assert sorted([*each["left"], *each["declined"]] for each in topics) == [["user-1"]] * 4
    (pair,) = (await bob.do('{ done: conversations(latest: "now") { items { id people { user { name } } } } }'))[
        "items"
    ]
    assert {each["user"]["name"] for each in pair["people"]} == {ERASED_NAME, "bob"}
    post = 'mutation ($id: ID!) { postMessage(input: { topicId: $id, text: "Hello?" }) { id } }'
    assert await bob.code(post, id=pair["id"]) == "FORBIDDEN"


async def test_token_of_an_erased_person_changes_nothing(stores: Stores) -> None:
    sign_in = SignIn(stores)
    await sign_in("user-1", handle=f"{WORD}_q")
    await request_erasure(stores)
    users = stores.users
    assert (await users.sign_in("acme", "user-1", (), f"{WORD} again", f"{WORD}_q", f"{WORD}@example.net")).is_erased
    await run_until_erased(stores)
    again = await users.sign_in("acme", "user-1", (), f"{WORD} again", f"{WORD}_q", f"{WORD}@example.net")
    assert again.is_deactivated
    assert await documents_with_strings(stores.mongo) == {}
    # Nobody else gets the handle.
    other = await users.sign_in("acme", "user-2", (), None, f"{WORD}_q")
    assert other.handle == f"{WORD}_q-2"
    assert (await users.sign_in("other", "user-2", (), None, f"{WORD}_q")).handle == f"{WORD}_q"
