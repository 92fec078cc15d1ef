"""A topic with many posts trends. Its newest page is read from the hot page, and has every acknowledged post."""

import re
from collections.abc import Sequence

import pytest

from tests.client import Client, client
from tests.e2e.chat_topic import ChatTopic, create_chat_topic, join, post, post_several
from tests.e2e.conftest import DeployedProduct
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

ORG = "hot-topics"
PAGE = 'query($topic: ID!) { messages(topicId: $topic, latest: "now", limit: 50) { items { text } hasOlder hasNewer } }'
TRENDING = "{ trendingTopics(limit: 10) { topic { id } messagesPerMinute } }"
HITS = re.compile(r'^noroshi_hot_page_reads_total\{outcome="hit"\} (\S+)$', re.MULTILINE)


async def hot_page_hits(reader: Client) -> float:
    """Returns the number of hot page hits in the process that serves the reader's connection."""
    match = HITS.search((await reader.http.get(f"{reader.url}/metrics")).text)
    return float(match[1]) if match else 0.0


async def newest_texts(chat: ChatTopic, reader: Client) -> Sequence[str]:
    """Returns the texts of the newest page, newest first."""
    page = (await reader.run(PAGE, topic=chat.topic))["messages"]
    assert page["hasOlder"]
    assert not page["hasNewer"]
    return [item["text"] for item in page["items"]]


async def test_hot_topic_trends_and_is_read_from_hot_page(product: DeployedProduct) -> None:
    async with (
        client(product.url, product.token("ann", ORG)) as ann,
        client(product.url, product.token("bob", ORG)) as bob,
    ):
        chat, quiet = await create_chat_topic(ann), await create_chat_topic(ann)
        await join(chat, bob)
        await join(quiet, bob)
        await post(quiet, ann, "anybody here?")
        texts = [str(number) for number in range(90)]
        for start in range(0, len(texts), 15):
            await post_several(chat, ann, texts[start : start + 15])

        async def is_read_from_hot_page() -> bool:
            hits_before = await hot_page_hits(bob)
            assert await newest_texts(chat, bob) == texts[:-51:-1]
            return await hot_page_hits(bob) > hits_before

        assert await poll_until_true(is_read_from_hot_page)
        hits_before = await hot_page_hits(bob)
        for number in range(20):
            text = f"and number {number}"
            await post(chat, ann, text)
            assert (await newest_texts(chat, bob))[0] == text
        assert await hot_page_hits(bob) - hits_before >= 10

        assert (await bob.run(TRENDING))["trendingTopics"] == [], "One person's messages trend."
        cat = Client(bob.url, product.token("cat", ORG), bob.http)
        await join(chat, cat)
        for topic, poster in ((quiet, bob), (chat, bob), (chat, cat)):
            await post(topic, poster, "I see it too")
        trending = (await bob.run(TRENDING))["trendingTopics"]
        assert [each["topic"]["id"] for each in trending] == [chat.topic, quiet.topic]
        assert trending[0]["messagesPerMinute"] > 10 > trending[1]["messagesPerMinute"]
