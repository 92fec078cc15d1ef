"""A topic with many posts by several people trends. Its newest page has every acknowledged post at once."""

from collections.abc import Sequence

import pytest

from tests.client import Client, client
from tests.e2e.chat_topic import ChatTopic, create_chat_topic, join, post, post_several
from tests.e2e.conftest import DeployedProduct

pytestmark = pytest.mark.anyio

ORG = "trending-topics"
PAGE = 'query($topic: ID!) { messages(topicId: $topic, latest: "now", limit: 50) { items { text } hasOlder hasNewer } }'
TRENDING = "{ trendingTopics(limit: 10) { topic { id } messagesPerMinute } }"


async def newest_texts(chat: ChatTopic, reader: Client) -> Sequence[str]:
    """Returns the texts of the newest page, newest first."""
    page = (await reader.run(PAGE, topic=chat.topic))["messages"]
    assert page["hasOlder"]
    assert not page["hasNewer"]
    return [item["text"] for item in page["items"]]


async def test_busy_topic_trends_and_pages_have_every_post(product: DeployedProduct) -> None:
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
        assert await newest_texts(chat, bob) == texts[:-51:-1]
        for number in range(20):
            text = f"and number {number}"
            await post(chat, ann, text)
            assert (await newest_texts(chat, bob))[0] == text

        assert (await bob.run(TRENDING))["trendingTopics"] == [], "One person's messages trend."
        cat = Client(bob.url, product.token("cat", ORG), bob.http)
        await join(chat, cat)
        for topic, poster in ((quiet, bob), (chat, bob), (chat, cat)):
            await post(topic, poster, "I see it too")
        trending = (await bob.run(TRENDING))["trendingTopics"]
        assert [each["topic"]["id"] for each in trending] == [chat.topic, quiet.topic]
        assert trending[0]["messagesPerMinute"] > 10 > trending[1]["messagesPerMinute"]
