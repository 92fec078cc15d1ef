"""Sends mail by SMTP, or stores mail as files if no server is configured. Some errors are final, others retryable."""

import asyncio
import secrets
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import aiosmtplib

TIMEOUT_S = 15.0
DEFAULT_PORTS = {"smtp": 25, "smtps": 465}


class MailRefused(Exception):
    """The server refuses the mail for good, or the recipient has no address. A retry would fail in the same way."""


class MailDelayed(Exception):
    """The server is unreachable or does not accept the mail now. A retry may succeed."""


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail to one recipient. A mail without an address can only be stored as a file."""

    to_name: str
    to_address: str | None
    subject: str
    text: str


class Mailer:
    """Sends the mails of a worker process."""

    def __init__(self, url: str | None, sender: str, folder: Path) -> None:
        """`url` is smtp://user:password@host:port or smtps://. Without a URL, mails are stored in `folder`."""
        self._url = None if url is None else urlsplit(url)
        self._sender = sender
        self._folder = folder

    async def send(self, mail: Mail, id_: str) -> None:
        """Sends the mail, or stores it as `<id>.eml`. The same id gives the same Message-ID.

        Raises: MailRefused, MailDelayed.
        """
        message = _message(mail, self._sender, id_)
        if self._url is None:
            await asyncio.to_thread(self._store, message, id_)
            return
        if mail.to_address is None:
            raise MailRefused("The recipient has no mail address.")
        try:
            await self._deliver(message)
        except (aiosmtplib.SMTPRecipientsRefused, aiosmtplib.SMTPResponseException) as error:
            raise _mail_error(error) from error
        except (aiosmtplib.SMTPException, OSError, TimeoutError) as error:
            raise MailDelayed(f"{type(error).__name__}: {error}") from error

    async def _deliver(self, message: EmailMessage) -> None:
        url = self._url
        assert url is not None
        await aiosmtplib.send(
            message,
            hostname=url.hostname,
            port=url.port or DEFAULT_PORTS[url.scheme],
            username=None if url.username is None else unquote(url.username),
            password=None if url.password is None else unquote(url.password),
            use_tls=url.scheme == "smtps",
            timeout=TIMEOUT_S,
        )

    def _store(self, message: EmailMessage, id_: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Written to a temporary file and renamed, so that no reader sees half a mail.
        temporary = self._folder / f".{id_}.{secrets.token_hex(4)}"
        temporary.write_bytes(message.as_bytes())
        temporary.replace(self._folder / f"{id_}.eml")


def _message(mail: Mail, sender: str, id_: str) -> EmailMessage:
    message = EmailMessage()
    message["From"] = sender
    # "Ann Lee:;" is an empty group (RFC 5322, 3.4): it shows the name of a recipient without an address.
    to_name = _without_specials(mail.to_name)
    message["To"] = f'"{to_name}" <{mail.to_address}>' if mail.to_address else f"{to_name}:;"
    message["Subject"] = "".join(each if each.isprintable() else " " for each in mail.subject)
    message["Date"] = formatdate()
    # A dot is allowed only between other characters (RFC 5322, 3.2.3).
    message["Message-ID"] = f"<{quote(id_, safe='').replace('.', '%2E')}@noroshi.invalid>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.text)
    return message


def _without_specials(text: str) -> str:
    """Returns the text with spaces for characters that have a meaning in headers."""
    return "".join(" " if each in '"\\<>:;,@()[]' or not each.isprintable() else each for each in text)


def _mail_error(error: Exception) -> MailRefused | MailDelayed:
    """Returns MailRefused when every recipient was refused for good (5xx), else MailDelayed."""
    recipients = getattr(error, "recipients", None) or [error]
    # An error without a code counts as temporary.
    codes = [getattr(each, "code", 400) for each in recipients]
    return MailRefused(str(error)) if all(code >= 500 for code in codes) else MailDelayed(str(error))
