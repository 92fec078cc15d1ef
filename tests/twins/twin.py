"""The base of all twins of social networks: routes, a ledger of published posts, and faults that a test requests."""

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from tests.twins.sent_requests import SentRequest, sent_request


class NetworkFault(Enum):
    """A fault of the next publishing call. To act is to publish the post."""

    FAIL_BEFORE = "answers 500 without acting"
    FAIL_AFTER = "acts, then answers 500"
    CUT_BEFORE = "closes the connection without acting"
    CUT_AFTER = "acts, then closes the connection"
    SILENT_BEFORE = "does not answer for a minute, and does not act"
    SILENT_AFTER = "acts, then does not answer for a minute"
    LATE = "closes the connection, and acts when the next call arrives or the test calls act_late"
    BUSY = "answers 429 without acting"


FAULTS_WITHOUT_ACT = {NetworkFault.FAIL_BEFORE, NetworkFault.CUT_BEFORE, NetworkFault.SILENT_BEFORE, NetworkFault.LATE}
SILENT_FAULTS = {NetworkFault.SILENT_BEFORE, NetworkFault.SILENT_AFTER}
CUTTING_FAULTS = {NetworkFault.CUT_BEFORE, NetworkFault.CUT_AFTER, NetworkFault.LATE}


@dataclass(frozen=True)
class TwinPost:
    """A published post. `at` is the Unix time when it became visible."""

    id: str
    account: str
    text: str
    at: float


class NetworkTwin:
    """A network with its accounts. `lose_rate` is the share of calls that publish and lose their response."""

    token = "token"

    def __init__(self, lose_rate: float = 0.0, seed: int = 0) -> None:
        self.ledger: list[TwinPost] = []
        """The posts in the order in which they were published."""

        self.request_counts: Counter[str] = Counter()
        """Requests by method and path, such as "POST /hook"."""

        self.sent: list[SentRequest] | None = None
        """The requests in their order, once a test has set a list. Without it, a load test would store all bodies."""

        self.bodies: list[Any] = []
        """The published posts in the network's format, for networks that record them."""

        self.faults: deque[NetworkFault] = deque()
        """The faults of the next publishing calls, one for each."""

        self.verification_faults: deque[NetworkFault] = deque()
        """The faults of the next requests that verify credentials, one for each."""

        self.renewal_faults: deque[NetworkFault] = deque()
        """The faults of the next requests that renew credentials, one for each."""

        self.is_renewed = asyncio.Event()
        """Set when credentials were renewed, also if the response is lost."""

        self.busy_headers: dict[str, str] | None = None
        """The headers of answers with status 429. None: those of the network, which end within a second."""

        self.url = ""
        self.acts_late_only_on_request = False
        """Whether a call with the fault LATE waits for `act_late`, and not for the next call."""

        self._random = random.Random(seed)
        self._lose_rate = lose_rate
        self._late_acts: deque[Callable[[], Awaitable[Response]]] = deque()
        self._ids = 0

    def routes(self) -> list[Route]:
        """Returns the routes of the network's API."""
        raise NotImplementedError

    def limit_headers(self) -> dict[str, str]:
        """Returns the network's headers for a rate limit that ends within a second."""
        return {"Retry-After": "1"}

    def busy(self) -> Response:
        headers = self.limit_headers() if self.busy_headers is None else self.busy_headers
        return JSONResponse({"error": "Too many requests"}, 429, headers=headers)

    def new_id(self, prefix: str = "") -> str:
        self._ids += 1
        return f"{prefix}{self._ids}"

    def publish(self, account: str, text: str, id_: str | None = None) -> TwinPost:
        """Adds a post to the ledger."""
        post = TwinPost(id_ or self.new_id(), account, text, time.time())
        self.ledger.append(post)
        return post

    async def act_with_faults(self, act: Callable[[], Awaitable[Response]]) -> Response:
        """Calls `act`, which publishes, and returns its response. A fault prevents or replaces this."""
        fault = self.faults.popleft() if self.faults else None
        if fault is None and self._random.random() < self._lose_rate:
            fault = NetworkFault.SILENT_AFTER if self._random.random() < 0.5 else NetworkFault.FAIL_AFTER
        if not self.acts_late_only_on_request:
            await self.act_late()
        if fault is NetworkFault.BUSY:
            return self.busy()
        if fault is NetworkFault.LATE:
            self._late_acts.append(act)
        answer = None if fault in FAULTS_WITHOUT_ACT else await act()
        if fault in SILENT_FAULTS:
            await asyncio.sleep(60)
        if fault in CUTTING_FAULTS:
            return NoResponse()
        if answer is None or fault is NetworkFault.FAIL_AFTER:
            return JSONResponse({"error": "Something went wrong"}, 500)
        return answer

    async def verify_with_faults(self, answer: Response) -> Response:
        """Returns the answer to a request that verifies credentials, unless a fault replaces it."""
        fault = self.verification_faults.popleft() if self.verification_faults else None
        if fault is NetworkFault.BUSY:
            return self.busy()
        if fault in SILENT_FAULTS:
            await asyncio.sleep(60)
        if fault in CUTTING_FAULTS:
            return NoResponse()
        return answer if fault is None else JSONResponse({"error": "Something went wrong"}, 500)

    async def renew_with_faults(self, act: Callable[[], Response]) -> Response:
        """Calls `act`, which renews credentials, and returns its response. A fault prevents or replaces this."""
        fault = self.renewal_faults.popleft() if self.renewal_faults else None
        if fault is NetworkFault.BUSY:
            return self.busy()
        answer = None if fault in FAULTS_WITHOUT_ACT else act()
        if answer is not None:
            self.is_renewed.set()
        if fault in SILENT_FAULTS:
            await asyncio.sleep(60)
        if fault in CUTTING_FAULTS:
            return NoResponse()
        if answer is None or fault is NetworkFault.FAIL_AFTER:
            return JSONResponse({"error": "Something went wrong"}, 500)
        return answer

    async def act_late(self) -> None:
        """Acts on the calls that had the fault LATE."""
        while self._late_acts:
            await self._late_acts.popleft()()

    def app(self) -> Starlette:
        """Returns the twin as an ASGI application that counts requests."""

        def with_counter(route: Route) -> Route:
            async def endpoint(request: Request) -> Response:
                self.request_counts[f"{request.method} {request.url.path}"] += 1
                if self.sent is not None:
                    self.sent.append(await sent_request(request))
                answer: Response = await route.endpoint(request)
                return answer

            return Route(route.path, endpoint, methods=list(route.methods or ()))

        return Starlette(routes=[with_counter(route) for route in self.routes()])


class NoResponse(Response):
    """A response that closes the connection, so that tests of lost responses need not wait for a timeout."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["abort"]()
        while (await receive())["type"] != "http.disconnect":
            pass


class AbortableConnection(HttpToolsProtocol):
    """A connection that an endpoint can close through the request's state."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"]["abort"] = self.transport.abort


def bearer_token(request: Request) -> str:
    """Returns the token of a request."""
    return request.headers.get("authorization", "").removeprefix("Bearer ")


def error(status: int, message: str, **more: Any) -> JSONResponse:
    """Returns an error as JSON."""
    return JSONResponse({"error": message, **more}, status)


@asynccontextmanager
async def running_twin(twin: NetworkTwin, port: int = 0, host: str = "127.0.0.1") -> AsyncIterator[NetworkTwin]:
    """Serves a twin in this event loop, on loopback unless `host` is given."""
    config = uvicorn.Config(twin.app(), lifespan="off", log_config=None, access_log=False)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: AbortableConnection(config, state, {}), host, port, backlog=1024)
    twin.url = f"http://{host}:{server.sockets[0].getsockname()[1]}"
    try:
        yield twin
    finally:
        server.close()
        for connection in list(state.connections):
            connection.transport.abort()
        for task in list(state.tasks):
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)
