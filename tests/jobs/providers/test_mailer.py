"""Mail is sent to a real SMTP server. Without a server, it is written to files."""

import asyncio
import email
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from email import policy
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP

from jobs.providers.mail_files import RECIPIENT
from jobs.providers.mailer import Mail, MailDelayed, Mailer, MailRefused
from storage.ids import UserKey

pytestmark = pytest.mark.anyio

MAIL = Mail("Ann Lee", "ann@example.org", "Not published: 狼煙", "Hello Ann,\n\nit was not.")


class RecordingSmtpHandler:
    """The handler of an SMTP server. It keeps accepted mails, and answers recipients with `refusal` if that is set."""

    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.refusal: str | None = None

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if self.refusal:
            return self.refusal
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.mails.append((envelope.rcpt_tos, email.message_from_bytes(envelope.content, policy=policy.default)))
        return "250 OK"


@asynccontextmanager
async def smtp(inbox: RecordingSmtpHandler) -> AsyncIterator[str]:
    """Serves SMTP on loopback. Yields the URL."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(inbox, hostname="twin", loop=loop), "127.0.0.1", 0)
    async with server:
        yield f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.fixture
def inbox() -> RecordingSmtpHandler:
    return RecordingSmtpHandler()


async def test_mail_arrives_unchanged(inbox: RecordingSmtpHandler, tmp_path: Path) -> None:
    async with smtp(inbox) as url:
        await Mailer(url, "Noroshi <noroshi@example.org>", tmp_path).send(MAIL, "id1")
    ((recipients, message),) = inbox.mails
    assert recipients == ["ann@example.org"]
    assert (message["subject"], message["to"]) == ("Not published: 狼煙", "Ann Lee <ann@example.org>")
    assert message.get_content().splitlines() == ["Hello Ann,", "", "it was not."]
    assert list(tmp_path.iterdir()) == []


async def test_mail_sent_again_has_the_same_message_id(inbox: RecordingSmtpHandler, tmp_path: Path) -> None:
    async with smtp(inbox) as url:
        for id_ in ("post..1", "post..1", "post.%1", "mail:<a@example.org>"):
            await Mailer(url, "Noroshi <noroshi@example.org>", tmp_path).send(MAIL, id_)
    first, repeated, *others = [message["message-id"] for _, message in inbox.mails]
    assert first == repeated == "<post%2E%2E1@noroshi.invalid>"
    assert others == ["<post%2E%251@noroshi.invalid>", "<mail%3A%3Ca%40example%2Eorg%3E@noroshi.invalid>"]


@pytest.mark.parametrize(
    ("refusal", "outcome"), [("550 5.1.1 no such user", MailRefused), ("451 4.3.0 later", MailDelayed)]
)
async def test_smtp_refusal_is_final_and_delay_retryable(
    inbox: RecordingSmtpHandler, tmp_path: Path, refusal: str, outcome: type[Exception]
) -> None:
    inbox.refusal = refusal
    async with smtp(inbox) as url:
        with pytest.raises(outcome):
            await Mailer(url, "noroshi@example.org", tmp_path).send(MAIL, "id1")


async def test_unreachable_smtp_server_is_a_delay(tmp_path: Path) -> None:
    with pytest.raises(MailDelayed):
        await Mailer("smtp://127.0.0.1:1", "noroshi@example.org", tmp_path).send(MAIL, "id1")


async def test_mail_without_recipient_is_refused(inbox: RecordingSmtpHandler, tmp_path: Path) -> None:
    async with smtp(inbox) as url:
        with pytest.raises(MailRefused):
            await Mailer(url, "noroshi@example.org", tmp_path).send(Mail("Ann", None, "s", "t"), "id1")
    assert inbox.mails == []


async def test_only_stored_mails_name_the_recipient(inbox: RecordingSmtpHandler, tmp_path: Path) -> None:
    mail = replace(MAIL, recipient=UserKey("acme", "ann " * 40))
    async with smtp(inbox) as url:
        for mailer in (Mailer(url, "noroshi@example.org", tmp_path), Mailer(None, "noroshi@example.org", tmp_path)):
            await mailer.send(mail, "id1")
    ((_, sent),) = inbox.mails
    stored = email.message_from_bytes((tmp_path / "id1.eml").read_bytes(), policy=policy.default)
    assert (sent[RECIPIENT], stored[RECIPIENT]) == (None, "acme/" + "ann%20" * 40)


async def test_mails_without_smtp_server_are_files(tmp_path: Path) -> None:
    mailer = Mailer(None, "noroshi@example.org", tmp_path / "mail")
    await mailer.send(MAIL, "id1")
    await mailer.send(MAIL, "id1")
    await mailer.send(Mail("Bob", None, "s", "t"), "id2")
    files = sorted((tmp_path / "mail").iterdir())
    assert [file.name for file in files] == ["id1.eml", "id2.eml"]
    message = email.message_from_bytes(files[0].read_bytes(), policy=policy.default)
    assert message["subject"] == "Not published: 狼煙"


async def test_names_and_subjects_cannot_inject_headers(inbox: RecordingSmtpHandler, tmp_path: Path) -> None:
    mail = Mail('Ann"\r\nBcc: eve@example.org', "ann@example.org", "a\r\nBcc: eve@example.org", "t")
    async with smtp(inbox) as url:
        await Mailer(url, "noroshi@example.org", tmp_path).send(mail, "id1")
    ((recipients, message),) = inbox.mails
    assert recipients == ["ann@example.org"]
    assert message["bcc"] is None


@pytest.mark.parametrize(
    ("url", "is_plain_allowed"),
    [
        ("smtp://127.0.0.1:2525", True),
        ("smtp://localhost", True),
        ("smtp://[::1]", True),
        ("smtp://user:secret@127.0.0.1:2525", False),
        ("smtp://mail.example.org", False),
        ("smtp://localhost.evil.example.org", False),
        ("smtp://192.0.2.1:587", False),
    ],
)
async def test_mail_needs_encryption(tmp_path: Path, url: str, is_plain_allowed: bool) -> None:
    client = Mailer(url, "noroshi@example.org", tmp_path)._client()
    assert client._start_tls_on_connect is (None if is_plain_allowed else True)


async def test_stripped_starttls_sends_neither_mail_nor_password(inbox: RecordingSmtpHandler, tmp_path: Path) -> None:
    """The server does not offer STARTTLS, as after an attacker has removed the offer."""
    async with smtp(inbox) as url:
        mailer = Mailer(url.replace("//", "//user:secret@"), "noroshi@example.org", tmp_path)
        with pytest.raises(MailDelayed, match="STARTTLS"):
            await mailer.send(MAIL, "id1")
    assert inbox.mails == []
