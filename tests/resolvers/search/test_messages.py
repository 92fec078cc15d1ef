"""Search of messages: queries, operators, pages and limits."""

from datetime import UTC, datetime

import pytest

from storage.ids import MessageKey, message_key
from storage.migrations.search_terms import add_search_terms
from storage.mongo.text_index import pages, term_index
from tests.resolvers.people import DELETE, EDIT, Answer, ChatScenario, Person

pytestmark = pytest.mark.anyio

SEARCH = """
query (
  $query: String!, $oldest: Timestamp, $latest: Timestamp, $limit: Int! = 50, $inclusive: Boolean! = true, $topic: ID
  $zone: String! = "UTC"
) {
  done: searchMessages(
    query: $query, oldest: $oldest, latest: $latest, limit: $limit, inclusive: $inclusive, topicId: $topic
    timeZone: $zone
  ) {
    items { message { id text timestamp } topic { id title } excerpt { text isMatch } }
    hasOlder hasNewer oldest newest searchedTo
  }
}
"""


async def page_of(person: Person, query: str, **more: object) -> Answer:
    return await person.do(SEARCH, **({"query": query, "latest": "now"} | more))


async def found(person: Person, query: str, **more: object) -> list[str]:
    """Returns the texts of a page of results, by default of the newest page."""
    return [item["message"]["text"] for item in (await page_of(person, query, **more))["items"]]


async def test_words_are_found_newest_first_and_highlighted(chat: ChatScenario) -> None:
    await chat.ann.post(chat.topic, "Fireworks at the river tonight")
    await chat.bob.post(chat.topic, "The FIREWORK begins at eight")
    await chat.bob.post(chat.topic, "Rain")
    page = await page_of(chat.bob, "firework")
    assert [item["message"]["text"][:9] for item in page["items"]] == ["The FIREW", "Fireworks"]
    assert page["items"][1]["excerpt"][0] == {"text": "Fireworks", "isMatch": True}
    assert page["items"][0]["topic"]["id"] == chat.topic
    assert await found(chat.bob, "river fireworks") == ["Fireworks at the river tonight"]


async def test_japanese_text_is_found_by_its_parts(chat: ChatScenario) -> None:
    await chat.ann.post(chat.topic, "祭りの花火大会は八時から")
    await chat.ann.post(chat.topic, "火花の大会、 会は大きい")
    for query in ("花火", "花火大会", "大会は", "祭り 花火", '"は八時"', "祭"):
        assert await found(chat.bob, query) == ["祭りの花火大会は八時から"], query


async def test_operators_limit_the_results(chat: ChatScenario) -> None:
    other = await chat.ann.create_topic(chat.community, "Other")
    await chat.ann.post(chat.topic, "boat one https://example.com/")
    await chat.bob.post(other, "boat two", stampId="tea")
    assert await found(chat.ann, "boat from:@bob") == ["boat two"]
    assert await found(chat.ann, "from:me") == ["boat one https://example.com/"]
    assert await found(chat.ann, "has:link boat") == ["boat one https://example.com/"]
    assert await found(chat.ann, "has:stamp") == ["boat two"]
    assert await found(chat.ann, f"boat in:{other}") == ["boat two"]
    assert await found(chat.ann, "boat", topic=chat.topic) == ["boat one https://example.com/"]
    assert len(await found(chat.ann, "boat in:FISHERS")) == 2
    assert await found(chat.ann, "boat before:2020-01-01") == []
    assert len(await found(chat.ann, "boat after:2020-01-01")) == 2


@pytest.mark.parametrize(
    ("query", "term"), [("from:nobody x", "from:nobody"), ("in:nowhere x", "in:nowhere"), ("has:fire x", "has:fire")]
)
async def test_unknown_operand_is_named(shared_chat: ChatScenario, query: str, term: str) -> None:
    error = await shared_chat.ann.fails(SEARCH, query=query, latest="now")
    assert (error["code"], error["term"]) == ("BAD_USER_INPUT", term)


@pytest.mark.parametrize("query", ["", "…", "in:Fishers", "before:2020-01-01", "a" * 201, "ab " * 17])
async def test_query_without_terms_or_with_too_many_fails(shared_chat: ChatScenario, query: str) -> None:
    assert (await shared_chat.ann.fails(SEARCH, query=query, latest="now"))["field"] == "query"


async def test_edited_and_deleted_text_is_not_found(chat: ChatScenario) -> None:
    posted = await chat.ann.post(chat.topic, "red boat")
    await chat.ann.run(EDIT, id=posted["id"], text="blue boat")
    assert await found(chat.ann, "red") == []
    assert await found(chat.ann, "blue") == ["blue boat"]
    await chat.ann.run(DELETE, id=posted["id"])
    assert await found(chat.ann, "boat") == await found(chat.ann, "from:me") == []


async def test_terms_are_deleted_with_the_message(chat: ChatScenario) -> None:
    posted = await chat.ann.post(chat.topic, "red boat")
    await chat.ann.run(DELETE, id=posted["id"])
    terms = await chat.ann.stores.mongo["message_terms"].find_one({"_id": message_key(posted["id"]).document_id})
    assert terms is not None
    assert terms["terms"] == []


@pytest.mark.parametrize(
    ("collection", "change"),
    [
        ("messages", {"text": "blue boat"}),
        ("messages", {"deleted_at": datetime(2026, 1, 1, tzinfo=UTC)}),
        ("message_terms", {"place": "joined by bob"}),
    ],
)
async def test_stale_search_entry_shows_nothing(chat: ChatScenario, collection: str, change: Answer) -> None:
    """A process of an older release changes messages, but not their search terms."""
    posted = await chat.ann.post(chat.topic, "red boat")
    other = await chat.eve.create_community()
    if "place" in change:
        change = {"place": other}
    key = {"_id": message_key(posted["id"]).document_id}
    await chat.ann.stores.mongo[collection].update_one(key, {"$set": change})
    for person in (chat.ann, chat.eve):
        assert await found(person, "red") == []


async def test_migration_writes_the_terms_that_posting_writes(chat: ChatScenario) -> None:
    gone = await chat.ann.post(chat.topic, "gone")
    await chat.ann.run(DELETE, id=gone["id"])
    await chat.ann.post(chat.topic, "red boat https://example.com", stampId="tea")
    await chat.ann.post(chat.topic, "花火大会")
    await chat.ann.create_post("red boat", mediaUrls=["https://example.com/a.png"])
    mongo = chat.ann.stores.mongo

    async def entries() -> list[list[Answer]]:
        collections = ("message_terms", "post_terms")
        return [await mongo.find(name, {}, None, [("_id", 1)]) for name in collections]

    written = await entries()
    await mongo["message_terms"].delete_many({"terms": {"$ne": "花火"}})
    await mongo["post_terms"].delete_many({})
    await add_search_terms(mongo)
    await add_search_terms(mongo)
    assert [[{**each, "terms": sorted(each["terms"])} for each in part] for part in await entries()] == [
        [{**each, "terms": sorted(each["terms"])} for each in part] for part in written
    ]
    assert await found(chat.bob, "red") == ["red boat https://example.com"]


async def test_pages_have_all_results_once(chat: ChatScenario) -> None:
    other = await chat.ann.create_topic(chat.community, "Other")
    texts = [f"boat {number}" for number in range(12)]
    for number, text in enumerate(texts):
        await chat.ann.post((chat.topic, other)[number % 2], text)
    backward: list[str] = []
    bounds: dict[str, object] = {"latest": "now"}
    while True:
        page = await page_of(chat.bob, "boat", limit=5, inclusive=False, **bounds)
        backward += [item["message"]["text"] for item in page["items"]]
        if not page["hasOlder"]:
            break
        bounds = {"latest": page["oldest"]}
    assert backward == texts[::-1]
    forward = await page_of(chat.bob, "boat", limit=5, oldest="0000000000.000000", latest=None)
    assert [item["message"]["text"] for item in forward["items"]] == texts[:5]
    assert (forward["hasOlder"], forward["hasNewer"]) == (False, True)
    middle = await page_of(chat.bob, "boat", limit=2, latest=page["newest"], inclusive=True)
    assert (middle["hasOlder"], middle["hasNewer"]) == (False, True)


async def test_page_ends_after_all_results_of_a_timestamp(chat: ChatScenario) -> None:
    """Messages of several topics may have the same timestamp."""
    key = message_key((await chat.ann.post(chat.topic, "boat one"))["id"])
    mongo = chat.ann.stores.mongo
    for number in range(5):
        other = await chat.ann.create_topic(chat.community, f"Other {number}")
        for collection in ("messages", "message_terms"):
            document = await mongo[collection].find_one({"_id": key.document_id})
            assert document is not None
            await mongo[collection].insert_one({**document, "_id": MessageKey(other, key.timestamp).document_id})
    await chat.ann.post(chat.topic, "boat two")
    page = await page_of(chat.bob, "boat", limit=2)
    assert [item["message"]["text"] for item in page["items"]] == ["boat two", *["boat one"] * 6]
    assert page["hasOlder"] is False
    page = await page_of(chat.bob, "boat", limit=2, latest=page["oldest"])
    assert [item["message"]["text"] for item in page["items"]] == ["boat one"] * 6


async def test_search_ends_if_common_words_rarely_occur_together(
    chat: ChatScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_index, "MAX_WINDOW", 3)
    await chat.ann.post(chat.topic, "red boat first")
    for number in range(12):
        await chat.ann.post(chat.topic, f"red {number}")
        await chat.ann.post(chat.topic, f"boat {number}")
    monkeypatch.setattr(pages, "MAX_WINDOWS", 2)
    page = await page_of(chat.ann, "red boat", limit=1)
    assert page["items"] == []
    assert page["hasOlder"] is True
    walked = 0
    while page["searchedTo"] is not None:
        walked += 1
        assert walked < 20
        page = await page_of(chat.ann, "red boat", limit=1, latest=page["searchedTo"])
    assert [item["message"]["text"] for item in page["items"]] == ["red boat first"]


async def test_search_ends_if_phrase_occurs_in_other_forms_only(
    chat: ChatScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    await chat.ann.post(chat.topic, "running first")
    for number in range(12):
        await chat.ann.post(chat.topic, f"runs {number}")
    monkeypatch.setattr(term_index, "MAX_WINDOW", 3)
    monkeypatch.setattr(pages, "MAX_WINDOWS", 2)
    page = await page_of(chat.ann, '"running"', limit=1)
    assert page["items"] == []
    found_texts: list[str] = []
    for _ in range(10):
        found_texts += [item["message"]["text"] for item in page["items"]]
        if page["searchedTo"] is None:
            break
        page = await page_of(chat.ann, '"running"', limit=1, latest=page["searchedTo"])
    assert found_texts == ["running first"]


async def test_more_places_than_one_read_covers_are_all_searched(
    chat: ChatScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_index, "PLACES_AT_ONCE", 1)
    other = await chat.ann.create_community("Others")
    topics = [chat.topic, await chat.ann.create_topic(other)]
    for number in range(6):
        await chat.ann.post(topics[number % 2], f"red boat {number}")
    assert await found(chat.ann, "red boat", limit=4) == [f"red boat {number}" for number in (5, 4, 3, 2)]
