"""An SMTP server that stops at each step of a mail: a test may then kill the sender, or refuse the step."""

import asyncio
import email
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import policy
from email.message import EmailMessage
from typing import cast

STEPS = ("connect", "mail", "rcpt", "data", "content", "accepted")
"""In the order of a mail. `content`: the mail has arrived, and is not answered yet. `accepted`: it is answered."""

REPLIES = {
    "connect": b"220 twin ESMTP",
    "mail": b"250 2.1.0 fine",
    "rcpt": b"250 2.1.5 fine",
    "data": b"354 go on",
    "content": b"250 2.0.0 taken",
}
_STEP_OF_VERB = {b"MAIL": "mail", b"RCPT": "rcpt", b"DATA": "data"}


@dataclass
class MailServer:
    """The running server. It keeps each mail that arrived completely and was not refused."""

    url: str = ""
    mails: list[EmailMessage] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)
    """The mails as they were sent."""

    refusals: dict[str, list[bytes]] = field(default_factory=dict)
    """By step, the replies of the next mails instead of the usual one."""

    on_step: Callable[[str], Awaitable[None]] | None = None
    """Runs before a step is answered, and after the answer for `accepted`. If it raises, the connection ends."""

    def to(self, address: str) -> list[EmailMessage]:
        """Returns the mails to an address."""
        return [mail for mail in self.mails if address in mail["To"]]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""
        try:
            await self._answer(writer, "connect")
            while line := await reader.readline():
                await self._command(line, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _command(self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        step = _STEP_OF_VERB.get(line[:4].upper())
        if step is None:
            writer.write(b"221 bye\r\n" if line[:4].upper() == b"QUIT" else b"250 fine\r\n")
            return
        if (await self._answer(writer, step)).startswith(b"354"):
            await self._receive(await reader.readuntil(b"\r\n.\r\n"), writer)

    async def _receive(self, content: bytes, writer: asyncio.StreamWriter) -> None:
        is_refused = bool(self.refusals.get("content"))
        if not is_refused:
            self.contents.append(content[:-3].replace(b"\r\n..", b"\r\n."))
            self.mails.append(cast(EmailMessage, email.message_from_bytes(self.contents[-1], policy=policy.default)))
        await self._answer(writer, "content")
        if not is_refused:
            await writer.drain()
            await self._reach("accepted")

    async def _answer(self, writer: asyncio.StreamWriter, step: str) -> bytes:
        await self._reach(step)
        refusals = self.refusals.get(step)
        reply = refusals.pop(0) if refusals else REPLIES[step]
        writer.write(reply + b"\r\n")
        return reply

    async def _reach(self, step: str) -> None:
        if self.on_step is not None:
            await self.on_step(step)


@asynccontextmanager
async def mail_server() -> AsyncIterator[MailServer]:
    """Serves SMTP on loopback."""
    twin = MailServer()
    server = await asyncio.start_server(twin.serve, "127.0.0.1", 0, limit=1 << 22)
    twin.url = f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield twin
    finally:
        server.close()
