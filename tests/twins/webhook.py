"""A receiver of signed webhooks by Standard Webhooks: verifies signatures, repeats the response to a known id."""

import time
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jobs.providers.signed_webhooks import SignatureRefused, verify
from tests.twins.twin import Twin, error


class WebhookTwin(Twin):
    """`secret` is shared with the sender."""

    secret = "whsec_c2VjcmV0LW9mLXRoZS13ZWJob29r"

    def __init__(self, lose_rate: float = 0.0, seed: int = 0) -> None:
        super().__init__(lose_rate, seed)
        self.answers: dict[str, dict[str, Any]] = {}
        self.refusal: int | None = None
        self.bare = False

    def routes(self) -> list[Route]:
        return [Route("/hook", self.receive, methods=["POST"])]

    async def receive(self, request: Request) -> Response:
        body, headers = await request.body(), request.headers
        try:
            id_ = verify(self.secret, headers, body, time.time()).id
        except SignatureRefused as refused:
            return error(401, str(refused))
        if self.refusal is not None:
            return error(self.refusal, "refused")

        async def act() -> Response:
            if id_ not in self.answers:
                parsed = orjson.loads(body)
                self.bodies.append(parsed)
                effect = self.publish("hook", parsed["text"])
                self.answers[id_] = {"id": effect.id, "url": f"https://example.org/{effect.id}"}
            return Response(b"thanks") if self.bare else JSONResponse(self.answers[id_])

        return await self.faulty(act)
