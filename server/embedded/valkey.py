"""An embedded Valkey or Redis that appends every change to a file and syncs the file each second."""

import asyncio
from typing import ClassVar

from server.embedded.binaries import REDIS_VARIABLE
from server.embedded.private_server import HOST, PrivateServer
from server.processes import POLL_INTERVAL_S


class Valkey(PrivateServer):
    """One Valkey server, or Redis 6.2 or later."""

    name: ClassVar[str] = "valkey-server"
    address_variable: ClassVar[str] = "REDIS_URL"
    program_variable: ClassVar[str] = REDIS_VARIABLE

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    def command(self) -> list[str]:
        return [
            *(str(self.binary), "--port", str(self.port), "--bind", HOST, "--dir", str(self.data)),
            *("--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
            # Without this option, the process title would lack the folder, by which a later run recognizes the process.
            *("--set-proc-title", "no"),
        ]

    async def wait_until_ready(self) -> None:
        reader, writer = await asyncio.open_connection(HOST, self.port)
        answer = b""
        # Valkey answers "-LOADING" while it reads its file.
        while not answer.startswith(b"+PONG"):
            writer.write(b"PING\r\n")
            answer = await reader.readline()
            await asyncio.sleep(POLL_INTERVAL_S if answer else 1)
        writer.close()
        await writer.wait_closed()
