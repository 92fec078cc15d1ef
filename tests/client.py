"""A GraphQL client for tests: operations over HTTP, and graphql-transport-ws sockets whose frames tests can read."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import orjson
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol


class GraphQLFailed(AssertionError):
    """A response with errors. `codes` are the codes of the errors."""

    def __init__(self, errors: list[dict[str, Any]]) -> None:
        super().__init__(str(errors))
        self.errors = errors
        self.codes = [error["extensions"]["code"] for error in errors]


class Client:
    """An HTTP client that sends operations with the token of one user, or without a token."""

    def __init__(self, url: str, token: str | None, http: httpx2.AsyncClient) -> None:
        self.url, self.token, self.http = url, token, http

    async def execute(self, query: str, /, **variables: Any) -> dict[str, Any]:
        """Sends an operation and returns the whole response, errors included."""
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        body = {"query": query, "variables": variables}
        response = await self.http.post(f"{self.url}/graphql", json=body, headers=headers)
        result: dict[str, Any] = orjson.loads(response.content)
        return result

    async def run(self, query: str, **variables: Any) -> dict[str, Any]:
        """Runs an operation and returns its data. Raises: GraphQLFailed."""
        result = await self.execute(query, **variables)
        if result.get("errors"):
            raise GraphQLFailed(result["errors"])
        data: dict[str, Any] = result["data"]
        return data

    async def expect_error(self, query: str, **variables: Any) -> dict[str, Any]:
        """Runs an operation that must fail with one error, and returns the extensions of that error."""
        result = await self.execute(query, **variables)
        (error,) = result["errors"]
        extensions: dict[str, Any] = error["extensions"]
        return extensions

    @asynccontextmanager
    async def socket(self) -> AsyncIterator["SubscriptionSocket"]:
        """Opens a socket, signs in, and waits for connection_ack."""
        async with raw_socket(self.url) as ws:
            payload = {"authorization": f"Bearer {self.token}"} if self.token else {}
            await ws.send(orjson.dumps({"type": "connection_init", "payload": payload}).decode())
            assert orjson.loads(await ws.recv())["type"] == "connection_ack"
            yield SubscriptionSocket(ws)


@asynccontextmanager
async def raw_socket(url: str, protocol: str = "graphql-transport-ws") -> AsyncIterator[ClientConnection]:
    """Opens a socket without sending a frame."""
    address = url.replace("http", "ws", 1) + "/graphql"
    async with connect(address, subprotocols=[Subprotocol(protocol)], max_size=None, max_queue=None) as ws:
        yield ws


class SubscriptionSocket:
    """An acknowledged socket and its subscriptions."""

    def __init__(self, ws: ClientConnection) -> None:
        self.ws = ws
        self._ids = itertools.count(1)

    async def subscribe(self, query: str, /, **variables: Any) -> str:
        """Subscribes, and returns the operation's id."""
        return await self.send_subscribe({"query": query, "variables": variables})

    async def send_subscribe(self, payload: dict[str, Any]) -> str:
        """Sends the request of an operation, and returns its id."""
        id_ = str(next(self._ids))
        await self.ws.send(orjson.dumps({"id": id_, "type": "subscribe", "payload": payload}).decode())
        return id_

    async def next_frame(self) -> dict[str, Any]:
        """Returns the next frame other than a ping."""
        while True:
            frame: dict[str, Any] = orjson.loads(await self.ws.recv())
            if frame["type"] != "ping":
                return frame

    async def next_event(self) -> dict[str, Any]:
        """Returns the value of the one root field in the next `next` frame. Raises: GraphQLFailed."""
        frame = await self.next_frame()
        assert frame["type"] in ("next", "error"), frame
        if frame["type"] == "error":
            raise GraphQLFailed(frame["payload"])
        if frame["payload"].get("errors"):
            raise GraphQLFailed(frame["payload"]["errors"])
        (value,) = frame["payload"]["data"].values()
        event: dict[str, Any] = value
        return event


@asynccontextmanager
async def client(url: str, token: str | None) -> AsyncIterator[Client]:
    """Opens a client that shares no connections with other clients."""
    async with httpx2.AsyncClient(timeout=60) as http:
        yield Client(url, token, http)
