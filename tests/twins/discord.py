"""A webhook of a Discord channel.

- Sending and its body: https://docs.discord.com/developers/resources/webhook#execute-webhook
- Errors: https://docs.discord.com/developers/topics/opcodes-and-status-codes#json
"""

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.twins.twin import NetworkTwin

PATH = "/api/webhooks/1240000000000000000/aBcD"
MAX_CONTENT = 2000
UNKNOWN_WEBHOOK = 404, {"message": "Unknown Webhook", "code": 10015}
"""The answer of a webhook that was removed."""


class DiscordChannel(NetworkTwin):
    """Keeps the bodies of its messages. It refuses a body without content, such as one for Slack."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[dict[str, Any]] = []
        self.is_removed = False

    @property
    def address(self) -> str:
        """The address for `createWebhook`."""
        return f"{self.url}{PATH}"

    @property
    def texts(self) -> list[str]:
        """The texts of the messages."""
        return [str(body["content"]) for body in self.bodies]

    def routes(self) -> list[Route]:
        return [Route(PATH, self.receive, methods=["POST"])]

    async def receive(self, request: Request) -> Response:
        if self.is_removed:
            status, error = UNKNOWN_WEBHOOK
            return JSONResponse(error, status)
        body = orjson.loads(await request.body())
        content = body.get("content")
        if not isinstance(content, str) or not content:
            return JSONResponse({"message": "Cannot send an empty message", "code": 50006}, 400)
        if len(content) > MAX_CONTENT:
            return JSONResponse({"message": "Invalid Form Body", "code": 50035}, 400)
        self.bodies.append(body)
        return Response(status_code=204)
