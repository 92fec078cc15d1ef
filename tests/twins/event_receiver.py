"""A receiver of event webhooks, which verifies signatures and can be slow, failing or gone."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jobs.providers.signed_webhooks import SignatureRefused, verify
from tests.twins.twin import NetworkTwin, NoResponse

PATH = "/events"


class EventReceiver(NetworkTwin):
    """Keeps the messages that it accepts, in the order of their arrival, also repetitions."""

    def __init__(self) -> None:
        super().__init__()
        self.secret = ""
        """Without a secret, signatures are not verified."""

        self.messages: list[tuple[str, dict[str, Any]]] = []
        """The id and the body of each accepted message."""

        self.refused: list[str] = []
        """The ids of the messages that were not accepted."""

        self.status = 200
        self.headers: dict[str, str] = {}
        self.delay_s = 0.0
        self.refuses: Callable[[dict[str, Any]], bool] = lambda body: False
        """Returns whether a message is answered 400."""

        self.refusal_delay_s = 0.0
        """How long such an answer takes."""

        self.cuts = False
        """Whether connections are closed without an answer."""

    @property
    def address(self) -> str:
        """The address for `createWebhook`."""
        return f"{self.url}{PATH}"

    def routes(self) -> list[Route]:
        return [Route(PATH, self.receive, methods=["POST"])]

    async def receive(self, request: Request) -> Response:
        body, id_ = await request.body(), request.headers.get("webhook-id", "")
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if self.cuts:
            self.refused.append(id_)
            return NoResponse()
        if not 200 <= self.status < 300 or self.refuses(orjson.loads(body)):
            self.refused.append(id_)
            await asyncio.sleep(self.refusal_delay_s)
            return Response("no", self.status if self.status != 200 else 400, self.headers)
        try:
            if self.secret:
                verify(self.secret, request.headers, body, time.time())
        except SignatureRefused as refusal:
            return Response(str(refusal), 401)
        self.messages.append((id_, orjson.loads(body)))
        return Response("thanks")

    def events(self, *types: str) -> list[dict[str, Any]]:
        """Returns the accepted messages, each once, in the order of their first arrival; only those of the types."""
        first: dict[str, dict[str, Any]] = {}
        for id_, body in self.messages:
            first.setdefault(id_, body)
        return [body for body in first.values() if not types or body["type"] in types]

    def texts(self) -> list[str]:
        """Returns the texts of the messages that were posted, each once."""
        return [body["data"]["message"]["text"] for body in self.events("MessagePosted")]
