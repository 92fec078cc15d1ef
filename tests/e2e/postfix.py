"""A real Postfix on loopback with its own folder, and the scripted mail server to which it delivers.

The scripted server has another address of this machine, because servers on loopback count as content filters.
"""

import asyncio
import secrets
import shutil
import smtplib
import socket
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.product import eventually
from tests.programs import POSTFIX_DAEMONS

PORTS = range(30_000, 32_000)
"""Ports outside the ranges of outgoing connections and of other tests: Postfix cannot choose a free port itself."""
REPLIES = {
    "unknown": b"550 5.1.1 <%s>: Recipient address rejected: User unknown in virtual mailbox table",
    "full": b"452 4.2.2 <%s>: Mailbox full",
    "quota": b"552 5.2.2 <%s>: Over quota",
    "spam": b"550 5.7.1 Refused by policy",
    "old": b"550 No such user here",
}
"""Error replies by local part.

`grey` is greylisted once, `slow` gets no reply, and all other local parts accept mail.
"""

MASTER_CF = """\
smtp      inet  n - n - -  smtpd
pickup    unix  n - n 1 1  pickup
cleanup   unix  n - n - 0  cleanup
qmgr      unix  n - n 1 1  qmgr
rewrite   unix  - - n - -  trivial-rewrite
bounce    unix  - - n - 0  bounce
defer     unix  - - n - 0  bounce
trace     unix  - - n - 0  bounce
verify    unix  - - n - 1  verify
flush     unix  n - n 1000? 0 flush
proxymap  unix  - - n - -  proxymap
smtp      unix  - - n - -  smtp
relay     unix  - - n - -  smtp
error     unix  - - n - -  error
retry     unix  - - n - -  error
anvil     unix  - - n - 1  anvil
scache    unix  - - n - 1  scache
postlog   unix-dgram n - n - 1 postlogd
"""


@dataclass
class ScriptedMailServer:
    """An SMTP server that replies by local part. It records its replies and the accepted messages."""

    host: str
    port: int = 0
    replies: Counter[tuple[str, int]] = field(default_factory=Counter)
    accepted_messages: list[bytes] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""
        writer.write(b"220 scripted ESMTP\r\n")
        try:
            while line := await reader.readline():
                verb = line[:4].upper()
                if verb == b"DATA":
                    writer.write(b"354 go on\r\n")
                    self.accepted_messages.append(await reader.readuntil(b"\r\n.\r\n"))
                    writer.write(b"250 2.0.0 taken\r\n")
                elif verb == b"RCPT":
                    writer.write(await self._reply_to_recipient(line.partition(b"<")[2].partition(b">")[0].decode()))
                else:
                    writer.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 fine\r\n")
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _reply_to_recipient(self, address: str) -> bytes:
        name = address.partition("@")[0]
        if name == "slow":
            await asyncio.sleep(60)
        is_first = not any(recipient == address for recipient, _ in self.replies)
        other_reply = b"450 4.7.1 Greylisted, try again" if name == "grey" and is_first else b"250 2.1.5 fine"
        reply = REPLIES.get(name, other_reply).replace(b"%s", address.encode())
        self.replies[address, int(reply[:3])] += 1
        return reply + b"\r\n"


@asynccontextmanager
async def scripted_mail_server() -> AsyncIterator[ScriptedMailServer]:
    """Starts a scripted server on a free port."""
    mail_server = ScriptedMailServer(_own_address())
    server = await asyncio.start_server(mail_server.serve, mail_server.host, 0, limit=1 << 22)
    mail_server.port = server.sockets[0].getsockname()[1]
    try:
        yield mail_server
    finally:
        server.close()


def _own_address() -> str:
    """Returns an address of this machine that is not on loopback. Skips the test if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # Chooses an address, and sends nothing.
        except OSError:
            pytest.skip("This machine has loopback addresses only.")
        return str(probe.getsockname()[0])


@dataclass(frozen=True)
class Postfix:
    """A running Postfix."""

    log: Path
    port: int

    def send(self, *recipients: str, sender: str = "news@sender.example") -> None:
        """Sends one message to each address."""
        with smtplib.SMTP("127.0.0.1", self.port, timeout=60) as smtp:
            for each in recipients:
                smtp.sendmail(sender, [each], f"From: {sender}\r\nTo: {each}\r\nSubject: News\r\n\r\nHello\r\n")

    def has_removed(self, messages: int) -> bool:
        """Returns whether this many messages have left the queue."""
        return self.log.exists() and self.log.read_text(errors="replace").count(": removed\n") >= messages


@contextmanager
def postfix(folder: Path, server: ScriptedMailServer) -> Iterator[Postfix]:
    """Starts a Postfix that delivers to the scripted mail server. Mail to dead.example finds no server."""
    port = secrets.choice(PORTS)
    config = folder / "etc"
    for path in (config, folder / "queue", folder / "data"):
        path.mkdir(parents=True)
    folder.chmod(0o755)
    shutil.chown(folder / "data", "postfix")
    log = folder / "mail.log"
    (config / "master.cf").write_text(MASTER_CF.replace("smtp      inet", f"127.0.0.1:{port} inet"))
    (config / "main.cf").write_text(_main_cf(folder, log, server))
    command = ["postfix", "-c", str(config)]
    start_result = subprocess.run([*command, "start"], capture_output=True, text=True)
    try:
        assert start_result.returncode == 0, start_result.stderr
        assert eventually(lambda: _is_listening(port)), log.read_text() if log.exists() else start_result.stderr
        yield Postfix(log, port)
    finally:
        subprocess.run([*command, "stop"], capture_output=True)
        _wait_for_exit(folder)


def _main_cf(folder: Path, log: Path, server: ScriptedMailServer) -> str:
    settings = {
        "compatibility_level": "3.6",
        "queue_directory": folder / "queue",
        "data_directory": folder / "data",
        "command_directory": "/usr/sbin",
        "daemon_directory": POSTFIX_DAEMONS,
        "maillog_file": log,
        "maillog_file_prefixes": folder,
        "myhostname": "mx.sender.example",
        "mydestination": "",
        "local_recipient_maps": "",
        "alias_maps": "",
        "mynetworks": "127.0.0.0/8",
        "inet_interfaces": "127.0.0.1",
        "inet_protocols": "ipv4",
        "relayhost": f"[{server.host}]:{server.port}",
        "transport_maps": f"inline:{{ {{dead.example = smtp:[{server.host}]:1}} }}",
        "smtp_rcpt_timeout": "3s",
        "smtp_destination_concurrency_limit": "10",
        "smtp_connection_cache_on_demand": "no",
        "smtp_destination_recipient_limit": "1",
        "destination_concurrency_feedback_debug": "no",
        "default_destination_concurrency_failed_cohort_limit": "1000",
        "minimal_backoff_time": "1s",
        "maximal_backoff_time": "1s",
        "queue_run_delay": "1s",
        "maximal_queue_lifetime": "4s",
        "bounce_queue_lifetime": "4s",
    }
    return "".join(f"{name} = {value}\n" for name, value in settings.items())


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait_for_exit(folder: Path) -> None:
    pid_file = folder / "queue" / "pid" / "master.pid"
    ends_at = time.monotonic() + 10
    while time.monotonic() < ends_at and pid_file.exists() and _is_running(pid_file.read_text().strip()):
        time.sleep(0.05)


def _is_running(pid: str) -> bool:
    return pid.isdigit() and Path(f"/proc/{pid}").exists()
