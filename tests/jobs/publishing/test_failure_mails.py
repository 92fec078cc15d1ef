"""Failure mails are sent once. Mails to an unreachable server are retried. The job and the sweepers publish posts."""

from pathlib import Path

import pytest

from jobs.context import JobContext
from jobs.providers.egress import Egress
from jobs.providers.mailer import Mailer
from jobs.publishing.failure_mails import send_failure_mails
from jobs.publishing.publisher import PostPublisher
from jobs.publishing.sweepers import fail_disconnected, publish_due, upload_media, wake_publisher
from storage.publishing.records import PublicationState
from tests.jobs.contexts import job_context
from tests.jobs.publishing.runs import run_once
from tests.storage.publishing.scenario import PublishingScenario, account_target

pytestmark = pytest.mark.anyio


@pytest.fixture
async def context(scenario: PublishingScenario, publisher: PostPublisher, egress: Egress, tmp_path: Path) -> JobContext:
    mailer = Mailer(None, "noroshi@example.org", tmp_path)
    return job_context(scenario.stores, egress, publisher=publisher, mailer=mailer)


async def test_failure_mail_names_target_and_reason(
    scenario: PublishingScenario, publisher: PostPublisher, context: JobContext, tmp_path: Path
) -> None:
    account = await scenario.connect_account(secret="fail")
    post = await scenario.schedule(account_target(account), in_s=-1, text="the text")
    failed = await run_once(publisher, scenario, post)
    assert await send_failure_mails(context) == 1
    assert await send_failure_mails(context) == 0
    assert "mail_at" not in await scenario.stored_document(failed)
    (file,) = tmp_path.iterdir()
    text = file.read_text()
    assert file.name == f"{failed.id}.eml"
    for words in ("ann@example.org", "our SANDBOX (SANDBOX)", "set to fail", "the text"):
        assert words in text


async def test_delayed_mail_is_sent_later(
    scenario: PublishingScenario, publisher: PostPublisher, context: JobContext
) -> None:
    post = await scenario.schedule(scenario.topic, in_s=-1)
    await scenario.topic_scenario.hand_over_and_leave()
    failed = await run_once(publisher, scenario, post)
    unreachable_mailer = job_context(context.stores, context.egress, publisher=publisher)
    assert await send_failure_mails(unreachable_mailer) == 1
    assert await send_failure_mails(context) == 0, "The mail must not be sent again at once."
    await scenario.pass_time(121)
    assert await send_failure_mails(context) == 1
    assert "mail_at" not in await scenario.stored_document(failed)


async def test_mail_without_address_is_dropped(
    scenario: PublishingScenario, publisher: PostPublisher, context: JobContext
) -> None:
    await scenario.stores.mongo["users"].update_many({"_id.org": scenario.organization_id}, {"$unset": {"email": ""}})
    post = await scenario.schedule(scenario.home, in_s=-1, max_lateness_s=5)
    await scenario.pass_time(10)
    failed = await run_once(publisher, scenario, post)
    assert failed.state is PublicationState.FAILED
    await send_failure_mails(job_context(context.stores, context.egress, publisher=publisher))
    assert "mail_at" not in await scenario.stored_document(failed)


async def test_job_and_sweeper_publish_due_posts(
    scenario: PublishingScenario, publisher: PostPublisher, context: JobContext
) -> None:
    first, second = await scenario.schedule(in_s=-1), await scenario.schedule(in_s=30)
    assert await publish_due(context) == 1
    await scenario.pass_time(31)
    await wake_publisher({"jobs": context}, second.id, second.revision)
    await publisher.wait_until_idle()
    for post in (first, second):
        assert (await scenario.publication(post)).state is PublicationState.PUBLISHED
    assert await upload_media(context) == 0


async def test_sweeper_fails_publications_to_disconnected_account(
    scenario: PublishingScenario, context: JobContext
) -> None:
    account = await scenario.connect_account()
    posts = [await scenario.schedule(account_target(account)) for _ in range(3)]
    await scenario.stores.accounts.disconnect(account)
    assert await fail_disconnected(context) == 3
    assert {(await scenario.publication(post)).state for post in posts} == {PublicationState.FAILED}
    assert await fail_disconnected(context) == 0
    assert await scenario.stores.accounts.list_disconnected(10) == []
