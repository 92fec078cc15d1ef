"""Mastodon: media take time to process; a status with a known Idempotency-Key is returned again for an hour."""

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.twins.oauth import AuthorizationTwin, form_of
from tests.twins.twin import NetworkTwin, bearer_token, error, multipart

MAX_CHARACTERS = 500


class MastodonTwin(NetworkTwin):
    """The API of Mastodon. A medium is ready at status request number `polls_until_ready`.

    Idempotency keys are remembered for `retention_s`. `token` belongs to the account `username` with the id `user_id`.
    Other tokens are refused, as docs.joinmastodon.org, methods/accounts#verify_credentials describes. Apps and tokens
    have the form of methods/apps#create and methods/oauth.
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
        self.registers_apps = True
        self.authorization = AuthorizationTwin(self.url_of, "/oauth/authorize")

    def url_of(self) -> str:
        """Returns the address of the server, which is known once it runs."""
        return self.url

    def routes(self) -> list[Route]:
        return [
            Route("/api/v1/apps", self.create_app, methods=["POST"]),
            Route("/oauth/token", self.grant_token, methods=["POST"]),
            Route("/api/v1/accounts/verify_credentials", self.verify_credentials, methods=["GET"]),
            Route("/api/v2/media", self.upload, methods=["POST"]),
            Route("/api/v1/media/{id}", self.medium, methods=["GET"]),
            Route("/api/v1/statuses", self.post, methods=["POST"]),
        ]

    async def create_app(self, request: Request) -> Response:
        form = await form_of(request)
        if not self.registers_apps or form.keys() != {"client_name", "redirect_uris", "scopes"}:
            return error(422, "Validation failed: Redirect URI must be an absolute URI.")
        client_id, client_secret = f"id-{self.new_id()}", f"secret-{self.new_id()}"
        self.authorization.add_app(client_id, client_secret, form["redirect_uris"], form["scopes"])
        app = {"id": "563419", "name": form["client_name"], "website": None, "scopes": form["scopes"].split()}
        uris = {"redirect_uri": form["redirect_uris"], "redirect_uris": [form["redirect_uris"]]}
        secrets = {"client_id": client_id, "client_secret": client_secret, "client_secret_expires_at": 0}
        return JSONResponse({**app, **uris, **secrets})

    async def grant_token(self, request: Request) -> Response:
        form = await form_of(request)
        names = {"grant_type", "code", "client_id", "client_secret", "redirect_uri", "code_verifier"}
        if form.keys() != names or form["grant_type"] != "authorization_code":
            return error(400, "invalid_request", error_description="Missing required parameter")
        if not self.authorization.knows_app(form["client_id"], form["client_secret"]):
            text = "Client authentication failed due to unknown client, no client authentication included"
            return error(401, "invalid_client", error_description=text)
        scope = self.authorization.use_code(form, form["client_id"])
        if scope is None:
            text = "The provided authorization grant is invalid, expired, revoked, does not match the redirection URI"
            return error(400, "invalid_grant", error_description=text)
        self.token = f"granted-{self.new_id()}"
        return JSONResponse(
            {"access_token": self.token, "token_type": "Bearer", "scope": scope, "created_at": int(time.time())}
        )

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
