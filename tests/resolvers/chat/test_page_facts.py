"""Pages show at once what another process has changed: no process caches the facts of a page (ADR 89)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from storage.identity.roles import Role
from storage.mongo import Driver
from storage.stores import Stores, open_stores
from tests.resolvers.people import Answer, ChatScenario, Person

pytestmark = pytest.mark.anyio

READERS, CHANGES = 5, 6
PAGE = """
query ($topic: ID!) {
  messages(topicId: $topic, oldest: "0.000000") { items { authorRole author { id name bio } } }
}
"""
SET_ROLE = """
mutation ($community: ID!, $role: CommunityRole!) {
  setCommunityRole(communityId: $community, userId: "bob", role: $role) { role }
}
"""
SET_BIO = "mutation ($bio: String) { updateProfile(input: {bio: $bio}) { id } }"


async def block(chat: ChatScenario, is_set: bool) -> None:
    await (chat.bob.block if is_set else chat.bob.unblock)(chat.ann)


async def leave(chat: ChatScenario, is_set: bool) -> None:
    await (chat.bob.leave if is_set else chat.bob.join)(chat.community)


async def promote(chat: ChatScenario, is_set: bool) -> None:
    await chat.ann.run(SET_ROLE, community=chat.community, role="MODERATOR" if is_set else "MEMBER")


async def rename(chat: ChatScenario, is_set: bool) -> None:
    await chat.bob.stores.users.sign_in("acme", "bob", [Role.MEMBER], "Bob of the hill" if is_set else "bob", None)


async def describe(chat: ChatScenario, is_set: bool) -> None:
    await chat.bob.run(SET_BIO, bio="Keeper of the beacon" if is_set else None)


def author_ids(page: Answer) -> list[str]:
    return [item["author"]["id"] for item in page["data"]["messages"]["items"]]


def last_item(page: Answer) -> Answer:
    item: Answer = page["data"]["messages"]["items"][-1]
    return item


@pytest.fixture
async def other_process(
    stores: Stores, mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver
) -> AsyncIterator[Stores]:
    """The stores of another process on the same database."""
    async with open_stores(mongodb_uri, redis_url, database, mongo_driver) as opened:
        yield opened


@asynccontextmanager
async def reading_all_the_time(reader: Person, topic: str) -> AsyncIterator[None]:
    """Reads pages in several tasks during the block, so that a cache would always be filled."""

    async def read() -> None:
        while True:
            await reader.execute(PAGE, topic=topic)

    tasks = [asyncio.create_task(read()) for _ in range(READERS)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(
    ("change", "shows"),
    [
        (block, lambda page: author_ids(page) == ["bob"]),
        (leave, lambda page: [each["extensions"]["code"] for each in page["errors"]] == ["FORBIDDEN"]),
        (promote, lambda page: last_item(page)["authorRole"] == "MODERATOR"),
        (rename, lambda page: last_item(page)["author"]["name"] == "Bob of the hill"),
        (describe, lambda page: last_item(page)["author"]["bio"] is not None),
    ],
)
async def test_page_of_another_process_shows_each_change_at_once(
    chat: ChatScenario,
    other_process: Stores,
    change: Callable[[ChatScenario, bool], Awaitable[Any]],
    shows: Callable[[Answer], bool],
) -> None:
    await chat.ann.post(chat.topic)
    await chat.bob.post(chat.topic)
    reader = Person(other_process, chat.bob.user, chat.bob.roles)
    seen = []
    async with reading_all_the_time(reader, chat.topic):
        for number in range(CHANGES):
            await change(chat, number % 2 == 0)
            seen.append(shows(await reader.execute(PAGE, topic=chat.topic)))
    assert seen == [number % 2 == 0 for number in range(CHANGES)]
