"""Sends mail by SMTP, or stores mail as files if no server is configured. Some errors are final, others retryable."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import SMTP, EmailPolicy
from email.utils import formatdate, parseaddr
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

import aiosmtplib

from jobs.providers.mail_files import RECIPIENT, MailFiles, with_recipient
from storage.ids import UserKey

TIMEOUT_S = 15.0
DEFAULT_PORTS = {"smtp": 25, "smtps": 465}
START_INPUT, COMPLETED = 354, 250

_LINE_WITH_DOT = re.compile(rb"^\.", re.MULTILINE)


class MailRefused(Exception):
    """The server refuses the mail for good, or the recipient has no address. A retry would fail in the same way."""

    def __init__(self, message: str, code: int | None = None, reply: str = "") -> None:
        super().__init__(message)
        self.code = code
        """The server's reply code; None without a reply."""

        self.reply = reply
        """Text of the server's reply, which may contain the recipient's address."""


class MailDelayed(Exception):
    """The server is unreachable or does not accept the mail now. A retry may succeed."""


class MailUncertain(MailDelayed):
    """The mail was transferred, and the connection ended before the server's answer. A retry may repeat the mail."""


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail to one recipient. A mail without an address can only be stored as a file."""

    to_name: str
    to_address: str | None
    subject: str
    text: str
    html: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers, in ASCII. They are sent as they are, in one line each."""

    recipient: UserKey | None = None
    """The user who gets the mail; None for mails to an address alone. Only stored mails hold it."""


async def _nothing() -> None: ...


class Mailer:
    """Sends the mails of a worker process."""

    def __init__(self, url: str | None, sender: str, folder: Path) -> None:
        """`url` is smtp://user:password@host:port or smtps://. Without a URL, mails are stored in `folder`."""
        self._url = None if url is None else urlsplit(url)
        self._sender = sender
        self.files = MailFiles(folder)

    async def send(self, mail: Mail, id_: str, before_transfer: Callable[[], Awaitable[None]] = _nothing) -> None:
        """Sends the mail, or stores it as `<id>.eml`. The same id gives the same Message-ID.

        `before_transfer` runs when the server has accepted everything but the content. If it raises, the server gets
        no mail. Raises: MailRefused, MailDelayed, MailUncertain.
        """
        message = _message(mail, self._sender, id_)
        if self._url is None:
            await before_transfer()
            content = with_recipient(message, mail.recipient).as_bytes(policy=_FILE_POLICY)
            await asyncio.to_thread(self.files.store, content, id_)
            return
        if mail.to_address is None:
            raise MailRefused("The recipient has no mail address.")
        try:
            await self._deliver(message, mail.to_address, before_transfer)
        except (aiosmtplib.SMTPConnectResponseError, aiosmtplib.SMTPAuthenticationError) as error:
            # Whatever the code is, the server has not refused this mail.
            raise MailDelayed(f"The mail server answered {error.code} to the connection.") from error
        except aiosmtplib.SMTPResponseException as error:
            raise _mail_error(error) from error
        except (aiosmtplib.SMTPException, OSError, TimeoutError) as error:
            # The library writes the texts of this class. Other texts are the server's, and may hold addresses.
            is_own_text = type(error) is aiosmtplib.SMTPException
            raise MailDelayed(str(error) if is_own_text else type(error).__name__) from error

    async def _deliver(
        self, message: EmailMessage, to_address: str, before_transfer: Callable[[], Awaitable[None]]
    ) -> None:
        async with self._client() as client:
            await client.mail(parseaddr(self._sender)[1])
            await client.rcpt(to_address)
            answer = await client.execute_command(b"DATA")
            if answer.code != START_INPUT:
                raise aiosmtplib.SMTPDataError(answer.code, answer.message)
            try:
                await before_transfer()
                await _transfer(client, message)
            except aiosmtplib.SMTPDataError:
                raise
            except BaseException:
                # The server waits for the end of the content, and would take any further command for a part of it.
                client.close()
                raise

    def _client(self) -> aiosmtplib.SMTP:
        url = self._url
        assert url is not None
        return aiosmtplib.SMTP(
            hostname=url.hostname,
            port=url.port or DEFAULT_PORTS[url.scheme],
            username=None if url.username is None else unquote(url.username),
            password=None if url.password is None else unquote(url.password),
            use_tls=url.scheme == "smtps",
            start_tls=_start_tls(url),
            timeout=TIMEOUT_S,
        )


def _start_tls(url: SplitResult) -> bool | None:
    """Returns whether STARTTLS is used: True if the mail needs it, None if it is used where the server offers it.

    Whoever changes the traffic can remove the server's offer. So only a server on this host gets mails without it, and
    only without a password.
    """
    if url.scheme == "smtps":
        return False
    return None if url.username is None and _is_loopback(url.hostname or "") else True


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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
    for name, value in mail.headers.items():
        message[name] = value
    message.set_content(mail.text)
    if mail.html is not None:
        message.add_alternative(mail.html, subtype="html")
    return message


async def _transfer(client: aiosmtplib.SMTP, message: EmailMessage) -> None:
    """Sends the content with its end in one write, and reads the answer. Raises: SMTPDataError, MailUncertain."""
    content = _LINE_WITH_DOT.sub(b"..", message.as_bytes(policy=_TRANSFER_POLICY)) + b".\r\n"
    assert client.protocol is not None
    client.protocol.write(content)
    try:
        answer = await client.protocol.read_response(timeout=TIMEOUT_S)
    except (aiosmtplib.SMTPServerDisconnected, aiosmtplib.SMTPTimeoutError, OSError) as error:
        raise MailUncertain(type(error).__name__) from error
    if answer.code != COMPLETED:
        raise aiosmtplib.SMTPDataError(answer.code, answer.message)


_ONE_LINE = ("List-Unsubscribe", RECIPIENT)
"""Headers that stay whole, since folding would encode a long one."""


class _TransferPolicy(EmailPolicy):
    """The form of mails in SMTP, in ASCII."""

    def fold_binary(self, name: str, value: Any) -> bytes:
        """Returns a header as bytes."""
        if name in _ONE_LINE:
            return f"{name}: {value}\r\n".encode("ascii")
        return super().fold_binary(name, value)


_TRANSFER_POLICY = _TransferPolicy(linesep=SMTP.linesep, cte_type="7bit")
_FILE_POLICY = _TRANSFER_POLICY.clone(linesep="\n")


def _without_specials(text: str) -> str:
    """Returns the text with spaces for characters that have a meaning in headers."""
    return "".join(" " if each in '"\\<>:;,@()[]' or not each.isprintable() else each for each in text)


def _mail_error(error: aiosmtplib.SMTPResponseException) -> MailRefused | MailDelayed:
    """Returns MailRefused for a reply that is final (5xx), else MailDelayed. Logs get the code, and no address."""
    message = f"The mail server answered {error.code}."
    return MailRefused(message, error.code, error.message) if error.code >= 500 else MailDelayed(message)
