"""Topics are found by their titles, by the members of their communities only."""

import pytest

from storage.migrations.search_terms import add_topic_terms
from tests.resolvers.chat.test_conversations import start
from tests.resolvers.people import ChatScenario, Person

pytestmark = pytest.mark.anyio

SEARCH = """
query ($query: String!, $latest: Timestamp = "now", $limit: Int = 50) {
  done: searchTopics(query: $query, latest: $latest, limit: $limit) {
    items { topic { title community { name } } excerpt { text isMatch } } hasOlder oldest searchedTo
  }
}
"""
RENAME = "mutation ($id: ID!, $title: String!) { renameTopic(topicId: $id, title: $title) { title } }"
LEAVE = "mutation ($id: ID!) { leaveCommunity(communityId: $id) { id } }"


async def found(person: Person, query: str, **more: object) -> list[str]:
    """Returns the titles of a page of results."""
    return [item["topic"]["title"] for item in (await person.do(SEARCH, query=query, **more))["items"]]


async def test_titles_are_found_newest_first_and_highlighted(chat: ChatScenario) -> None:
    await chat.ann.create_topic(chat.community, "Red boats")
    await chat.ann.create_topic(chat.community, "A boat, 花火大会")
    assert await found(chat.bob, "boat") == ["A boat, 花火大会", "Red boats"]
    assert await found(chat.bob, '"red boats"') == await found(chat.bob, "boat red") == ["Red boats"]
    (match,) = (await chat.bob.do(SEARCH, query="花火"))["items"]
    assert match["excerpt"] == [
        {"text": "A boat, ", "isMatch": False},
        {"text": "花火", "isMatch": True},
        {"text": "大会", "isMatch": False},
    ]
    first = await chat.bob.do(SEARCH, query="boat", limit=1)
    assert first["hasOlder"] is True
    assert len(await found(chat.bob, "boat in:Fishers after:2020-01-01")) == 2
    assert await found(chat.bob, "boat before:2020-01-01") == []


async def test_renamed_topic_is_found_by_its_new_title_only(chat: ChatScenario) -> None:
    topic = await chat.ann.create_topic(chat.community, "Red boat")
    await chat.ann.run(RENAME, id=topic, title="Blue ship")
    assert await found(chat.ann, "boat") == []
    assert await found(chat.ann, "ship") == ["Blue ship"]


async def test_only_present_members_find_topics(chat: ChatScenario) -> None:
    await chat.ann.create_topic(chat.community, "Red boat")
    assert await found(chat.bob, "boat") == ["Red boat"]
    assert await found(chat.eve, "boat") == []
    await chat.bob.run(LEAVE, id=chat.community)
    assert await found(chat.bob, "boat") == []


async def test_conversations_and_threads_are_no_topics(chat: ChatScenario) -> None:
    await chat.ann.post(await start(chat.ann, chat.bob), "boat")
    await chat.ann.post(chat.topic, "boat")
    assert await found(chat.ann, "boat") == []


@pytest.mark.parametrize(
    ("query", "part"), [("in:nowhere boat", "in:nowhere"), ("from:me boat", "from:me"), ("in:Fishers", None)]
)
async def test_query_without_words_or_with_wrong_operator_fails(
    chat: ChatScenario, query: str, part: str | None
) -> None:
    error = await chat.ann.fails(SEARCH, query=query)
    assert (error["code"], error.get("term")) == ("BAD_USER_INPUT", part)


async def test_migration_writes_the_terms_of_topics(chat: ChatScenario) -> None:
    mongo = chat.ann.stores.mongo
    await chat.ann.create_topic(chat.community, "Red boat")
    topic = await chat.ann.create_topic(chat.community, "Blue boat")
    await start(chat.ann, chat.bob)
    written = await mongo.find("topic_terms", {}, None, [("_id", 1)])
    await mongo["topic_terms"].delete_many({"terms": "red"})
    await add_topic_terms(mongo)
    await add_topic_terms(mongo)
    assert await mongo.find("topic_terms", {}, None, [("_id", 1)]) == written
    await mongo["topic_terms"].delete_many({})
    await chat.ann.run(RENAME, id=topic, title="Green ship")
    assert await found(chat.ann, "ship") == ["Green ship"]
