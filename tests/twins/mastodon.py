"""Mastodon: media take time to process; a status with a known Idempotency-Key is returned again for an hour."""

import time
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.twins.multipart import multipart
from tests.twins.oauth import AuthorizationTwin, form_of
from tests.twins.twin import NetworkTwin, bearer_token, error

MAX_CHARACTERS = 500

NOT_FOUND = "Media {ids} not found or already attached to another post"
"""Quoted in github.com/mastodon/mastodon/issues/31707."""

NOT_PROCESSED = "Cannot attach files that have not finished processing. Try again in a moment!"
"""Quoted in github.com/mvdicarlo/postybirb/issues/744."""


class MastodonTwin(NetworkTwin):
    """The API of Mastodon. A medium is ready at status request number `polls_until_ready`.

    Idempotency keys are remembered for `retention_s`. `token` belongs to the account `username` with the id `user_id`.
    Other tokens are refused, as docs.joinmastodon.org, methods/accounts#verify_credentials describes. Apps and tokens
    have the form of methods/apps#create and methods/oauth. The page at which a person allows access has the buttons,
    the fields and the methods of Mastodon's app/views/oauth/authorizations/new.html.haml.
    """

    user_id = "14715"
    username = "harbour"

    def __init__(self, lose_rate: float = 0.0, seed: int = 0) -> None:
        super().__init__(lose_rate, seed)
        self.polls_until_ready = 1
        self.retention_s = 3600.0
        self.is_disabled = False
        """Whether the account's moderators have disabled its login."""

        self.is_english = True
        """Whether the server's default language is English. Otherwise refusals of a status have a Japanese text."""

        self.media: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, tuple[float, dict[str, Any]]] = {}
        self.registers_apps = True
        self.authorization = AuthorizationTwin(self.url_of, "/oauth/authorize")
        self.permissions: str | None = None
        """The scopes that are granted. None: all that the app asks for."""

    def url_of(self) -> str:
        """Returns the address of the server, which is known once it runs."""
        return self.url

    def routes(self) -> list[Route]:
        return [
            Route("/api/v1/apps", self.create_app, methods=["POST"]),
            Route("/oauth/authorize", self.show_authorization, methods=["GET"]),
            Route("/oauth/authorize", self.decide, methods=["POST"]),
            Route("/oauth/token", self.grant_token, methods=["POST"]),
            Route("/api/v1/accounts/verify_credentials", self.verify_credentials, methods=["GET"]),
            Route("/api/v2/media", self.upload, methods=["POST"]),
            Route("/api/v1/media/{id}", self.medium, methods=["GET"]),
            Route("/api/v1/statuses", self.post, methods=["POST"]),
        ]

    def limit_headers(self) -> dict[str, str]:
        return {"X-RateLimit-Reset": (datetime.now(UTC) + timedelta(seconds=1)).isoformat()}

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

    async def show_authorization(self, request: Request) -> Response:
        fields = self.authorization.check(f"{self.url}{request.url.path}?{request.url.query}")
        forms = _form(fields, "Authorize") + _form({**fields, "_method": "delete"}, "Deny")
        title = "<title>Authorization required</title>"
        return HTMLResponse(f'<!doctype html><html lang="en">{title}<h1>Authorization required</h1>{forms}</html>')

    async def decide(self, request: Request) -> Response:
        fields = await form_of(request)
        is_denied = fields.pop("_method", None) == "delete"
        decide = self.authorization.deny if is_denied else self.authorization.allow
        return RedirectResponse(decide(self._authorization_url(fields)), 302)

    def _authorization_url(self, fields: dict[str, str]) -> str:
        return f"{self.url}/oauth/authorize?{urlencode(fields, quote_via=quote)}"

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
        granted = {"scope": scope if self.permissions is None else self.permissions, "created_at": int(time.time())}
        return JSONResponse({"access_token": self.token, "token_type": "Bearer", **granted})

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
        if medium is None or medium["used"]:
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
        ids = body.get("media_ids", ())
        media = [self.media.get(id_) for id_ in ids]
        if any(each is None or each["used"] for each in media):
            return self._refusal(NOT_FOUND.format(ids=", ".join(ids)))
        if any(each["polls_left"] > 0 for each in media if each):
            return self._refusal(NOT_PROCESSED)
        if len(body["status"]) > MAX_CHARACTERS:
            return self._refusal("Validation failed: Text character limit of 500 exceeded")
        for each in media:
            if each:
                each["used"] = True
        post = self.publish("mastodon", body["status"])
        status = {"id": post.id, "url": f"{self.url}/@ann/{post.id}"}
        if key:
            self.keys[key] = time.time(), status
        return JSONResponse(status)

    def _refusal(self, text: str) -> Response:
        return error(422, text if self.is_english else "バリデーションに失敗しました")


def _form(fields: dict[str, str], button: str) -> str:
    """Returns a form with hidden fields and one button. Rails reads the method DELETE from the field `_method`."""
    inputs = "".join(f'<input type="hidden" name="{name}" value="{escape(text)}">' for name, text in fields.items())
    return f'<form method="post" action="/oauth/authorize">{inputs}<button type="submit">{button}</button></form>'
