"""A topic of 100,000 messages in a real Chromium: scrolling stays smooth and the page stays small."""

import time
from pathlib import Path

import pytest

from storage.chat.communities import NewCommunity
from storage.mongo import Document
from storage.stores import Stores, open_stores
from tests.e2e.browser_scripts import run_browser_script
from tests.serving import web_process

pytestmark = pytest.mark.anyio

MESSAGES, SCROLLED_MESSAGES = 100_000, 10_000
BATCH_SIZE = 10_000
AUTHORS = 20
LONG_TASK_MS = 50
ROWS_MAX = 100
HEAP_GROWTH_MAX = 1.25


@pytest.mark.soak
@pytest.mark.browser
@pytest.mark.timeout(600)
async def test_scrolling_100_000_messages_has_no_long_task(mongodb_uri: str, redis_url: str, tmp_path: Path) -> None:
    with web_process(tmp_path, mongodb_uri, redis_url) as web:
        async with open_stores(mongodb_uri, redis_url, web.database) as stores:
            topic_id = await create_long_topic(stores)
        arguments = {
            "token": web.token("reader"),
            "topicId": topic_id,
            "newest": MESSAGES - 1,
            "rows": SCROLLED_MESSAGES,
        }
        report = run_browser_script("web/long-topic.mjs", web.url, tmp_path, **arguments)
    print(report)

    assert report["tasks"] > SCROLLED_MESSAGES / 10, "The trace has no tasks."
    assert report["longest_ms"][0] <= LONG_TASK_MS
    assert report["rows_max"] < ROWS_MAX
    assert report["heap_bytes"][-1] <= report["heap_bytes"][1] * HEAP_GROWTH_MAX, (
        "The heap grew with the number of scrolled messages."
    )
    assert report["pageErrors"] == []


async def create_long_topic(stores: Stores) -> str:
    """Creates a topic with 100,000 messages, one per second, in a community that the reader has joined.

    Inserts the messages directly into MongoDB, which is faster than the API.
    """
    authors = [await stores.users.sign_in("acme", f"user{n}", [], f"User {n}", f"user{n}") for n in range(AUTHORS)]
    reader = await stores.users.sign_in("acme", "reader", [], "reader", "reader")
    community = await stores.communities.create(NewCommunity("acme", "Hilltops", ""), reader, None)
    topic = await stores.topics.create(community, reader.id, "Watch", None)
    first_us = (int(time.time()) - MESSAGES) * 1_000_000
    for start in range(0, MESSAGES, BATCH_SIZE):
        numbers = range(start, start + BATCH_SIZE)
        rows = [_message(topic.id, first_us + n * 1_000_000, authors[n * 7 // 3 % AUTHORS].id, n) for n in numbers]
        await stores.mongo["messages"].insert_many(rows)
    head = {"last": first_us + (MESSAGES - 1) * 1_000_000, "n": MESSAGES}
    await stores.mongo["topics"].update_one({"_id": topic.id}, {"$set": head})
    # A topic with unread messages opens at the first of them.
    await stores.topics.mark_read(topic.id, reader.id, head["last"], head["last"])
    return topic.id


def _message(topic_id: str, timestamp: int, author_id: str, number: int) -> Document:
    return {
        "_id": {"t": topic_id, "ts": timestamp},
        "author": author_id,
        "text": f"fire{' on the far hill' * (number * 5 % 23)} {number}",
        "stamp": None,
        "mentions": [],
        "reactions": [{"emoji": "🔥", "count": 3}] if number % 5 == 0 else [],
    }
