"""An incoming webhook of Slack.

- Sending and its errors: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
- Statuses of the errors: https://api.slack.com/changelog/2016-05-17-changes-to-errors-for-incoming-webhooks
- One message a second, else 429 with Retry-After: https://docs.slack.dev/apis/web-api/rate-limits
"""

import orjson
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tests.twins.twin import NetworkTwin

PATH = "/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"
NO_SERVICE = 404, "no_service"
"""The answer of a webhook that was disabled or removed."""

ARCHIVED = 410, "channel_is_archived"


class SlackChannel(NetworkTwin):
    """Keeps the texts of its messages. The address is the secret: signatures are not looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.refusal: tuple[int, str] | None = None
        """Status and body of each answer, such as NO_SERVICE; None for a channel that takes messages."""

    @property
    def address(self) -> str:
        """The address for `createWebhook`."""
        return f"{self.url}{PATH}"

    def routes(self) -> list[Route]:
        return [Route(PATH, self.receive, methods=["POST"])]

    async def receive(self, request: Request) -> Response:
        if self.refusal is not None:
            status, error = self.refusal
            return PlainTextResponse(error, status)
        try:
            payload = orjson.loads(await request.body())
        except orjson.JSONDecodeError:
            return PlainTextResponse("invalid_payload", 400)
        if not isinstance(payload, dict):
            return PlainTextResponse("invalid_payload", 400)
        text = payload.get("text")
        if not isinstance(text, str) or not text:
            return PlainTextResponse("no_text", 400)
        self.texts.append(text)
        return PlainTextResponse("ok")
