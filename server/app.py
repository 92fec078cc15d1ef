"""The web application: opens the stores, connects all parts, and serves the routes of docs/interfaces.md."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from jobs.mail.inlets.sns_client import SnsClient
from jobs.providers.egress import Egress
from jobs.providers.legacy_book import legacy_book
from jobs.providers.social.oauth.connector import AccountConnector
from jobs.providers.social.oauth.registry import oauth_networks
from jobs.providers.social.registry import all_networks
from jobs.providers.social.verification import AccountVerifier
from resolvers.context import Context
from resolvers.limits.writes import WriteBudgets, WriteLimit, WritesPerMinute
from schema.root import schema
from server.auth.access_watch import AccessWatch
from server.auth.authenticators import Authenticator, ServiceKeyAuthenticator, SessionAuthenticator, TokenAuthenticator
from server.auth.credentials import CredentialKind, RequestCredentials
from server.auth.known_browsers import KnownBrowsers
from server.auth.oidc.client import OidcClient
from server.auth.oidc.pending import PendingSignIns
from server.auth.passkeys.ceremonies import PasskeyCeremonies
from server.auth.passkeys.relying_party import relying_party
from server.auth.tokens import TokenVerifier
from server.auth.viewers import ViewerSessions
from server.graphql import CostPerMinute, DocumentLimits, GraphQLEndpoint, PersistedDocuments, TrustedDocuments
from server.http import account_connections, health
from server.http.accounts import account_routes, invitation_routes
from server.http.audit_export import audit_export_route
from server.http.callbacks import callback_routes
from server.http.demo_sign_in import demo_sign_in_routes
from server.http.exports import exports_route
from server.http.files import files_routes, media_route
from server.http.hosts import HostCheck
from server.http.images import ImageCache, images_routes
from server.http.ingest import ingest_routes
from server.http.json_answers import route_error
from server.http.oidc import oidc_routes
from server.http.openapi import DescribedRoute, openapi_routes
from server.http.pages import documents_of_web_client, page_routes
from server.http.passkeys import passkey_routes
from server.http.sessions import session_routes
from server.http.sign_in_options import sign_in_options_route
from server.http.unsubscribe import unsubscribe_route
from server.http.uploads import EXPOSED_HEADERS, uploads_route
from server.oidc import oidc_client
from server.operation_contexts import OperationContexts
from server.settings import Settings
from server.stores import open_stores_for
from server.telephony import telephony_lines
from server.transport.bodies import RefusalsAfterBodies
from server.transport.compression import Compression
from storage.mail.legacy_book import LegacyBook
from storage.publishing.sandbox import SandboxStore
from storage.secrets.download_urls import DownloadUrls, media_urls
from storage.secrets.image_urls import ImageUrls
from storage.secrets.shared_secrets import shared_secret
from storage.secrets.unsubscribe_links import unsubscribe_links
from storage.secrets.vapid_keys import vapid_key
from storage.stores import Stores

GRAPHQL = "/graphql"


def create_app(settings: Settings) -> Starlette:
    """Returns the application. The settings must name MongoDB and Redis. Connections are opened at startup.

    Raises: StartupError.
    """

    oidc = oidc_client(settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        egress = Egress(settings.egress_allow)
        async with (
            open_stores_for(settings) as stores,
            legacy_book(settings.legacy_book_url, settings.legacy_share) as legacy,
        ):
            app.state.stores = stores
            viewers = ViewerSessions(authenticators(settings, stores))
            access_watch = AccessWatch(stores.access_changes, stores.clock, viewers)
            await _add_routes_of_stores(app, settings, stores, egress, legacy, access_watch, oidc)
            async with access_watch.running():
                yield
        await egress.aclose()

    routes = [*health.ROUTES, *openapi_routes(), *demo_sign_in_routes(settings), *page_routes()]
    errors = {HTTPException: route_error}
    return Starlette(routes=routes, middleware=_middleware(settings), lifespan=lifespan, exception_handlers=errors)


async def _add_routes_of_stores(
    app: Starlette,
    settings: Settings,
    stores: Stores,
    egress: Egress,
    legacy: LegacyBook | None,
    access_watch: AccessWatch,
    oidc: OidcClient | None,
) -> None:
    """Adds the routes that need open stores, in front of the other routes."""
    image_urls = ImageUrls(settings.base_url, await shared_secret(stores.mongo, "image_urls"))
    download_urls = DownloadUrls(settings.base_url, await shared_secret(stores.mongo, "export_urls"))
    credentials = RequestCredentials(settings.page_origins)
    verifier = AccountVerifier(all_networks(egress, SandboxStore(stores.mongo)))
    connector = AccountConnector(
        stores,
        oauth_networks(egress, settings.oauth_apps),
        verifier,
        f"{settings.base_url}{account_connections.CALLBACK}",
    )
    new_context = partial(
        Context,
        stores,
        image_urls.sign,
        legacy_book=legacy,
        sign_download=download_urls.sign,
        egress_refusal=egress.refusal_of,
        verify_account=verifier.verify,
        account_connections=connector,
        push_key=settings.vapid_key and vapid_key(settings.vapid_key).public_text,
        telephony_lines=telephony_lines(settings),
        write_budgets=WriteBudgets(writes_per_minute(settings)),
        base_url=settings.base_url,
        has_public_address=settings.public_url is not None,
    )
    endpoint = GraphQLEndpoint(
        schema,
        OperationContexts(access_watch, credentials, stores.online, new_context),
        allowed_origins=settings.page_origins,
        execution_timeout_s=settings.execution_timeout_s,
        cost_per_minute=CostPerMinute(
            settings.viewer_cost_per_minute,
            settings.service_cost_per_minute,
            settings.organization_cost_per_minute,
        ),
        limits=DocumentLimits(allows_introspection=settings.introspection),
        persisted=PersistedDocuments(
            TrustedDocuments(documents_of_web_client() | settings.trusted_texts, settings.may_send_any_document),
            stores.persisted_documents,
        ),
    )
    app.router.routes[:0] = [
        # These routes serve paths with a trailing slash; `_dispatch_before_router` serves other requests and sockets.
        Route(GRAPHQL, endpoint),
        WebSocketRoute(GRAPHQL, endpoint),
        *images_routes(image_urls, ImageCache(egress), stores),
        exports_route(stores.exports, download_urls),
        unsubscribe_route(stores, await unsubscribe_links(stores.mongo, settings.base_url)),
        uploads_route(stores, access_watch.sessions, credentials),
        *files_routes(stores, access_watch.sessions, credentials),
        media_route(stores, await media_urls(stores.mongo, settings.base_url)),
        *callback_routes(settings, stores),
        account_connections.account_connection_route(connector, access_watch.sessions),
        *ingest_routes(settings, stores, access_watch.sessions, SnsClient(egress)),
        *await _account_routes(settings, stores, access_watch.sessions),
        *await _sign_in_routes(settings, stores, oidc),
        audit_export_route(stores, access_watch.sessions, credentials),
    ]
    _dispatch_before_router(app, endpoint)


async def _account_routes(settings: Settings, stores: Stores, viewers: ViewerSessions) -> list[DescribedRoute]:
    """Returns the routes of local accounts. Without local accounts, returns only the routes that accept invitations."""
    credentials, organization = RequestCredentials(settings.page_origins), settings.organization
    party = relying_party(settings.base_url)
    key = await shared_secret(stores.mongo, "passkeys")
    passkeys = None if party is None else PasskeyCeremonies(party, key)
    browsers = KnownBrowsers(await shared_secret(stores.mongo, "known_browsers"))
    if not settings.has_local_accounts:
        return invitation_routes(stores, viewers, credentials, organization, browsers)
    routes = account_routes(
        stores,
        viewers,
        credentials,
        organization,
        browsers,
        is_registration_open=settings.open_registration,
        passkeys=passkeys,
    )
    if passkeys is not None:
        routes += passkey_routes(stores, viewers, credentials, organization, passkeys)
    return routes


async def _sign_in_routes(settings: Settings, stores: Stores, client: OidcClient | None) -> list[DescribedRoute]:
    credentials = RequestCredentials(settings.page_origins)
    routes = [sign_in_options_route(settings), *session_routes(stores, credentials, client, settings.base_url)]
    if client is None:
        return routes
    pending_sign_ins = PendingSignIns(await shared_secret(stores.mongo, "sign_ins"))
    return [*routes, *oidc_routes(stores, client, pending_sign_ins, credentials)]


def writes_per_minute(settings: Settings) -> WritesPerMinute:
    """Returns the limits of writes."""
    numbers: dict[str, int] = {
        each.name.lower(): getattr(settings, f"{each.name.lower()}_per_minute") for each in WriteLimit
    }
    return WritesPerMinute(
        **numbers,
        organization_factor=settings.organization_writes_factor,
        service_factor=settings.service_writes_factor,
    )


def _dispatch_before_router(app: Starlette, endpoint: ASGIApp) -> None:
    """Dispatches GraphQL requests and sockets before Starlette's own middleware and router, but through `_middleware`.

    Starlette's middleware and router take as long as answering a request from a coalesced query. An open socket would
    keep a coroutine of each of them. For the same reason, the functions of this way return the awaitable of the next.
    """
    starlette_stack = app.middleware_stack or app.build_middleware_stack()
    for middleware, args, kwargs in reversed(app.user_middleware):
        endpoint = middleware(endpoint, *args, **kwargs)

    def dispatch(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        is_graphql = scope["type"] != "lifespan" and scope["path"] == GRAPHQL
        return (endpoint if is_graphql else starlette_stack)(scope, receive, send)

    app.middleware_stack = dispatch


def authenticators(settings: Settings, stores: Stores) -> dict[CredentialKind, Authenticator]:
    """Returns the authenticator of each kind of credential."""
    verifier = TokenVerifier(
        secret=settings.auth_secret,
        jwks_url=settings.auth_jwks_url,
        audience=settings.auth_audience,
        issuer=settings.auth_issuer,
    )
    return {
        CredentialKind.TOKEN: TokenAuthenticator(verifier, stores.users),
        CredentialKind.SERVICE_KEY: ServiceKeyAuthenticator(stores.key_recognizer),
        CredentialKind.SESSION: SessionAuthenticator(stores.sessions, stores.users, stores.clock),
    }


def _middleware(settings: Settings) -> list[Middleware]:
    hosts = [settings.host, urlsplit(settings.base_url).hostname or "", *settings.allowed_hosts]
    checks = [Middleware(RefusalsAfterBodies), Middleware(HostCheck, names=hosts), Middleware(Compression)]
    if not settings.page_origins:
        return checks
    cors = Middleware(
        CORSMiddleware,
        allow_origins=list(settings.page_origins),
        allow_methods=["POST", "GET", "HEAD", "PATCH", "PUT", "DELETE"],
        allow_headers=["*"],
        expose_headers=list(EXPOSED_HEADERS),
        allow_credentials=True,
    )
    return [*checks, cors]
