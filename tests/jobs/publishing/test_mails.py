"""The mail to an author whose publication failed: sent once it can be, and not for ever."""

from pathlib import Path

import pytest

from jobs.context import JobContext
from jobs.providers.egress import Egress
from jobs.providers.mailer import Mailer
from jobs.publishing.desk import Desk
from jobs.publishing.mails import send_failure_mails
from jobs.publishing.sweeps import fail_disconnected, publish_due, upload_media, wake
from storage.publishing.records import PublicationState
from tests.jobs.contexts import job_context
from tests.jobs.publishing.desks import worked
from tests.storage.publishing.newsroom import Newsroom, account_target

pytestmark = pytest.mark.anyio


@pytest.fixture
async def context(newsroom: Newsroom, desk: Desk, egress: Egress, tmp_path: Path) -> JobContext:
    mailer = Mailer(None, "noroshi@example.org", tmp_path)
    return job_context(newsroom.stores, egress, desk=desk, mailer=mailer)


async def test_the_author_reads_what_failed_and_why(newsroom: Newsroom, context: JobContext, tmp_path: Path) -> None:
    account = await newsroom.account(secret="fail")
    post = await newsroom.schedule(account_target(account), in_s=-1, text="the text")
    failed = await worked(context.desk, newsroom, post)
    assert await send_failure_mails(context) == 1
    assert await send_failure_mails(context) == 0
    assert "mail_at" not in await newsroom.stored(failed)
    (file,) = tmp_path.iterdir()
    text = file.read_text()
    assert file.name == f"{failed.id}.eml"
    for words in ("ann@example.org", "our SANDBOX (SANDBOX)", "told to fail", "the text"):
        assert words in text


async def test_a_mail_that_can_not_be_sent_now_is_sent_later(newsroom: Newsroom, context: JobContext) -> None:
    post = await newsroom.schedule(newsroom.topic, in_s=-1)
    await newsroom.stores.communities.leave(newsroom.place.community, "ann")
    failed = await worked(context.desk, newsroom, post)
    dead = job_context(context.stores, context.egress, desk=context.desk)
    assert await send_failure_mails(dead) == 1
    assert await send_failure_mails(context) == 0, "not at once"
    await newsroom.pass_time(121)
    assert await send_failure_mails(context) == 1
    assert "mail_at" not in await newsroom.stored(failed)


async def test_a_mail_to_nobody_is_given_up(newsroom: Newsroom, context: JobContext) -> None:
    await newsroom.stores.mongo["users"].update_many({"_id.org": newsroom.organization_id}, {"$unset": {"email": ""}})
    post = await newsroom.schedule(newsroom.home, in_s=-1, max_lateness_s=5)
    await newsroom.pass_time(10)
    failed = await worked(context.desk, newsroom, post)
    assert failed.state is PublicationState.FAILED
    await send_failure_mails(job_context(context.stores, context.egress, desk=context.desk))
    assert "mail_at" not in await newsroom.stored(failed)


async def test_jobs_and_sweepers_do_the_same(newsroom: Newsroom, context: JobContext) -> None:
    first, second = await newsroom.schedule(in_s=-1), await newsroom.schedule(in_s=30)
    assert await publish_due(context) == 1
    await newsroom.pass_time(31)
    await wake({"jobs": context}, second.id, second.revision)
    await context.desk.idle()
    for post in (first, second):
        assert (await newsroom.only(post)).state is PublicationState.PUBLISHED
    assert await upload_media(context) == 0


async def test_what_waits_for_a_disconnected_account_fails_although_somebody_died(
    newsroom: Newsroom, context: JobContext
) -> None:
    account = await newsroom.account()
    posts = [await newsroom.schedule(account_target(account)) for _ in range(3)]
    await newsroom.stores.accounts.disconnect(account)
    assert await fail_disconnected(context) == 3
    assert {(await newsroom.only(post)).state for post in posts} == {PublicationState.FAILED}
    assert await fail_disconnected(context) == 0
    assert await newsroom.stores.accounts.disconnected(10) == []
