"""Mastodon: media take time to process; a status with a known Idempotency-Key is returned again for an hour."""

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.twins.twin import NetworkTwin, bearer_token, error, multipart

MAX_CHARACTERS = 500


class MastodonTwin(NetworkTwin):
    """The API of Mastodon. A medium is ready at status request number `polls_until_ready`.

    Idempotency keys are remembered for `retention_s`. `token` belongs to the account `username` with the id `user_id`.
    Other tokens are refused, as docs.joinmastodon.org, methods/accounts#verify_credentials describes.
    """

    user_id = "14715"
    username = "harbour"

    def __init__(self, lose_rate: float = 0.0, seed: int = 0) -> None:
        super().__init__(lose_rate, seed)
        self.polls_until_ready = 1
        self.retention_s = 3600.0
        self.is_disabled = False
        """Whether the account's moderators have disabled its login."""

        self.media: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, tuple[float, dict[str, Any]]] = {}

    def routes(self) -> list[Route]:
        return [
            Route("/api/v1/accounts/verify_credentials", self.verify_credentials, methods=["GET"]),
            Route("/api/v2/media", self.upload, methods=["POST"]),
            Route("/api/v1/media/{id}", self.medium, methods=["GET"]),
            Route("/api/v1/statuses", self.post, methods=["POST"]),
        ]

    async def verify_credentials(self, request: Request) -> Response:
        if bearer_token(request) != self.token:
            return await self.verify_with_faults(error(401, "The access token is invalid"))
        if self.is_disabled:
            return error(403, "Your login is currently disabled")
        account = {"id": self.user_id, "username": self.username, "acct": self.username, "display_name": "The harbour"}
        return await self.verify_with_faults(JSONResponse({**account, "url": f"{self.url}/@{self.username}"}))

    async def upload(self, request: Request) -> Response:
        if bearer_token(request) != self.token:
            return error(401, "The access token is invalid")
        parts = await multipart(request)
        content_type, content = parts["file"]
        if not content_type.startswith(("image/", "video/")):
            return error(422, "Validation failed: File content type is invalid")
        id_ = self.new_id("m")
        description = parts["description"][1].decode()
        self.media[id_] = {
            "polls_left": self.polls_until_ready,
            "bytes": len(content),
            "content": content,
            "type": content_type,
            "description": description,
            "used": False,
        }
        return JSONResponse({"id": id_, "url": None}, 202)

    async def medium(self, request: Request) -> Response:
        medium = self.media.get(request.path_params["id"])
        if medium is None:
            return error(404, "Record not found")
        medium["polls_left"] -= 1
        return JSONResponse({"id": request.path_params["id"]}, 206 if medium["polls_left"] > 0 else 200)

    async def post(self, request: Request) -> Response:
        if bearer_token(request) != self.token:
            return error(401, "The access token is invalid")
        body, key = await request.json(), request.headers.get("idempotency-key")
        return await self.act_with_faults(lambda: self._post(body, key))

    async def _post(self, body: dict[str, Any], key: str | None) -> Response:
        known = self.keys.get(key or "")
        if known is not None and time.time() - known[0] < self.retention_s:
            return JSONResponse(known[1])
        media = [self.media.get(id_) for id_ in body["media_ids"]]
        if any(each is None or each["used"] for each in media):
            return error(422, "Validation failed: Media not found or already attached to another post")
        if any(each["polls_left"] > 0 for each in media if each):
            return error(422, "Cannot attach files that have not finished processing. Try again in a moment!")
        if len(body["status"]) > MAX_CHARACTERS:
            return error(422, "Validation failed: Text character limit of 500 exceeded")
        for each in media:
            if each:
                each["used"] = True
        post = self.publish("mastodon", body["status"])
        status = {"id": post.id, "url": f"{self.url}/@ann/{post.id}"}
        if key:
            self.keys[key] = time.time(), status
        return JSONResponse(status)
