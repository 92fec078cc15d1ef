"""Instagram: containers become FINISHED, expire after 24 hours, and are published once; with a daily quota."""

from typing import Any
from urllib.parse import parse_qsl

import httpx2
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.twins.oauth import AuthorizationTwin, form_of
from tests.twins.twin import NetworkTwin, bearer_token


def graph_error(status: int, message: str, code: int, subcode: int | None = None) -> Response:
    """Returns an error in the form of the Graph API."""
    return JSONResponse({"error": {"message": message, "code": code, "error_subcode": subcode}}, status)


def expired_token() -> Response:
    """Returns the error for an expired access token, as in github.com/sixoverground/instagram_graph_api/pull/3.

    developers.facebook.com, Graph API, Handling Errors, names the code and the subcode, and no status.
    """
    return graph_error(400, "Error validating access token: Session has expired.", 190, 463)


class InstagramTwin(NetworkTwin):
    """The Graph API of Instagram. A container is FINISHED at status request number `polls_until_ready`.

    With `fails_processing`, its state becomes ERROR instead. `failure` is the answer to all calls that publish, and
    `creation_failure` to all that create a container. GET /me has the form of the page Get Started of the API with
    Instagram Login.

    Tokens are as developers.facebook.com, Instagram Platform describes: Business Login for Instagram, and the
    references access_token and refresh_access_token. Earlier tokens stay valid. The refusal of a used code is quoted in
    github.com/espresso-dev/instagram-basic-display-php/issues/14.

    Codes and subcodes are those of the page Error Codes of the Instagram Platform. Real answers are quoted: 9007 in
    github.com/exileum/meta-mcp/issues/138, and 9004 in github.com/gitroomhq/postiz-app/pull/1900. No source was found
    for the refusal of a container that was published before, so nothing may depend on its code and its text.
    """

    client_id = "ig-client"
    client_secret = "ig-secret"

    user = "1784"
    username = "harbour"

    def __init__(self, lose_rate: float = 0.0, seed: int = 0) -> None:
        super().__init__(lose_rate, seed)
        self.polls_until_ready = 1
        self.quota = 50
        self.containers: dict[str, dict[str, Any]] = {}
        self.failure: Response | None = None
        self.creation_failure: Response | None = None
        self.fails_processing = False
        self.short_token = ""
        self.lifetime_s = 5_184_000
        self.earlier_tokens: set[str] = set()
        self.are_tokens_young = False
        """Whether tokens are not 24 hours old yet, and so are not renewed."""

        self.permissions: str | None = None
        """The permissions that the person grants. None: all that the app asks for."""

        self.authorization = AuthorizationTwin(lambda: "https://www.instagram.com", "/oauth/authorize", has_pkce=False)
        self.lists_user = True
        """Whether GET /me answers with a list. Otherwise it answers with the user itself, as for other nodes."""

        self.fetches_media = False
        """Whether media are fetched from their addresses when their container is created, as Instagram does."""

    def routes(self) -> list[Route]:
        return [
            Route("/oauth/access_token", self.exchange_code, methods=["POST"]),
            Route("/access_token", self.exchange_token, methods=["GET"]),
            Route("/refresh_access_token", self.refresh, methods=["GET"]),
            Route("/me", self.me, methods=["GET"]),
            Route("/{user}/media", self.create, methods=["POST"]),
            Route("/{user}/media_publish", self.publish_container, methods=["POST"]),
            Route("/{user}/content_publishing_limit", self.limit, methods=["GET"]),
            Route("/{id}", self.read, methods=["GET"]),
        ]

    def add_app(self, redirect_uri: str, scopes: str) -> None:
        """Stores the operator's app, for which people may allow access."""
        self.authorization.add_app(self.client_id, self.client_secret, redirect_uri, scopes)

    async def exchange_code(self, request: Request) -> Response:
        form = await form_of(request)
        names = {"client_id", "client_secret", "grant_type", "redirect_uri", "code"}
        is_app = self.authorization.knows_app(form.get("client_id", ""), form.get("client_secret"))
        scope = None
        if is_app and form.keys() == names and form["grant_type"] == "authorization_code":
            scope = self.authorization.use_code(form, form["client_id"])
        if scope is None:
            message = "This authorization code has been used"
            return JSONResponse({"error_type": "OAuthException", "code": 400, "error_message": message}, 400)
        self.short_token = f"short-{self.new_id()}"
        permissions = scope if self.permissions is None else self.permissions
        token = {"access_token": self.short_token, "user_id": "1020", "permissions": permissions}
        return JSONResponse({"data": [token]} if self.lists_user else token)

    async def exchange_token(self, request: Request) -> Response:
        expected = {
            "grant_type": "ig_exchange_token",
            "client_secret": self.client_secret,
            "access_token": self.short_token,
        }
        if dict(request.query_params) != expected:
            return graph_error(400, "Error validating client secret.", 101)
        return self._long_lived()

    async def refresh(self, request: Request) -> Response:
        query = dict(request.query_params)
        if query.keys() != {"grant_type", "access_token"} or query["grant_type"] != "ig_refresh_token":
            return graph_error(400, "Missing required parameter", 100)
        return await self.renew_with_faults(lambda: self._refresh(query["access_token"]))

    def _refresh(self, token: str) -> Response:
        if self.are_tokens_young:
            return graph_error(400, "The access token can be refreshed when it is 24 hours old", 100)
        return self._long_lived() if self._is_valid(token) else expired_token()

    def _long_lived(self) -> Response:
        self.earlier_tokens.add(self.token)
        self.token = f"long-{self.new_id()}"
        return JSONResponse({"access_token": self.token, "token_type": "bearer", "expires_in": self.lifetime_s})

    def _is_valid(self, token: str) -> bool:
        return token == self.token or token in self.earlier_tokens

    async def me(self, request: Request) -> Response:
        if not self._is_valid(bearer_token(request)):
            return await self.verify_with_faults(graph_error(401, "Invalid OAuth access token", 190))
        all_fields = {"user_id": self.user, "username": self.username}
        user = {name: all_fields[name] for name in request.query_params["fields"].split(",")}
        return await self.verify_with_faults(JSONResponse({"data": [user]} if self.lists_user else user))

    async def create(self, request: Request) -> Response:
        if not self._is_valid(bearer_token(request)) or request.path_params["user"] != self.user:
            return expired_token()
        if self.creation_failure is not None:
            return self.creation_failure
        fields = dict(parse_qsl((await request.body()).decode()))
        children = fields.get("children", "").split(",") if "children" in fields else []
        if any(self.containers.get(each, {}).get("status") != "FINISHED" for each in children):
            return graph_error(400, "A child is not ready", 9007, 2207027)
        if fields.get("media_type") == "CAROUSEL" and not 2 <= len(children) <= 10:
            return graph_error(400, "A carousel has 2 to 10 items", 100, 2207028)
        id_ = self.new_id("c")
        self.containers[id_] = {"fields": fields, "status": "IN_PROGRESS", "polls_left": self.polls_until_ready}
        if self.fetches_media and "children" not in fields:
            url = fields.get("image_url") or fields["video_url"]
            async with httpx2.AsyncClient() as client:
                answer = await client.get(url)
            if answer.status_code != 200:
                return graph_error(400, "Only photo or video can be accepted as media type.", 9004, 2207052)
            self.containers[id_] |= {"content": answer.content, "type": answer.headers["content-type"]}
        return JSONResponse({"id": id_})

    async def read(self, request: Request) -> Response:
        id_ = request.path_params["id"]
        if "permalink" in request.query_params.get("fields", ""):
            return JSONResponse({"permalink": f"https://www.instagram.com/p/{id_}/", "id": id_})
        container = self.containers.get(id_)
        if container is None:
            return graph_error(400, "Unsupported get request", 100, 33)
        if container["status"] == "IN_PROGRESS":
            container["polls_left"] -= 1
            if container["polls_left"] <= 0:
                container["status"] = "ERROR" if self.fails_processing else "FINISHED"
        return JSONResponse({"status_code": container["status"], "status": container["status"].title(), "id": id_})

    async def limit(self, request: Request) -> Response:
        if not self._is_valid(bearer_token(request)):
            return expired_token()
        config = {"quota_total": self.quota, "quota_duration": 86400}
        return JSONResponse({"data": [{"quota_usage": len(self.ledger), "config": config}]})

    async def publish_container(self, request: Request) -> Response:
        if not self._is_valid(bearer_token(request)):
            return expired_token()
        fields = dict(parse_qsl((await request.body()).decode()))
        return await self.act_with_faults(lambda: self._publish(fields["creation_id"]))

    async def _publish(self, id_: str) -> Response:
        if self.failure is not None:
            return self.failure
        container = self.containers.get(id_)
        if container is None or container["status"] == "EXPIRED":
            return graph_error(400, "The media container has expired", 24, 2207008)
        if container["status"] == "PUBLISHED":
            return graph_error(400, "The media was published already", 100, 2207006)
        if container["status"] != "FINISHED":
            return graph_error(400, "Media ID is not available", 9007, 2207027)
        if len(self.ledger) >= self.quota:
            return graph_error(400, "Application request limit reached", 9, 2207042)
        container["status"] = "PUBLISHED"
        post = self.publish(self.user, container["fields"].get("caption", ""))
        return JSONResponse({"id": post.id})
