"""A private Valkey or Redis that writes every change to a file, synced each second."""

import asyncio
from typing import ClassVar

from server.embedded.private_server import HOST, PrivateServer
from server.processes import POLL_INTERVAL_S


class Valkey(PrivateServer):
    """One Valkey (or Redis 6.2 and later) server."""

    name: ClassVar[str] = "valkey-server"
    variable: ClassVar[str] = "REDIS_URL"

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    def command(self) -> list[str]:
        return [
            *(str(self.binary), "--port", str(self.port), "--bind", HOST, "--dir", str(self.data)),
            *("--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
            # Without this its command line would not show the folder, and no one could tell whose it is.
            *("--set-proc-title", "no"),
        ]

    async def until_it_serves(self) -> None:
        reader, writer = await asyncio.open_connection(HOST, self.port)
        answer = b""
        # It says "-LOADING" while it reads its file.
        while not answer.startswith(b"+PONG"):
            writer.write(b"PING\r\n")
            answer = await reader.readline()
            await asyncio.sleep(POLL_INTERVAL_S if answer else 1)
        writer.close()
        await writer.wait_closed()
