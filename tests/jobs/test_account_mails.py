"""Mails about accounts: each is sent, however workers die. Reset mails go only to people who have an account."""

import asyncio
import re
from email import message_from_bytes, policy
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from jobs.account_mails import send_account_mails
from jobs.context import JobContext
from jobs.providers.mailer import Mailer
from storage.identity.accounts.local_accounts import MailLanguage, NewLocalAccount
from storage.identity.accounts.mails import AccountMailKind
from storage.identity.accounts.tokens import TokenPurpose, TokenSubject
from storage.identity.audit import Actor
from storage.identity.roles import Role
from storage.ids import new_id
from storage.stores import Stores
from tests.jobs.contexts import job_context
from tests.jobs.providers.test_mailer import RecordingSmtpHandler, smtp
from tests.storage.identity.accounts.conftest import new_invitation

pytestmark = pytest.mark.anyio

ORG = "acme"
BEA = "bea@example.org"


@pytest.fixture
def context(stores: Stores, tmp_path: Path) -> JobContext:
    return job_context(stores, mailer=Mailer(None, "noroshi@example.org", tmp_path))


@pytest.fixture
async def admin(stores: Stores) -> Actor:
    await stores.users.sign_in(ORG, "ada", [Role.ADMIN], "Ada <b>", None)
    return Actor(ORG, "ada")


async def create_bea(stores: Stores, admin: Actor, password_hash: str | None = "no hash") -> None:
    created = await stores.invitations.create(admin, new_invitation(address=BEA), None)
    new = NewLocalAccount(Actor(ORG, new_id()), BEA, "Bea", None, password_hash, MailLanguage.JA)
    await stores.registrations.create_invited(created.token or "", new)
    await stores.mongo["account_mails"].delete_many({})


def sent_mails(folder: Path) -> list[tuple[str, str, str]]:
    """Returns the recipient, the subject and the text of each mail."""
    mails = [message_from_bytes(file.read_bytes(), policy=policy.default) for file in sorted(folder.glob("*.eml"))]
    return [(str(mail["To"]), str(mail["Subject"]), mail.get_content()) for mail in mails]  # type: ignore[attr-defined]


def token_in(text: str, purpose: str) -> str:
    link = re.search(rf"^http://127\.0\.0\.1:8000/#{purpose}=([\w-]{{43}})$", text, re.MULTILINE)
    assert link, text
    return link[1]


@pytest.mark.parametrize(("language", "words"), [(MailLanguage.EN, "Finish your"), (MailLanguage.JA, "登録を完了")])
async def test_registration_mail_has_a_link_for_its_address(
    context: JobContext, tmp_path: Path, language: MailLanguage, words: str
) -> None:
    await context.stores.account_mails.add(AccountMailKind.REGISTRATION, ORG, BEA, language)
    assert await send_account_mails(context) == 1
    assert await send_account_mails(context) == 0
    ((recipient, subject, text),) = sent_mails(tmp_path)
    assert BEA in recipient
    assert words in subject
    subject_of_token = await context.stores.account_tokens.find(
        TokenPurpose.REGISTRATION, token_in(text, "verification")
    )
    assert subject_of_token == TokenSubject(ORG, address=BEA)


async def test_registration_of_a_known_address_has_no_token(context: JobContext, admin: Actor, tmp_path: Path) -> None:
    await create_bea(context.stores, admin)
    await context.stores.account_mails.add(AccountMailKind.REGISTRATION, ORG, BEA, MailLanguage.EN)
    await send_account_mails(context)
    ((_, subject, text),) = sent_mails(tmp_path)
    assert subject == "You already have a Noroshi account"
    assert "#" not in text


@pytest.mark.parametrize("password_hash", ["no hash", None], ids=["password", "passkeys only"])
async def test_reset_mail_goes_to_people_with_an_account_only(
    context: JobContext, admin: Actor, tmp_path: Path, password_hash: str | None
) -> None:
    await create_bea(context.stores, admin, password_hash)
    for address in ("nobody@example.org", BEA):
        await context.stores.account_mails.add(AccountMailKind.RESET, ORG, address, MailLanguage.EN)
    assert await send_account_mails(context) == 2
    ((recipient, _, text),) = sent_mails(tmp_path)
    assert recipient == f"Bea <{BEA}>"
    subject = await context.stores.account_tokens.find(TokenPurpose.RESET, token_in(text, "reset"))
    assert (subject.organization_id, subject.address) == (ORG, BEA)
    assert await context.stores.mongo["account_mails"].count_documents({}) == 0


async def test_deactivated_user_gets_no_reset_mail(context: JobContext, admin: Actor, tmp_path: Path) -> None:
    await create_bea(context.stores, admin)
    account = await context.stores.local_accounts.find(ORG, BEA)
    assert account is not None
    await context.stores.user_administration.deactivate(admin, account.user_id, "left")
    await context.stores.account_mails.add(AccountMailKind.RESET, ORG, BEA, MailLanguage.EN)
    await send_account_mails(context)
    assert sent_mails(tmp_path) == []


async def test_mailed_link_is_another_link_of_the_same_invitation(
    context: JobContext, admin: Actor, tmp_path: Path
) -> None:
    created = await context.stores.invitations.create(admin, new_invitation(Role.OPERATOR, address=BEA), None)
    await send_account_mails(context)
    ((recipient, _, text),) = sent_mails(tmp_path)
    assert BEA in recipient
    assert "Ada <b> invites you" in text
    for token in (created.token or "", token_in(text, "invitation")):
        assert (await context.stores.invitations.find(ORG, token)).id == created.invitation.id


async def test_revoked_invitation_is_not_mailed(context: JobContext, admin: Actor, tmp_path: Path) -> None:
    created = await context.stores.invitations.create(admin, new_invitation(address=BEA), None)
    await context.stores.invitations.revoke(admin, created.invitation.id)
    assert await send_account_mails(context) == 1
    assert sent_mails(tmp_path) == []
    assert await context.stores.mongo["account_mails"].count_documents({}) == 0


async def test_mail_of_a_dead_worker_or_server_is_sent_later(context: JobContext, tmp_path: Path) -> None:
    mails = context.stores.account_mails
    await mails.add(AccountMailKind.REGISTRATION, ORG, BEA, MailLanguage.EN)
    context_without_mail_server = job_context(context.stores)
    assert await send_account_mails(context_without_mail_server) == 1
    assert await send_account_mails(context) == 0, "The mail must not be tried again at once."
    past = {"$set": {"due": await context.stores.mongo.now()}}
    await context.stores.mongo["account_mails"].update_many({}, past)
    assert len(await mails.claim(5)) == 1, "This worker dies with its claim."
    assert await send_account_mails(context) == 0
    await context.stores.mongo["account_mails"].update_many({}, past)
    assert await send_account_mails(context) == 1
    assert len(sent_mails(tmp_path)) == 1


async def test_concurrent_sweeps_send_each_mail_once(context: JobContext, tmp_path: Path) -> None:
    for n in range(6):
        await context.stores.account_mails.add(AccountMailKind.REGISTRATION, ORG, f"p{n}@example.org", MailLanguage.EN)
    await asyncio.gather(*(send_account_mails(context) for _ in range(4)))
    tokens = await context.stores.mongo["account_tokens"].count_documents({})
    assert (len(sent_mails(tmp_path)), tokens) == (6, 6)


@pytest.mark.parametrize("refusal", [f"550 5.1.1 <{BEA}> unknown", f"451 4.2.1 <{BEA}> try later"])
async def test_refused_mail_leaves_no_address_in_the_log(context: JobContext, tmp_path: Path, refusal: str) -> None:
    """The text of the server's answer holds the address."""
    inbox = RecordingSmtpHandler()
    inbox.refusal = refusal
    await context.stores.account_mails.add(AccountMailKind.REGISTRATION, ORG, BEA, MailLanguage.EN)
    async with smtp(inbox) as url:
        jobs = job_context(context.stores, mailer=Mailer(url, "noroshi@example.org", tmp_path))
        with capture_logs() as entries:
            assert await send_account_mails(jobs) == 1
    assert [each["event"] for each in entries] == ["mail_refused" if refusal.startswith("5") else "mail_delayed"]
    assert refusal[:3] in str(entries)
    assert "@" not in str(entries)
