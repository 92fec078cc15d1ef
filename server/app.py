"""The web application: opens the stores, wires everything together, and serves the routes of interfaces.md."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Route, WebSocketRoute

from jobs.providers.egress import Egress
from jobs.providers.old_book import old_book
from schema.root import build_schema
from server import health
from server.callbacks import callback_routes
from server.compiled import CompiledExecutor
from server.demo_sign_in import demo_sign_in_routes
from server.graphql import GraphQLView
from server.images import ImageCache, images_route
from server.ingest import ingest_routes
from server.limits import DocumentLimitsExtension
from server.pages import page_routes
from server.settings import Settings
from server.tokens import TokenVerifier
from server.viewers import Viewers
from storage.image_urls import ImageUrls
from storage.mail.migration import OldBook
from storage.secrets import shared_secret
from storage.stores import Stores, open_stores
from storage.versioned_keys import versioned_keys


def create_app(settings: Settings) -> Starlette:
    """The application for these settings, whose servers must be named. Nothing is opened before the lifespan begins."""
    assert settings.mongodb_uri is not None
    assert settings.redis_url is not None
    servers = settings.mongodb_uri, settings.redis_url

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
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
            old_book(settings.legacy_book_url, settings.legacy_share) as older,
        ):
            app.state.stores = stores
            # Added here, before the pages, since they need what is open only now.
            app.router.routes[:0] = await _product_routes(settings, stores, egress, older)
            yield
        await egress.aclose()

    routes = [*health.ROUTES, *demo_sign_in_routes(settings), *page_routes()]
    return Starlette(routes=routes, middleware=_middleware(settings), lifespan=lifespan)


async def _product_routes(settings: Settings, stores: Stores, egress: Egress, older: OldBook | None) -> list[BaseRoute]:
    image_urls = ImageUrls(settings.base_url, await shared_secret(stores.mongo, "image_urls"))
    viewers = Viewers(_verifier(settings), stores.users)
    schema = build_schema(DocumentLimitsExtension, executor=CompiledExecutor)
    view = GraphQLView(schema, stores, viewers, image_urls.sign, settings.allowed_origins, older)
    return [
        Route("/graphql", view),
        WebSocketRoute("/graphql", view),
        images_route(image_urls, ImageCache(egress)),
        *callback_routes(settings, stores),
        *ingest_routes(stores, viewers),
    ]


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
