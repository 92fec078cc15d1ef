"""A TCP proxy to a server. A test can close its connections, and drop, delay or hold its traffic."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

HOST = "127.0.0.1"


class FaultyProxy:
    """Forwards connections to a server, with the faults that a test chooses."""

    def __init__(self, server_port: int) -> None:
        self.delay_s = 0.0
        """The delay of each request. Answers are not delayed."""

        self.has_held = asyncio.Event()
        """Set once a request is held. `hold` clears it."""

        self._server_port = server_port
        self._word_to_hold, self._requests_to_skip = b"", 0
        self._released = asyncio.Event()
        self._drops_traffic = False
        self._generation = 0
        """Increased to drop the traffic of older connections."""

        self._connections: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self.port = 0

    @property
    def redis_url(self) -> str:
        """The proxy's URL, for a proxy to Redis."""
        return f"redis://{HOST}:{self.port}/0"

    def hold(self, word: str, skip: int = 0) -> None:
        """Holds the next request that contains the word, after forwarding `skip` such requests."""
        self._word_to_hold, self._requests_to_skip = word.encode(), skip
        self.has_held.clear()
        self._released.clear()

    def release(self) -> None:
        """Forwards the held request, even if its sender has given up. Further requests are not held."""
        self._word_to_hold = b""
        self._released.set()

    async def refuse_connections(self) -> None:
        """Closes all connections and refuses new connections."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for each in self._connections:
            each.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def drop_traffic(self) -> None:
        """Keeps connections open, and discards all requests and answers."""
        self._drops_traffic = True

    def drop_traffic_of_open_connections(self) -> None:
        """Discards the traffic of the connections that are open now, and keeps them open. New connections work."""
        self._generation += 1

    async def restore(self) -> None:
        """Accepts connections, ends `drop_traffic`, and releases a held request."""
        self._drops_traffic = False
        self.release()
        if self._listener is None:
            self._listener = await asyncio.start_server(self._serve, HOST, self.port)
            self.port = self._listener.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        with suppress(OSError, asyncio.CancelledError):
            await self._forward(reader, writer)
        writer.close()
        self._connections.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        generation = self._generation
        server_reader, server_writer = await asyncio.open_connection(HOST, self._server_port)
        answers = asyncio.create_task(self._forward_answers(server_reader, writer, generation))
        try:
            while data := await reader.read(65_536):
                await self._delay_or_hold(data)
                if not self._is_dropped(generation):
                    server_writer.write(data)
                    await server_writer.drain()
        finally:
            answers.cancel()
            server_writer.close()

    async def _delay_or_hold(self, data: bytes) -> None:
        await asyncio.sleep(self.delay_s)
        if self._word_to_hold and self._word_to_hold in data:
            if self._requests_to_skip:
                self._requests_to_skip -= 1
                return
            self.has_held.set()
            await self._released.wait()

    def _is_dropped(self, generation: int) -> bool:
        return self._drops_traffic or generation != self._generation

    async def _forward_answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, generation: int
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                if not self._is_dropped(generation):
                    writer.write(data)
                    await writer.drain()
            writer.close()


@asynccontextmanager
async def faulty_proxy(url: str) -> AsyncIterator[FaultyProxy]:
    """Runs a proxy to the server at a URL of Redis or MongoDB."""
    proxy = FaultyProxy(urlsplit(url).port or 6379)
    await proxy.restore()
    try:
        yield proxy
    finally:
        proxy.release()
        await proxy.refuse_connections()
