"""Publications in jobEvents and notifications, and their resolution and retry by a person."""

from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import pytest

from jobs.publishing.publisher import PostPublisher
from storage.identity.roles import Role
from storage.secrets.credentials import CredentialCipher
from tests.resolvers.people import ChatScenario, Person, SignIn, until_outbox_is_empty
from tests.resolvers.publishing.test_posts import CANCEL, GET, connect_account, schedule

pytestmark = pytest.mark.anyio

JOB_EVENTS = """
subscription ($job: ID, $since: Cursor) {
  jobEvents(jobId: $job, since: $since) {
    type: __typename ... on Event { cursor } ... on StreamReady { resumed }
    ... on PublicationChanged { publication { id scheduledPostId state } }
  }
}
"""
RESOLVE = """
mutation ($id: ID!, $published: Boolean!, $external: String) {
  done: resolvePublication(id: $id, published: $published, externalId: $external) {
    state externalId publishedAt latenessMs error { code } attempts { outcome detail }
  }
}
"""
NOTIFICATIONS = '{ notifications(latest: "now") { items { kind actor { id } publication { id state } } } }'


async def publish(publisher: PostPublisher) -> None:
    await publisher.sweep()
    await publisher.wait_until_idle()


def past_due_time() -> str:
    return (datetime.now(UTC) - timedelta(milliseconds=100)).isoformat()


async def test_changes_reach_author_and_operators_only(
    chat: ChatScenario, operator: Person, publisher: PostPublisher
) -> None:
    async with (
        chat.ann.subscribed(JOB_EVENTS) as ann_subscription,
        operator.subscribed(JOB_EVENTS) as operator_subscription,
        chat.bob.subscribed(JOB_EVENTS) as bob_subscription,
    ):
        post = await schedule(chat.ann, toHomeFeed=False, toTopicIds=[chat.topic], dueAt=past_due_time())
        await publish(publisher)
        for subscription in (ann_subscription, operator_subscription):
            events = [await subscription.next_event() for _ in range(2)]
            assert [event["type"] for event in events] == ["PublicationChanged"] * 2
            assert events[-1]["publication"]["state"] == "PUBLISHED"
            assert {event["publication"]["scheduledPostId"] for event in events} == {post["id"]}
        other = await schedule(chat.bob, toHomeFeed=False, toTopicIds=[chat.topic])
        assert (await bob_subscription.next_event())["publication"]["scheduledPostId"] == other["id"]


async def test_job_events_of_one_post_are_filtered(chat: ChatScenario) -> None:
    first, second = await schedule(chat.ann), await schedule(chat.ann)
    async with chat.ann.subscribed(JOB_EVENTS, job=second["id"]) as events:
        await chat.ann.do(CANCEL, id=first["id"])
        await chat.ann.do(CANCEL, id=second["id"])
        event = await events.next_event()
        assert event["publication"] == {**event["publication"], "scheduledPostId": second["id"], "state": "CANCELLED"}
    async with aclosing(chat.bob.answers(JOB_EVENTS, job=first["id"])) as answers:
        (error,) = (await anext(answers))["errors"]
        assert error["extensions"]["code"] == "FORBIDDEN"


async def test_unknown_publication_is_notified_and_resolved_once(
    chat: ChatScenario, operator: Person, publisher: PostPublisher
) -> None:
    unanswered_account = await connect_account(operator, credentials="lose")
    post = await schedule(operator, toHomeFeed=False, toAccountIds=[unanswered_account], dueAt=past_due_time())
    await publish(publisher)
    await until_outbox_is_empty(operator.stores)
    (notification,) = (await operator.run(NOTIFICATIONS))["notifications"]["items"]
    (publication,) = (await operator.do(GET, id=post["id"]))["publications"]
    assert notification == {
        "kind": "PUBLICATION_UNKNOWN",
        "actor": None,
        "publication": {"id": publication["id"], "state": "UNKNOWN"},
    }
    assert await chat.ann.code(RESOLVE, id=publication["id"], published=True) == "FORBIDDEN"
    resolved = await operator.do(RESOLVE, id=publication["id"], published=True, external="there")
    assert (resolved["state"], resolved["externalId"], resolved["error"]) == ("PUBLISHED", "there", None)
    assert resolved["latenessMs"] >= 0
    assert await operator.code(RESOLVE, id=publication["id"], published=False) == "CONFLICT"
    assert (await operator.do(GET, id=post["id"]))["state"] == "PUBLISHED"


async def test_resolution_as_not_published_fails_publication(
    operator: Person, chat: ChatScenario, publisher: PostPublisher
) -> None:
    unanswered_account = await connect_account(operator, credentials="lose")
    post = await schedule(operator, toAccountIds=[unanswered_account], dueAt=past_due_time())
    await publish(publisher)
    publication = (await operator.do(GET, id=post["id"]))["publications"][1]
    assert (await operator.do(GET, id=post["id"]))["state"] == "UNKNOWN"
    resolved = await operator.do(RESOLVE, id=publication["id"], published=False)
    assert (resolved["state"], resolved["error"], resolved["publishedAt"]) == (
        "FAILED",
        {"code": "NOT_PUBLISHED"},
        None,
    )
    assert (await operator.do(GET, id=post["id"]))["state"] == "PARTIAL"


async def test_failure_is_notified(operator: Person, publisher: PostPublisher) -> None:
    failing_account = await connect_account(operator, credentials="fail")
    await schedule(operator, toHomeFeed=False, toAccountIds=[failing_account], dueAt=past_due_time())
    await publish(publisher)
    await until_outbox_is_empty(operator.stores)
    (notification,) = (await operator.run(NOTIFICATIONS))["notifications"]["items"]
    assert (notification["kind"], notification["publication"]["state"]) == ("PUBLICATION_FAILED", "FAILED")


async def test_operator_sees_reported_publications_of_others(
    operator: Person, sign_in: SignIn, publisher: PostPublisher
) -> None:
    deputy = await sign_in("deputy", roles=[Role.OPERATOR])
    failing_account = await connect_account(operator, credentials="fail")
    await schedule(operator, toHomeFeed=False, toAccountIds=[failing_account], dueAt=past_due_time())
    await publish(publisher)
    await until_outbox_is_empty(operator.stores)
    (notification,) = (await deputy.run(NOTIFICATIONS))["notifications"]["items"]
    assert (notification["kind"], notification["publication"]["state"]) == ("PUBLICATION_FAILED", "FAILED")
    demoted = await sign_in("deputy", roles=[Role.MEMBER])
    (notification,) = (await demoted.run(NOTIFICATIONS))["notifications"]["items"]
    assert notification["publication"] is None


REPORTS = """subscription {
  jobEvents { type: __typename ... on PublicationReported { report { reason publication { state } post { text } } } }
}"""


async def test_reports_reach_author_and_operators_only(
    chat: ChatScenario, operator: Person, sign_in: SignIn, publisher: PostPublisher
) -> None:
    author = await sign_in("author", roles=[Role.OPERATOR])
    account = await connect_account(author, credentials="fail")
    async with operator.subscribed(REPORTS) as events, chat.bob.subscribed(REPORTS) as other_events:
        await schedule(author, toHomeFeed=False, toAccountIds=[account], dueAt=past_due_time())
        await publish(publisher)
        while (event := await events.next_event())["type"] != "PublicationReported":
            pass
        report = {"reason": "FAILED", "publication": {"state": "FAILED"}, "post": {"text": "hello"}}
        assert event["report"] == report
        own = await schedule(chat.bob, toHomeFeed=False, toTopicIds=[chat.topic])
        assert own["state"] == "SCHEDULED"
        assert (await other_events.next_event())["type"] == "PublicationChanged"


RETRY = """
mutation ($id: ID!, $key: String) {
  done: retryPublication(publicationId: $id, idempotencyKey: $key) { id state error { code } }
}
"""
ATTENTION = """{
  connectedAccounts { id attention { code reason since } }
  scheduledPosts(latest: "now", states: [NEEDS_ATTENTION]) { items { id state editable } }
}"""


async def test_refused_credentials_are_shown_and_retried(
    chat: ChatScenario, operator: Person, publisher: PostPublisher
) -> None:
    account = await connect_account(operator, credentials="ok")
    accounts = operator.stores.mongo["accounts"]
    sealed = CredentialCipher({"9": b"z" * 32}).seal("ok", account)
    (stored,) = await accounts.find({"_id": account}).to_list(None)
    await accounts.update_one({"_id": account}, {"$set": {"credentials": sealed}})
    post = await schedule(operator, toHomeFeed=False, toAccountIds=[account], dueAt=past_due_time())
    await publish(publisher)
    shown = await operator.run(ATTENTION)
    attention = {each["id"]: each["attention"] for each in shown["connectedAccounts"]}[account]
    assert (attention["code"], "9" in attention["reason"]) == ("CREDENTIALS_LOST", True)
    assert shown["scheduledPosts"]["items"] == [{"id": post["id"], "state": "NEEDS_ATTENTION", "editable": True}]
    await until_outbox_is_empty(operator.stores)
    (notification,) = (await operator.run(NOTIFICATIONS))["notifications"]["items"]
    (publication,) = (await operator.do(GET, id=post["id"]))["publications"]
    assert notification["kind"] == "PUBLICATION_NEEDS_ATTENTION"
    assert notification["publication"] == {"id": publication["id"], "state": "NEEDS_ATTENTION"}
    await accounts.update_one({"_id": account}, {"$set": {"credentials": stored["credentials"]}})
    assert await chat.ann.code(RETRY, id=publication["id"]) == "FORBIDDEN"
    retried = await operator.do(RETRY, id=publication["id"])
    assert retried == {"id": publication["id"], "state": "SCHEDULED", "error": None}
    await publish(publisher)
    assert (await operator.do(GET, id=post["id"]))["state"] == "PUBLISHED"
    assert await operator.code(RETRY, id=publication["id"]) == "CONFLICT"


async def test_failed_publication_is_retried_once_for_a_key(operator: Person, publisher: PostPublisher) -> None:
    account = await connect_account(operator, credentials="fail")
    post = await schedule(operator, toHomeFeed=False, toAccountIds=[account], dueAt=past_due_time())
    await publish(publisher)
    (publication,) = (await operator.do(GET, id=post["id"]))["publications"]
    retried = await operator.do(RETRY, id=publication["id"], key="k")
    assert (retried["state"], retried["error"]) == ("SCHEDULED", None)
    await publish(publisher)
    assert (await operator.do(RETRY, id=publication["id"], key="k"))["state"] == "FAILED"
    other = await schedule(operator, toHomeFeed=False, toAccountIds=[account], dueAt=past_due_time())
    (unrelated,) = (await operator.do(GET, id=other["id"]))["publications"]
    assert await operator.code(RETRY, id=unrelated["id"], key="k") == "CONFLICT"
    assert await operator.code(RETRY, id="unknown") == "NOT_FOUND"
