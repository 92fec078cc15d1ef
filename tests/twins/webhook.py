"""A receiver of Standard Webhooks: verifies signatures, and repeats its response to an id that it received before."""

import time
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jobs.providers.signed_webhooks import SignatureRefused, verify
from tests.twins.twin import NetworkTwin, error


class WebhookTwin(NetworkTwin):
    """A receiver that shares `secret` with the sender.

    It refuses messages with `refusal_status`, if set. With `answers_plain_text`, its answers are not JSON.
    """

    secret = "whsec_c2VjcmV0LW9mLXRoZS13ZWJob29r"

    def __init__(self, lose_rate: float = 0.0, seed: int = 0) -> None:
        super().__init__(lose_rate, seed)
        self.answers: dict[str, dict[str, Any]] = {}
        self.refusal_status: int | None = None
        self.answers_plain_text = False

    def routes(self) -> list[Route]:
        return [Route("/hook", self.receive, methods=["POST"])]

    async def receive(self, request: Request) -> Response:
        body, headers = await request.body(), request.headers
        try:
            id_ = verify(self.secret, headers, body, time.time()).id
        except SignatureRefused as refusal:
            return error(401, str(refusal))
        if self.refusal_status is not None:
            return error(self.refusal_status, "refused")

        async def act() -> Response:
            if id_ not in self.answers:
                parsed = orjson.loads(body)
                self.bodies.append(parsed)
                post = self.publish("hook", parsed["text"])
                self.answers[id_] = {"id": post.id, "url": f"https://example.org/{post.id}"}
            return Response(b"thanks") if self.answers_plain_text else JSONResponse(self.answers[id_])

        return await self.act_with_faults(act)
