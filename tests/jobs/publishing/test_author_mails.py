"""Mails to authors are sent once, and later if the server is down. The job and the sweepers publish posts."""

from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

import pytest

from jobs.context import JobContext
from jobs.providers.egress import Egress
from jobs.providers.mailer import Mailer
from jobs.publishing.author_mails import send_author_mails
from jobs.publishing.publisher import PostPublisher
from jobs.publishing.sweepers import fail_disconnected, publish_due, upload_media, wake_publisher
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.records import User
from storage.identity.roles import Role
from storage.notifications.settings import NotificationSettingsChange
from storage.publishing.attention import HoldForAttention
from storage.publishing.records import ConnectedAccount, Publication, PublicationState
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
    assert await send_author_mails(context) == 1
    assert await send_author_mails(context) == 0
    assert "mail_at" not in await scenario.stored_document(failed)
    (file,) = tmp_path.iterdir()
    assert file.name == f"{failed.id}-failed-1.eml"
    mail = read_mail(file)
    assert (mail["To"], mail["Subject"]) == (
        "Ann <ann@example.org>",
        "Not published: your post for our SANDBOX (SANDBOX)",
    )
    for words in ("set to fail", "the text", f"#/publishing/calendar/today/{post.id}"):
        assert all(words in part for part in parts(mail))


def read_mail(file: Path) -> EmailMessage:
    """Returns a stored mail."""
    return message_from_bytes(file.read_bytes(), policy=default)


def parts(mail: EmailMessage) -> list[str]:
    """Returns the text and the HTML of a mail."""
    return [str(part.get_content()) for part in mail.iter_parts() if isinstance(part, EmailMessage)]


async def speak(scenario: PublishingScenario, user: User, language: MailLanguage) -> None:
    change = NotificationSettingsChange(language=language)
    await scenario.stores.notification_settings.change(user.key, change)


async def test_mail_is_in_the_language_of_its_author(
    scenario: PublishingScenario, publisher: PostPublisher, context: JobContext, tmp_path: Path
) -> None:
    await speak(scenario, scenario.ann, MailLanguage.JA)
    account = await scenario.connect_account(secret="lose")
    post = await scenario.schedule(account_target(account), in_s=-1, text="潮が満ちる")
    unknown = await run_once(publisher, scenario, post)
    assert unknown.state is PublicationState.UNKNOWN
    assert await send_author_mails(context) == 1
    (file,) = tmp_path.iterdir()
    assert file.name.startswith(f"{unknown.id}-unknown-")
    mail = read_mail(file)
    assert mail["Subject"] == "公開されたか不明です：our SANDBOX (SANDBOX) への予約投稿"
    assert all("潮が満ちる" in part and "Ann さん" in part for part in parts(mail))


async def hold(scenario: PublishingScenario, account: ConnectedAccount, author: User | None = None) -> Publication:
    """Holds a new publication, whose account's credentials were refused."""
    more = {} if author is None else {"author_id": author.id}
    claimed = await scenario.claim(await scenario.schedule(account_target(account), in_s=-1, **more))
    change = HoldForAttention(claimed, "UNAUTHORIZED", "expired", await scenario.credentials_nonce(claimed))
    return await scenario.stores.scheduled_posts.apply(change)


async def test_posts_that_wait_for_one_account_are_one_mail(
    scenario: PublishingScenario, context: JobContext, tmp_path: Path
) -> None:
    account, other = await scenario.connect_account(), await scenario.connect_account()
    first = await hold(scenario, account)
    for _ in range(3):
        await hold(scenario, account)
    of_other_account = await hold(scenario, other)
    assert await send_author_mails(context) == 2
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {f"{each.id}-needs_attention-1.eml" for each in (first, of_other_account)}


async def test_each_author_is_mailed_that_posts_wait(
    scenario: PublishingScenario, context: JobContext, tmp_path: Path
) -> None:
    organization_id = scenario.organization_id
    bob = await scenario.stores.users.sign_in(organization_id, "bob", [Role.OPERATOR], "Bob", None, "bob@example.org")
    account = await scenario.connect_account()
    for author in (scenario.ann, bob, scenario.ann, bob):
        await hold(scenario, account, author)
    assert await send_author_mails(context) == 2
    assert sorted(read_mail(file)["To"] for file in tmp_path.iterdir()) == [
        "Ann <ann@example.org>",
        "Bob <bob@example.org>",
    ]


async def test_mail_about_ended_problem_is_not_sent(
    scenario: PublishingScenario, context: JobContext, tmp_path: Path
) -> None:
    held = await hold(scenario, await scenario.connect_account())
    unset = {"$set": {"state": "SCHEDULED"}}
    await scenario.stores.mongo["publications"].update_one({"_id": held.id}, unset)
    assert await send_author_mails(context) == 1
    assert list(tmp_path.iterdir()) == []
    assert {"mail_at", "mail"}.isdisjoint(await scenario.stored_document(held))


async def test_late_post_is_mailed(
    scenario: PublishingScenario, publisher: PostPublisher, context: JobContext, tmp_path: Path
) -> None:
    post = await scenario.schedule(account_target(await scenario.connect_account()), in_s=1)
    await scenario.pass_time(181)
    published = await run_once(publisher, scenario, post)
    assert published.state is PublicationState.PUBLISHED
    assert await send_author_mails(context) == 1
    (file,) = tmp_path.iterdir()
    assert all("3 min late" in part for part in parts(read_mail(file)))


async def test_delayed_mail_is_sent_later(
    scenario: PublishingScenario, publisher: PostPublisher, context: JobContext
) -> None:
    post = await scenario.schedule(scenario.topic, in_s=-1)
    await scenario.topic_scenario.hand_over_and_leave()
    failed = await run_once(publisher, scenario, post)
    unreachable_mailer = job_context(context.stores, context.egress, publisher=publisher)
    assert await send_author_mails(unreachable_mailer) == 1
    assert await send_author_mails(context) == 0, "The mail must not be sent again at once."
    await scenario.pass_time(121)
    assert await send_author_mails(context) == 1
    assert "mail_at" not in await scenario.stored_document(failed)


async def test_mail_without_address_is_dropped(
    scenario: PublishingScenario, publisher: PostPublisher, context: JobContext
) -> None:
    await scenario.stores.mongo["users"].update_many({"_id.org": scenario.organization_id}, {"$unset": {"email": ""}})
    post = await scenario.schedule(scenario.home, in_s=-1, max_lateness_s=5)
    await scenario.pass_time(10)
    failed = await run_once(publisher, scenario, post)
    assert failed.state is PublicationState.FAILED
    await send_author_mails(job_context(context.stores, context.egress, publisher=publisher))
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
