"""The web application: opens the stores, wires everything together, and serves the routes of docs/interfaces.md."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from jobs.providers.egress import Egress
from jobs.providers.legacy_book import legacy_book
from schema.root import build_schema
from server.auth.tokens import TokenVerifier
from server.auth.viewers import Viewers
from server.graphql.compiled import CompiledExecutor
from server.graphql.http import GraphQLView
from server.graphql.limits import DocumentLimitsExtension
from server.http import health
from server.http.callbacks import callback_routes
from server.http.demo_sign_in import demo_sign_in_routes
from server.http.images import ImageCache, images_route
from server.http.ingest import ingest_routes
from server.http.pages import page_routes
from server.settings import Settings
from storage.mail.legacy_book import LegacyBook
from storage.secrets.image_urls import ImageUrls
from storage.secrets.shared_secrets import shared_secret
from storage.secrets.versioned_keys import versioned_keys
from storage.stores import Stores, open_stores

GRAPHQL = "/graphql"


class Application(Starlette):
    """Starlette, past which queries and mutations go: its middlewares and routes cost as much as a coalesced answer.

    Between them and their view is only what they need of it, the rule for other origins.
    """

    graphql: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, or serves one socket or the lifespan to its end."""
        if self.graphql is not None and scope["type"] == "http" and scope["path"] == GRAPHQL:
            await self.graphql(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    def serve_graphql(self, view: GraphQLView) -> None:
        """From now on."""
        # The routes are for sockets, and send whoever wrote a slash too many to the right place.
        self.router.routes[:0] = [Route(GRAPHQL, view), WebSocketRoute(GRAPHQL, view)]
        app: ASGIApp = view
        for middleware, args, kwargs in reversed(self.user_middleware):
            app = middleware(app, *args, **kwargs)
        self.graphql = app


def create_app(settings: Settings) -> Application:
    """The application for these settings, whose servers must be named. Nothing is opened before the lifespan begins."""
    assert settings.mongodb_uri is not None
    assert settings.redis_url is not None
    servers = settings.mongodb_uri, settings.redis_url

    @asynccontextmanager
    async def lifespan(app: Application) -> AsyncIterator[None]:
        egress = Egress(settings.egress_allow)
        async with (
            open_stores(
                *servers,
                settings.database,
                settings.mongo_driver,
                settings.fan_out_max_followers,
                versioned_keys(settings.credential_keys or ""),
                settings.keys_of_addresses,
            ) as stores,
            legacy_book(settings.legacy_book_url, settings.legacy_share) as older,
        ):
            app.state.stores = stores
            # Added here, before the pages, since they need what is open only now.
            await _open(app, settings, stores, egress, older)
            yield
        await egress.aclose()

    routes = [*health.ROUTES, *demo_sign_in_routes(settings), *page_routes()]
    return Application(routes=routes, middleware=_middleware(settings), lifespan=lifespan)


async def _open(app: Application, settings: Settings, stores: Stores, egress: Egress, older: LegacyBook | None) -> None:
    image_urls = ImageUrls(settings.base_url, await shared_secret(stores.mongo, "image_urls"))
    viewers = Viewers(_verifier(settings), stores.users)
    schema = build_schema(DocumentLimitsExtension, executor=CompiledExecutor)
    view = GraphQLView(schema, stores, viewers, image_urls.sign, settings.allowed_origins, older)
    app.router.routes[:0] = [
        images_route(image_urls, ImageCache(egress)),
        *callback_routes(settings, stores),
        *ingest_routes(stores, viewers),
    ]
    app.serve_graphql(view)


def _verifier(settings: Settings) -> TokenVerifier:
    return TokenVerifier(
        secret=settings.auth_secret,
        jwks_url=settings.auth_jwks_url,
        audience=settings.auth_audience,
        issuer=settings.auth_issuer,
    )


def _middleware(settings: Settings) -> list[Middleware]:
    if not settings.allowed_origins:
        return []
    allowed = list(settings.allowed_origins)
    return [Middleware(CORSMiddleware, allow_origins=allowed, allow_methods=["POST"], allow_headers=["*"])]
