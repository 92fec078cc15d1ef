"""X: media are uploaded in chunks and expire after a time; posts have no idempotency key."""

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.twins.multipart import multipart
from tests.twins.oauth import AuthorizationTwin, basic_credentials, form_of
from tests.twins.twin import NetworkTwin, bearer_token

MAX_CHUNK_BYTES = 5 * 1024 * 1024


def problem(status: int, title: str, detail: str) -> Response:
    """Returns an error without a parameter, as quoted in github.com/akrherz/iembot/issues/163."""
    return JSONResponse({"detail": detail, "type": "about:blank", "title": title, "status": status}, status)


def invalid_request(parameter: str, values: Any, message: str) -> Response:
    """Returns an error of one parameter, as quoted in github.com/plhery/node-twitter-api-v2/issues/375."""
    body = {
        "errors": [{"parameters": {parameter: values}, "message": message}],
        "title": "Invalid Request",
        "detail": "One or more parameters to your request was invalid.",
        "type": "https://api.twitter.com/2/problems/invalid-request",
    }
    return JSONResponse(body, 400)


class XTwin(NetworkTwin):
    """The API of X. A video is ready at status request number `polls_until_ready`, and at once if that is 0.

    With `fails_processing`, videos fail instead. `app_token` is the token of an app without a user, which
    GET /2/users/me refuses as quoted in github.com/xdevplatform/bookmarks-search/issues/10. The user of `token` has the
    form of docs.x.com, Users, Get my User.

    Tokens are as docs.x.com, OAuth 2.0 Authorization Code Flow with PKCE, User Access Token describes. A refresh token
    is used once; the refusal of a used one is quoted in github.com/plhery/node-twitter-api-v2/issues/496. The failure
    of a video has the form of developer.x.com, GET media/upload (STATUS).
    """

    client_id = "x-client"
    client_secret: str | None = "x-secret"

    app_token = "app-token"
    user_id = "2244994945"
    username = "harbour"

    def __init__(self, lose_rate: float = 0.0, seed: int = 0) -> None:
        super().__init__(lose_rate, seed)
        self.polls_until_ready = 0
        self.expires_s = 1_295_999
        self.fails_processing = False
        self.media: dict[str, dict[str, Any]] = {}
        self.refresh_token = "refresh-0"
        self.lifetime_s = 7200
        self.authorization = AuthorizationTwin(lambda: "https://x.com", "/i/oauth2/authorize")
        self.permissions: str | None = None
        """The scopes that are granted. None: all that the app asks for."""

    def routes(self) -> list[Route]:
        return [
            Route("/2/oauth2/token", self.grant_token, methods=["POST"]),
            Route("/2/users/me", self.me, methods=["GET"]),
            Route("/2/media/upload/initialize", self.initialize, methods=["POST"]),
            Route("/2/media/upload/{id}/append", self.append, methods=["POST"]),
            Route("/2/media/upload/{id}/finalize", self.finalize, methods=["POST"]),
            Route("/2/media/upload", self.status, methods=["GET"]),
            Route("/2/media/metadata", self.metadata, methods=["POST"]),
            Route("/2/tweets", self.tweet, methods=["POST"]),
        ]

    def limit_headers(self) -> dict[str, str]:
        return {"x-rate-limit-reset": str(int(time.time()) + 1)}

    def add_app(self, redirect_uri: str, scopes: str) -> None:
        """Stores the operator's app, for which people may allow access."""
        self.authorization.add_app(self.client_id, self.client_secret, redirect_uri, scopes)

    async def grant_token(self, request: Request) -> Response:
        form = await form_of(request)
        if self.client_secret is None:
            is_known = form.pop("client_id", None) == self.client_id
        else:
            is_known = basic_credentials(request) == (self.client_id, self.client_secret)
        if not is_known:
            text = "Missing valid authorization header"
            return JSONResponse({"error": "unauthorized_client", "error_description": text}, 401)
        if form.get("grant_type") == "refresh_token" and form.keys() == {"grant_type", "refresh_token"}:
            return await self.renew_with_faults(lambda: self._renew(form["refresh_token"]))
        names = {"grant_type", "code", "redirect_uri", "code_verifier"}
        if form.keys() != names or form["grant_type"] != "authorization_code":
            return self._refusal("Missing required parameter")
        scope = self.authorization.use_code(form, self.client_id)
        if scope is None:
            return self._refusal("Value passed for the authorization code was invalid.")
        return self._tokens(scope if self.permissions is None else self.permissions)

    def _renew(self, refresh_token: str) -> Response:
        if refresh_token != self.refresh_token:
            return self._refusal("Value passed for the token was invalid.")
        return self._tokens("tweet.read tweet.write users.read media.write offline.access")

    def _tokens(self, scope: str) -> Response:
        number = self.new_id()
        self.token, self.refresh_token = f"access-{number}", f"refresh-{number}"
        tokens = {"access_token": self.token, "refresh_token": self.refresh_token}
        return JSONResponse({"token_type": "bearer", "expires_in": self.lifetime_s, "scope": scope, **tokens})

    def _refusal(self, description: str) -> Response:
        return JSONResponse({"error": "invalid_request", "error_description": description}, 400)

    async def me(self, request: Request) -> Response:
        if bearer_token(request) == self.app_token:
            detail = "Authenticating with OAuth 2.0 Application-Only is forbidden for this endpoint."
            return problem(403, "Unsupported Authentication", detail)
        if bearer_token(request) != self.token:
            return await self.verify_with_faults(problem(401, "Unauthorized", "Unauthorized"))
        user = {"id": self.user_id, "name": "The harbour", "username": self.username}
        return await self.verify_with_faults(JSONResponse({"data": user}))

    async def initialize(self, request: Request) -> Response:
        if bearer_token(request) != self.token:
            return problem(401, "Unauthorized", "Unauthorized")
        body, id_ = await request.json(), self.new_id("70")
        self.media[id_] = {
            **body,
            "chunks": {},
            "state": "new",
            "polls_left": self.polls_until_ready,
            "at": time.time(),
        }
        return JSONResponse({"data": self._data(id_)})

    def _data(self, id_: str, **more: Any) -> dict[str, Any]:
        return {"id": id_, "media_key": f"3_{id_}", "expires_after_secs": self.expires_s, **more}

    async def append(self, request: Request) -> Response:
        parts = await multipart(request)
        chunk = parts["media"][1]
        if len(chunk) > MAX_CHUNK_BYTES:
            return problem(400, "Invalid Request", "The chunk is larger than 5 MB")
        self.media[request.path_params["id"]]["chunks"][int(parts["segment_index"][1])] = chunk
        return Response(status_code=204)

    async def finalize(self, request: Request) -> Response:
        id_ = request.path_params["id"]
        medium = self.media[id_]
        if sum(map(len, medium["chunks"].values())) != medium["total_bytes"]:
            return problem(400, "Invalid Request", "Segments do not add up to provided total file size")
        return JSONResponse({"data": self._processed(id_)})

    async def status(self, request: Request) -> Response:
        id_ = request.query_params["media_id"]
        self.media[id_]["polls_left"] -= 1
        return JSONResponse({"data": self._processed(id_)})

    def _processed(self, id_: str) -> dict[str, Any]:
        medium = self.media[id_]
        if self.fails_processing:
            error = {"code": 1, "name": "InvalidMedia", "message": "Unsupported video format"}
            failure = {"state": "failed", "error": error}
            return self._data(id_, processing_info=failure)
        if medium["polls_left"] > 0:
            return self._data(id_, processing_info={"state": "in_progress", "check_after_secs": 1})
        medium["state"] = "done"
        return self._data(id_)

    async def metadata(self, request: Request) -> Response:
        body = await request.json()
        self.media[body["id"]]["alt"] = body["metadata"]["alt_text"]["text"]
        return JSONResponse({"data": {"id": body["id"]}})

    async def tweet(self, request: Request) -> Response:
        if bearer_token(request) != self.token:
            return problem(401, "Unauthorized", "Unauthorized")
        body = await request.json()
        return await self.act_with_faults(lambda: self._tweet(body))

    async def _tweet(self, body: dict[str, Any]) -> Response:
        ids = body.get("media", {}).get("media_ids", ())
        media = [self.media.get(id_) for id_ in ids]
        if any(each is None or each["state"] != "done" or time.time() - each["at"] > self.expires_s for each in media):
            return invalid_request("media.media_ids", ids, "Your media IDs are invalid.")
        if any(post.text == body["text"] for post in self.ledger):
            return problem(403, "Forbidden", "You are not allowed to create a Tweet with duplicate content.")
        post = self.publish("x", body["text"])
        return JSONResponse({"data": {"id": post.id, "text": body["text"]}}, 201)
