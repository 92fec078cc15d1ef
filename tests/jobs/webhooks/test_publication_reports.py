"""A webhook of reports gets one message for each publication that failed, is held, unknown or late, and no others."""

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from storage.publishing.attention import HoldForAttention
from storage.publishing.records import Publication, PublishingPhase
from storage.publishing.transitions import MANUAL, BeginAttempt, MarkFailed, MarkPublished, MarkUnknown
from tests.jobs.webhooks.conftest import WebhookScenario
from tests.resolvers.publishing.test_posts import connect_account
from tests.storage.publishing.scenario import pass_time

pytestmark = pytest.mark.anyio

SCHEDULE = "mutation ($input: SchedulePostInput!) { done: schedulePost(input: $input) { id } }"


@pytest.fixture
async def publications(webhooks: WebhookScenario) -> list[Publication]:
    """Five claimed publications of Ada, due two minutes ago."""
    account = await connect_account(webhooks.ada)
    due = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    for text in ("failed", "unknown", "held", "late", "on time"):
        new = {"text": text, "toHomeFeed": False, "toAccountIds": [account], "dueAt": due, "maxLatenessS": 3600}
        await webhooks.ada.do(SCHEDULE, input=new)
    await pass_time(webhooks.stores, "acme", 120)
    return sorted(await webhooks.stores.claims.claim(10), key=lambda each: each.id)


async def publish_all(webhooks: WebhookScenario, publications: list[Publication]) -> None:
    """Ends each publication in another way."""
    apply = webhooks.stores.scheduled_posts.apply
    account: Any = await webhooks.stores.mongo["accounts"].find_one({})
    by_text = {
        (await webhooks.stores.scheduled_posts.get("acme", each.scheduled_post_id)).text: each for each in publications
    }
    begun = {
        text: await apply(BeginAttempt(by_text[text], PublishingPhase.CALLING, "key"))
        for text in ("unknown", "late", "on time")
    }
    await apply(MarkFailed(by_text["failed"], "REFUSED", "Too long."))
    await apply(MarkUnknown(begun["unknown"], "No answer.", MANUAL))
    nonce = account["credentials"]["nonce"]
    await apply(HoldForAttention(by_text["held"], "UNAUTHORIZED", "Token expired.", nonce))
    await apply(MarkPublished(begun["late"], "id", None))
    await webhooks.stores.mongo["publications"].update_one(
        {"_id": begun["on time"].id}, [{"$set": {"late_from": "$progress.at"}}]
    )
    await apply(MarkPublished(begun["on time"], "id", None))


async def test_each_problem_is_one_message(webhooks: WebhookScenario, publications: list[Publication]) -> None:
    receiver = await webhooks.receiver()
    id_ = await webhooks.create(receiver, "PublicationReported")
    await publish_all(webhooks, publications)
    await webhooks.deliver()
    await webhooks.deliver()
    reports = [orjson.loads(each["request"])["data"]["report"] for each in await webhooks.deliveries(id_)]
    shown = {each["post"]["text"]: (each["reason"], each["publication"]["state"]) for each in reports}
    assert len(reports) == 4
    assert shown == {
        "failed": ("FAILED", "FAILED"),
        "unknown": ("UNKNOWN", "UNKNOWN"),
        "held": ("NEEDS_ATTENTION", "NEEDS_ATTENTION"),
        "late": ("LATE", "PUBLISHED"),
    }
    assert {each["post"]["author"]["id"] for each in reports} == {"ada"}
    assert {each["publication"]["target"]["account"]["network"] for each in reports} == {"SANDBOX"}


async def test_webhook_of_other_jobs_gets_no_report(webhooks: WebhookScenario, publications: list[Publication]) -> None:
    receiver, failed = await webhooks.receiver(), publications[0]
    id_ = await webhooks.create(receiver, "PublicationReported", jobIds=[publications[1].scheduled_post_id])
    for each in (failed, publications[1]):
        await webhooks.stores.scheduled_posts.apply(MarkFailed(each, "REFUSED", "no"))
    await webhooks.deliver()
    (delivery,) = await webhooks.deliveries(id_)
    assert publications[1].id in delivery["request"]
