"""A way to a server through this process, which a test can cut, slow down, or hold up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

HOST = "127.0.0.1"


class FaultyProxy:
    """Forwards connections. What is on its way to the server is subject to the test."""

    def __init__(self, server_port: int) -> None:
        self.delay_s = 0.0
        self.holding = asyncio.Event()
        """Set when something is held up."""
        self._server_port = server_port
        self._word, self._skip = b"", 0
        self._go_on = asyncio.Event()
        self._swallows = False
        self._connections: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self._port}/0"

    def hold(self, word: str, skip: int = 0) -> None:
        """Holds up the next request with that word in it; not the first `skip` of them."""
        self._word, self._skip = word.encode(), skip
        self.holding.clear()
        self._go_on.clear()

    def release(self) -> None:
        """Lets what was held up go on, even when nobody waits for the answer any more."""
        self._word = b""
        self._go_on.set()

    async def refuse(self) -> None:
        """Closes everything; nobody can connect."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for each in self._connections:
            each.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def swallow(self) -> None:
        """Connections stay, and nothing arrives."""
        self._swallows = True

    async def restore(self) -> None:
        """As in the beginning."""
        self._swallows = False
        self.release()
        if self._listener is None:
            self._listener = await asyncio.start_server(self._serve, HOST, self._port)
            self._port = self._listener.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        with suppress(OSError, asyncio.CancelledError):
            await self._forward(reader, writer)
        writer.close()
        self._connections.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(HOST, self._server_port)
        answers = asyncio.create_task(self._answers(server_reader, writer))
        try:
            while data := await reader.read(65_536):
                await self._on_its_way(data)
                if not self._swallows:
                    server_writer.write(data)
                    await server_writer.drain()
        finally:
            answers.cancel()
            server_writer.close()

    async def _on_its_way(self, data: bytes) -> None:
        await asyncio.sleep(self.delay_s)
        if self._word and self._word in data:
            if self._skip:
                self._skip -= 1
                return
            self.holding.set()
            await self._go_on.wait()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                if not self._swallows:
                    writer.write(data)
                    await writer.drain()
            writer.close()


@asynccontextmanager
async def faulty_proxy(url: str) -> AsyncIterator[FaultyProxy]:
    """A detour to the Redis at that URL."""
    proxy = FaultyProxy(urlsplit(url).port or 6379)
    await proxy.restore()
    try:
        yield proxy
    finally:
        proxy.release()
        await proxy.refuse()
