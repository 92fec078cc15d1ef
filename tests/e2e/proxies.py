"""nginx and Caddy with the configurations of `deploy/`, in which only names, addresses and files are replaced.

The product sees both at the address 127.0.0.2. Their clients choose addresses of their own on loopback.
"""

import asyncio
import os
import secrets
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from websockets.asyncio.client import connect
from websockets.typing import Origin, Subprotocol

from tests.certificates import create_tls_contexts
from tests.product import eventually
from tests.programs import require_caddy, require_nginx

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PROXY_ADDRESS = "127.0.0.2"
PORTS = range(32_000, 32_700)
"""Ports outside the ranges of outgoing connections and of other tests."""

NGINX_CONF = """\
{user}
worker_processes 1;
daemon off;
pid nginx.pid;
error_log error.log;
events {{}}
http {{
    access_log off;
    proxy_bind {address};
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    include noroshi.conf;
}}
"""


@dataclass(frozen=True)
class Proxy:
    """A running proxy, and the context with which its clients trust its certificate."""

    url: str
    tls: ssl.SSLContext | None = None

    def client(self, address: str, **headers: str) -> httpx2.AsyncClient:
        """Returns a client at an address. `headers` are sent with each request; underscores become hyphens."""
        transport = httpx2.AsyncHTTPTransport(local_address=address, verify=self.tls or True)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx2.AsyncClient(transport=transport, base_url=self.url, timeout=120, headers=named)

    def socket(
        self, address: str, origin: str, cookie: str, forwarded_for: str = "198.51.100.1", **options: object
    ) -> connect:
        """Returns a context manager that opens a socket from an address, with a cookie."""
        return connect(
            f"{self.url.replace('http', 'ws', 1)}/graphql",
            subprotocols=[Subprotocol("graphql-transport-ws")],
            origin=Origin(origin),
            additional_headers={"cookie": cookie, "x-forwarded-for": forwarded_for},
            local_addr=(address, 0),
            ssl=self.tls,
            open_timeout=60,
            **options,  # type: ignore[arg-type]
        )


@contextmanager
def nginx(folder: Path, web_url: str, replacements: Mapping[str, str] | None = None) -> Iterator[Proxy]:
    """Starts nginx with TLS in front of a web process. `replacements` change its configuration further."""
    program = require_nginx()
    _, client_tls = create_tls_contexts("127.0.0.1", folder)
    port, plain_port = _free_ports(2)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(NGINX_CONF.format(user=user, address=PROXY_ADDRESS))
    configuration = _replaced(
        (DEPLOY / "nginx.conf").read_text(),
        {
            "listen 80;": f"listen 127.0.0.1:{plain_port};",
            "listen 443 ": f"listen 127.0.0.1:{port} ",
            "/etc/ssl/certs/chat.example.org.pem": str(folder / "certificate.pem"),
            "/etc/ssl/private/chat.example.org.pem": str(folder / "key.pem"),
            "server 127.0.0.1:8000;": f"server {urlsplit(web_url).netloc};",
            **(replacements or {}),
        },
    )
    (folder / "noroshi.conf").write_text(configuration)
    command = [program, "-e", "error.log", "-p", str(folder), "-c", "nginx.conf"]
    with _running(command, folder, port):
        yield Proxy(f"https://127.0.0.1:{port}", client_tls)


@asynccontextmanager
async def caddy(folder: Path, web_url: str) -> AsyncIterator[Proxy]:
    """Starts Caddy without TLS in front of a web process."""
    program = require_caddy()
    (port,) = _free_ports(1)
    async with _relay(web_url) as relay_address:
        replacements = {"chat.example.org {": f"http://127.0.0.1:{port} {{", "127.0.0.1:8000": relay_address}
        configuration = _replaced((DEPLOY / "Caddyfile").read_text(), replacements)
        # Without the port of the administration, which every Caddy of a machine would take.
        (folder / "Caddyfile").write_text("{\n\tadmin off\n}\n" + configuration)
        with _running([program, "run", "--config", "Caddyfile"], folder, port):
            yield Proxy(f"http://127.0.0.1:{port}")


@asynccontextmanager
async def _relay(web_url: str) -> AsyncIterator[str]:
    """Relays connections from the proxy's address, which Caddy 2.6 can't choose. Yields the relay's address."""
    web = urlsplit(web_url)

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection(
            web.hostname, web.port, local_addr=(PROXY_ADDRESS, 0)
        )
        await asyncio.gather(copy(reader, upstream_writer), copy(upstream_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@contextmanager
def _running(command: Sequence[str], folder: Path, port: int) -> Iterator[None]:
    """Runs a proxy until the block ends."""
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=os.environ | {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)},
        )
    try:
        assert eventually(lambda: _is_listening(port) or process.poll() is not None), log.read_text()
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()
        process.wait(60)


def _replaced(text: str, replacements: Mapping[str, str]) -> str:
    for old, new in replacements.items():
        assert old in text, f"{old!r} is not in the configuration."
        text = text.replace(old, new)
    return text


def _free_ports(count: int) -> list[int]:
    ports: list[int] = []
    while len(ports) < count:
        port = secrets.choice(PORTS)
        if port not in ports and not _is_listening(port):
            ports.append(port)
    return ports


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
