"""Unknown outcomes: what a person looks for, and answers of people."""

import asyncio
from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from jobs.publishing.publisher import PostPublisher
from tests.resolvers.people import Answer, ChatScenario, Person, until_outbox_is_empty
from tests.resolvers.publishing.test_posts import GET, connect_account, schedule
from tests.resolvers.publishing.test_publications import NOTIFICATIONS, past_due_time, publish

pytestmark = pytest.mark.anyio

CHECK = """
query ($id: ID!) {
  done: scheduledPost(id: $id) {
    publications {
      id state outcomeCheck { account { id name } profileUrl textStart firstCallAt lastCallAt nextLookupAt }
    }
  }
}
"""
ANSWER = """
mutation (
  $id: ID!, $published: Boolean!, $url: String, $again: Boolean! = false, $seen: DateTime, $key: String
) {
  done: resolvePublication(
    id: $id, published: $published, url: $url, publishAgain: $again, lastCallAt: $seen, idempotencyKey: $key
  ) { id state url error { code } outcomeCheck { textStart } attempts { outcome detail } }
}
"""
AGAIN = {"published": False, "again": True}
LONG_TEXT = "The lamp of the northern tower is dark. " * 5


async def lose_answer(operator: Person, publisher: PostPublisher, text: str = "hello") -> tuple[str, Answer]:
    """Publishes to an account whose answer is lost. Returns the post's id and its publication."""
    account = await connect_account(operator, credentials="lose")
    post = await schedule(operator, text=text, toHomeFeed=False, toAccountIds=[account], dueAt=past_due_time())
    await publish(publisher)
    return post["id"], await publication_of(operator, post["id"])


async def publication_of(person: Person, post_id: str) -> Answer:
    (publication,) = (await person.do(CHECK, id=post_id))["publications"]
    return dict(publication)


async def test_check_names_account_text_and_times(operator: Person, publisher: PostPublisher) -> None:
    post_id, publication = await lose_answer(operator, publisher, LONG_TEXT)
    check = publication["outcomeCheck"]
    first, last = (datetime.fromisoformat(check[name]) for name in ("firstCallAt", "lastCallAt"))
    assert (check["account"]["name"], check["textStart"]) == ("SANDBOX", LONG_TEXT[:100])
    assert (check["profileUrl"], check["nextLookupAt"], first <= last) == (None, None, True)
    await operator.do(ANSWER, id=publication["id"], published=True)
    assert (await publication_of(operator, post_id))["outcomeCheck"] is None


async def test_check_links_profile_of_account(operator: Person, publisher: PostPublisher) -> None:
    post_id, publication = await lose_answer(operator, publisher)
    account = {"network": "X", "handle": "@harbour"}
    id_ = publication["outcomeCheck"]["account"]["id"]
    await operator.stores.mongo["accounts"].update_one({"_id": id_}, {"$set": account})
    assert (await publication_of(operator, post_id))["outcomeCheck"]["profileUrl"] == "https://x.com/harbour"


async def test_post_that_is_there_keeps_its_address(operator: Person, publisher: PostPublisher) -> None:
    _, publication = await lose_answer(operator, publisher)
    assert await operator.code(ANSWER, id=publication["id"], published=True, url="ftp://x") == "BAD_USER_INPUT"
    there = await operator.do(ANSWER, id=publication["id"], published=True, url="https://x.test/1")
    assert (there["state"], there["url"], there["error"]) == ("PUBLISHED", "https://x.test/1", None)


async def test_post_that_is_not_there_is_published_again(operator: Person, publisher: PostPublisher) -> None:
    """Even after `maxLatenessS`. The author is notified of each outcome that is unknown."""
    post_id, publication = await lose_answer(operator, publisher)
    await operator.stores.mongo["publications"].update_one(
        {"_id": publication["id"]}, [{"$set": {"late_at": {"$subtract": ["$late_at", 7_200_000]}}}]
    )
    again = await operator.do(ANSWER, id=publication["id"], **AGAIN)
    assert (again["state"], again["error"], again["outcomeCheck"]) == ("SCHEDULED", None, None)
    assert [each["outcome"] for each in again["attempts"]] == ["UNKNOWN", "NO_EFFECT"]
    await publish(publisher)
    repeated = await publication_of(operator, post_id)
    assert repeated["state"] == "UNKNOWN", "The sandbox account loses this answer, too."
    await until_outbox_is_empty(operator.stores)
    notifications = (await operator.run(NOTIFICATIONS))["notifications"]["items"]
    assert [each["kind"] for each in notifications] == ["PUBLICATION_UNKNOWN"] * 2


async def test_answer_about_earlier_call_is_refused(operator: Person, publisher: PostPublisher) -> None:
    """Two people have looked. The first has it published again, and that answer is lost, too."""
    post_id, publication = await lose_answer(operator, publisher)
    seen = publication["outcomeCheck"]["lastCallAt"]
    await operator.do(ANSWER, id=publication["id"], seen=seen, **AGAIN)
    await publish(publisher)
    assert await operator.code(ANSWER, id=publication["id"], seen=seen, **AGAIN) == "CONFLICT"
    seen_now = (await publication_of(operator, post_id))["outcomeCheck"]["lastCallAt"]
    assert (await operator.do(ANSWER, id=publication["id"], seen=seen_now, **AGAIN))["state"] == "SCHEDULED"


async def test_one_of_many_answers_counts(operator: Person, publisher: PostPublisher) -> None:
    post_id, publication = await lose_answer(operator, publisher)
    answers: list[dict[str, Any]] = [{"published": True}, {"published": False}, AGAIN] * 4
    codes = await asyncio.gather(*(answer_code(operator, publication["id"], each) for each in answers))
    assert Counter(codes) == {"": 1, "CONFLICT": len(answers) - 1}
    assert (await publication_of(operator, post_id))["state"] != "UNKNOWN"


async def answer_code(person: Person, id_: str, answer: dict[str, Any]) -> str:
    """Sends the answer. Returns the code of its error, or an empty text."""
    errors = (await person.execute(ANSWER, id=id_, **answer)).get("errors")
    return str(errors[0]["extensions"]["code"]) if errors else ""


async def test_repeated_key_answers_once(operator: Person, publisher: PostPublisher) -> None:
    _, publication = await lose_answer(operator, publisher)
    for _ in range(2):
        assert (await operator.do(ANSWER, id=publication["id"], key="k", **AGAIN))["state"] == "SCHEDULED"
    assert await operator.code(ANSWER, id=publication["id"], key="k", published=True) == "CONFLICT"
    assert await operator.code(ANSWER, id=publication["id"], published=True, again=True) == "BAD_USER_INPUT"


async def test_answer_is_for_author_and_operators(
    chat: ChatScenario, operator: Person, publisher: PostPublisher
) -> None:
    _, publication = await lose_answer(operator, publisher)
    assert await chat.ann.code(ANSWER, id=publication["id"], **AGAIN) == "FORBIDDEN"
    assert await operator.code(ANSWER, id="unknown", **AGAIN) == "NOT_FOUND"


async def test_other_states_are_refused(operator: Person, publisher: PostPublisher) -> None:
    account = await connect_account(operator)
    post = await schedule(operator, toHomeFeed=False, toAccountIds=[account], dueAt=past_due_time())
    await publish(publisher)
    (publication,) = (await operator.do(GET, id=post["id"]))["publications"]
    assert publication["state"] == "PUBLISHED"
    for answer in ({"published": True}, {"published": False}, AGAIN):
        assert await operator.code(ANSWER, id=publication["id"], **answer) == "CONFLICT"
