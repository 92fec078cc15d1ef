"""The whole application: its routes, its lifespan, and its start while servers are unreachable."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import IPv4Network
from typing import Any

import httpx2
import pytest
from pymongo.errors import PyMongoError

from server.app import create_app
from server.auth.tokens import mint
from server.settings import Settings
from server.transport.trusted_proxies import TrustedProxies
from storage.secrets.image_urls import ImageUrls
from storage.secrets.shared_secrets import shared_secret
from storage.stores import open_stores
from tests.databases import CREDENTIAL_KEYS
from tests.server.in_process import raw_client, serve_in_process
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import running_twin
from tests.waiting import poll_until_true

ORIGIN = "https://app.example.org"
SECRET = "a secret of the tests, longer than 32 bytes"
PATHS = {
    "/graphql": {400},
    "/healthz": {200},
    "/readyz": {200},
    "/metrics": {200},
    "/stamps/hello.svg": {200},
    "/images/not-signed/at-all": {404},
    "/nowhere": {404},
    # 503 if the web client is not built.
    "/": {200, 503},
    "/graphiql": {200, 503},
}

pytestmark = pytest.mark.anyio

UNUSED_PORT = 1
"""A port where no process listens."""


@pytest.fixture
def settings(mongodb_uri: str, redis_url: str, database: str) -> Settings:
    return Settings.from_environment(
        mongodb_uri=mongodb_uri, redis_url=redis_url, database=database, auth_secret=SECRET
    )


@asynccontextmanager
async def running_app(settings: Settings) -> AsyncIterator[httpx2.AsyncClient]:
    app = create_app(settings)
    transport = httpx2.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http,
    ):
        yield http


async def test_routes_answer_with_expected_status(settings: Settings) -> None:
    async with running_app(settings) as http:
        for path, statuses in PATHS.items():
            assert (await http.get(path)).status_code in statuses, path


async def test_api_answers_on_empty_database(settings: Settings) -> None:
    async with running_app(settings) as http:
        response = await http.post("/graphql", json={"query": "{ viewer { id } }"})
    assert response.json() == {"data": {"viewer": None}}


def awaiting_coroutines() -> list[str]:
    """Returns the names of the coroutines that wait for each other in the task of a socket, outermost first."""
    tasks = (each.get_coro() for each in asyncio.all_tasks())
    coroutine = next(each for each in tasks if each is not None and each.__qualname__.endswith("run_asgi"))
    names: list[str] = []
    while hasattr(coroutine, "cr_await"):
        names.append(coroutine.__qualname__)
        coroutine = coroutine.cr_await
    return names


async def test_open_socket_keeps_no_coroutine_of_middleware(settings: Settings) -> None:
    app = create_app(settings)
    async with (
        app.router.lifespan_context(app),
        serve_in_process(TrustedProxies(app, ()), interface="asgi3", proxy_headers=False) as socket_server,
        raw_client(socket_server.port),
    ):
        assert await poll_until_true(lambda: awaiting_coroutines()[-1].endswith("handle"))
        own, *others = awaiting_coroutines()
        assert own == "WebSocketsSansIOProtocol.run_asgi"
        assert others == [
            "Starlette.__call__",
            "GraphQLSockets.serve",
            "AsyncBaseHTTPView.run",
            "BaseGraphQLTransportWSHandler.handle",
        ]


async def test_image_url_is_valid_in_other_process(settings: Settings) -> None:
    async with open_stores(settings.mongodb_uri or "", settings.redis_url or "", settings.database) as stores:
        image_urls = ImageUrls("http://localhost", await shared_secret(stores.mongo, "image_urls"))
        path = image_urls.sign("http://127.0.0.1/refused-by-the-guard.png")
        for _ in range(2):
            async with running_app(settings) as http:
                assert (await http.get(path)).status_code == 502


async def test_private_webhook_is_refused_by_the_server(settings: Settings) -> None:
    token = mint(SECRET, user_id="ann", organization_id="acme", roles=("OPERATOR",), ttl_s=60)
    query = """mutation { connectAccount(input: { network: WEBHOOK, name: "a", credentials: "s",
        baseUrl: "http://127.0.0.1/hook" }) { id } }"""
    async with running_app(settings) as http:
        headers = {"authorization": f"Bearer {token}"}
        response = await http.post("/graphql", json={"query": query}, headers=headers)
    (error,) = response.json()["errors"]
    assert (error["extensions"]["code"], error["extensions"]["field"]) == ("BAD_USER_INPUT", "baseUrl")


async def test_server_verifies_credentials_with_network(settings: Settings) -> None:
    keys = f"1:{base64.b64encode(CREDENTIAL_KEYS['1']).decode()}"
    settings = settings.with_values(credential_keys=keys, egress_allow=(IPv4Network("127.0.0.0/8"),))
    token = mint(SECRET, user_id="ann", organization_id="acme", roles=("ADMIN",), ttl_s=60)
    query = "mutation ($input: ConnectAccountInput!) { connectAccount(input: $input) { handle } }"
    async with running_twin(MastodonTwin()) as twin, running_app(settings) as http:
        answers = []
        for credentials in ("abc", twin.token):
            input_ = {"network": "MASTODON", "name": "Harbour", "baseUrl": twin.url, "credentials": credentials}
            body = {"query": query, "variables": {"input": input_}}
            answers.append(await http.post("/graphql", json=body, headers={"authorization": f"Bearer {token}"}))
    (error,) = answers[0].json()["errors"]
    assert (error["extensions"]["code"], error["extensions"]["field"]) == ("BAD_USER_INPUT", "credentials")
    assert "The access token is invalid" in error["message"]
    assert answers[1].json() == {"data": {"connectAccount": {"handle": "@harbour@127.0.0.1"}}}


async def test_create_app_opens_no_connection(settings: Settings) -> None:
    unreachable = settings.with_values(mongodb_uri=f"mongodb://127.0.0.1:{UNUSED_PORT}/")
    started_at = time.monotonic()
    create_app(unreachable)
    assert time.monotonic() - started_at < 15, "A connection attempt would take 30 s."


async def test_app_without_mongodb_fails_to_start(settings: Settings) -> None:
    unreachable = settings.with_values(
        mongodb_uri=f"mongodb://127.0.0.1:{UNUSED_PORT}/?serverSelectionTimeoutMS=500&timeoutMS=500"
    )
    with pytest.raises(PyMongoError):
        async with running_app(unreachable):
            pass


async def test_app_without_redis_serves(settings: Settings) -> None:
    async with running_app(settings.with_values(redis_url=f"redis://127.0.0.1:{UNUSED_PORT}")) as http:
        response = await http.get("/readyz")
    assert response.status_code == 200
    assert response.json()["redis"].startswith("does not answer")


async def test_end_of_lifespan_leaves_no_task(settings: Settings) -> None:
    tasks_before = asyncio.all_tasks()
    async with running_app(settings) as http:
        await http.get("/readyz")
    remaining = [task for task in asyncio.all_tasks() - tasks_before if not task.done()]
    assert remaining == []


@pytest.mark.parametrize("values", [{"allowed_origins": (ORIGIN,)}, {"public_url": f"{ORIGIN}/base"}])
async def test_only_allowed_origins_pass_preflight(settings: Settings, values: dict[str, Any]) -> None:
    preflight = {
        "origin": ORIGIN,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type, noroshi-client",
    }
    async with running_app(settings) as http:
        refused = [await http.options("/graphql", headers=preflight)]
    async with running_app(settings.with_values(**values)) as http:
        allowed = await http.options("/graphql", headers=preflight)
        for origin in ("https://evil.example.org", "http://app.example.org", "null", f"{ORIGIN}:8443"):
            refused.append(await http.options("/graphql", headers=preflight | {"origin": origin}))
    assert all("access-control-allow-origin" not in each.headers for each in refused)
    assert allowed.headers["access-control-allow-origin"] == ORIGIN
    assert allowed.headers["access-control-allow-credentials"] == "true"
    assert "noroshi-client" in allowed.headers["access-control-allow-headers"]


async def test_allowed_page_may_read_answers_to_its_cookie(settings: Settings) -> None:
    query = {"query": "{ viewer { id } }"}
    async with running_app(settings.with_values(allowed_origins=(ORIGIN,))) as http:
        allowed = await http.post("/graphql", json=query, headers={"origin": ORIGIN})
        other = await http.post("/graphql", json=query, headers={"origin": "https://evil.example.org"})
    assert allowed.headers["access-control-allow-origin"] == ORIGIN
    assert allowed.headers["access-control-allow-credentials"] == "true"
    assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize(
    "values", [{}, {"demo": True, "host": "0.0.0.0"}, {"demo": True, "auth_jwks_url": "https://id.example.org/keys"}]
)
async def test_demo_sign_in_requires_demo_on_loopback_host(settings: Settings, values: dict[str, Any]) -> None:
    async with running_app(settings.with_values(**values)) as http:
        response = await http.post("/demo/sign-in", json={"user": "hana"})
        users = await http.get("/demo/users")
    assert response.status_code == 404
    assert users.json() == {"users": []}
