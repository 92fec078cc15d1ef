"""Erasure of users: nothing about them is left, also when workers are killed at any step."""

import asyncio
from contextlib import suppress

import pytest

from jobs.erasures import erase_users
from jobs.fan_out import finish_fan_outs
from storage.identity.audit import Actor
from storage.identity.privacy_rules import Erasure, Person, batches
from storage.privacy.erasures import ErasureState
from storage.privacy.registry import PERSONAL_DATA
from storage.privacy.steps import ERASED_NAME, STEPS
from storage.stores import Stores
from tests.canary import WORD, create_canary, documents_with_strings, found_strings, keys_with_strings
from tests.jobs.contexts import job_context
from tests.resolvers.people import TOPIC_EVENTS, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

CANARY = Person("acme", "user-1")
MAX_SWEEPS = 50


async def make_due(stores: Stores) -> None:
    """Ends the wait and the claims of all erasures."""
    await stores.mongo["erasures"].update_many(
        {"due": {"$exists": True}}, [{"$set": {"due": {"$subtract": ["$$NOW", 1]}}}]
    )


async def request(stores: Stores) -> None:
    """Has the canary erased, by the canary's own request."""
    await stores.erasures.request(Actor(*CANARY), CANARY.user_id, f"@{WORD}_q")


async def erase(stores: Stores, workers: int = 1) -> None:
    """Runs the sweepers of some workers until the erasure is completed."""
    jobs = job_context(stores)
    for _ in range(MAX_SWEEPS):
        await make_due(stores)
        await asyncio.gather(finish_fan_outs(jobs), *(erase_users(jobs) for _ in range(workers)))
        erasure = await stores.erasures.find(*CANARY)
        if erasure is not None and erasure.state is ErasureState.COMPLETED:
            break
    else:
        raise AssertionError("The erasure does not end.")
    await until_outbox_is_empty(stores)


@pytest.mark.parametrize("text", [WORD, f"a {WORD.upper()} b"])
def test_search_finds_strings_in_all_encodings(text: str) -> None:
    import base64

    data = text.encode()
    forms = [data, data.hex().encode(), *(base64.b64encode(b"x" * n + text.lower().encode() + b"yz") for n in range(3))]
    assert all(found_strings(form) == [WORD] for form in forms[: 1 if text != WORD else None])
    assert found_strings(b"nothing") == []


async def test_nothing_about_an_erased_person_is_left(stores: Stores) -> None:
    await create_canary(stores)
    held = {
        *("users", "memberships", "messages", "posts", "scheduled_posts", "publications", "sandbox_posts", "accounts"),
        *("audit", "mail_audit", "mail_addresses", "mail_domains", "idempotency", "community_restrictions"),
    }
    assert held <= (await documents_with_strings(stores.mongo)).keys()
    await request(stores)
    await erase(stores)
    assert await documents_with_strings(stores.mongo) == {}
    assert await keys_with_strings(stores.redis, stores.keys.prefix) == []
    user = await stores.users.get(*CANARY)
    assert (user.name, user.email, user.roles, user.is_erased, user.is_deactivated) == (
        ERASED_NAME,
        None,
        (),
        True,
        True,
    )
    assert (user.follower_count, user.following_count) == (0, 0)


async def test_registry_finds_nothing_of_an_erased_person(stores: Stores) -> None:
    """Only tombstones, emptied records and the user's record are left."""
    await create_canary(stores)
    await request(stores)
    await erase(stores)
    left = {
        entry.collection
        for entry in PERSONAL_DATA.values()
        for rule in entry.rules
        async for documents in batches(stores.mongo, entry.collection, rule.documents, CANARY)
        if documents or rule.erasure is not Erasure.CHANGE
    }
    assert left == {"users", "messages", "posts", "scheduled_posts", "accounts"}


async def test_erasure_killed_at_each_step_is_completed(stores: Stores) -> None:
    await create_canary(stores)
    await request(stores)
    jobs = job_context(stores)

    async def die(_changed: int) -> None:
        raise asyncio.CancelledError

    for step in range(len(STEPS)):
        while await finish_fan_outs(jobs):
            pass
        with suppress(asyncio.CancelledError):
            await stores.eraser.run(step, CANARY, die)
    assert (await stores.erasures.find(*CANARY)).state is ErasureState.PENDING  # type: ignore[union-attr]
    await erase(stores)
    assert await documents_with_strings(stores.mongo) == {}


async def test_concurrent_workers_erase_once(stores: Stores) -> None:
    _, bob = await create_canary(stores)
    await request(stores)
    await erase(stores, workers=3)
    assert await documents_with_strings(stores.mongo) == {}
    followed = await stores.users.get("acme", bob.id)
    assert (followed.follower_count, followed.following_count) == (0, 0)


async def test_erasure_waits_and_then_continues_after_a_dead_worker(stores: Stores) -> None:
    await SignIn(stores)("user-1", handle=f"{WORD}_q")
    await request(stores)
    assert await stores.erasures.claim() is None
    await make_due(stores)
    assert await stores.erasures.claim() is not None
    assert await stores.erasures.claim() is None
    await erase(stores)


async def test_open_clients_see_deletions_and_other_people_stay(stores: Stores) -> None:
    _, bob = await create_canary(stores)
    (topic,) = [document["_id"] async for document in stores.mongo["topics"].find()]
    before = [text for text in await bob.texts(topic) if text and WORD not in text]
    async with bob.subscribed(TOPIC_EVENTS, topic=topic) as events:
        await request(stores)
        await erase(stores)
        deleted = {(await events.event())["type"] for _ in range(2)}
    assert deleted == {"MessageDeleted"}
    assert [text for text in await bob.texts(topic) if text] == before
    assert await bob.home() == ["Hello"]
    page = await bob.page(topic)
    assert [item["reactions"] for item in page["items"]] == [[] for _ in page["items"]]


async def test_same_user_id_in_another_organization_is_untouched(stores: Stores) -> None:
    await create_canary(stores)
    await create_canary(stores, "other")
    await request(stores)
    await erase(stores)
    left = await documents_with_strings(stores.mongo)
    assert {"users", "messages", "posts", "scheduled_posts", "publications", "accounts", "audit"} <= left.keys()
    other = await stores.users.get("other", CANARY.user_id)
    assert (other.handle, other.is_erased) == (f"{WORD}_q", False)


async def test_token_of_an_erased_person_changes_nothing(stores: Stores) -> None:
    sign_in = SignIn(stores)
    await sign_in("user-1", handle=f"{WORD}_q")
    await request(stores)
    users = stores.users
    assert (await users.sign_in("acme", "user-1", (), f"{WORD} again", f"{WORD}_q", f"{WORD}@example.net")).is_erased
    await erase(stores)
    again = await users.sign_in("acme", "user-1", (), f"{WORD} again", f"{WORD}_q", f"{WORD}@example.net")
    assert again.is_deactivated
    assert await documents_with_strings(stores.mongo) == {}
    # Nobody else gets the handle.
    other = await users.sign_in("acme", "user-2", (), None, f"{WORD}_q")
    assert other.handle == f"{WORD}_q-2"
    assert (await users.sign_in("other", "user-2", (), None, f"{WORD}_q")).handle == f"{WORD}_q"
