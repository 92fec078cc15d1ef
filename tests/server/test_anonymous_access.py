"""A client without a token learns nothing about an organization, from any route and by any method."""

import re
from collections.abc import AsyncIterator, Iterable
from typing import NamedTuple

import httpx2
import pytest
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from server.app import create_app
from server.settings import Settings
from storage.heartbeats import WorkerHeartbeat, process_name
from storage.mail.rates import MIN_SENT
from storage.stores import Stores
from tests.storage.calls.in_memory_jobs import new_job
from tests.storage.mail.events import hard
from tests.storage.mail.scenario import MailScenario
from tests.storage.topic_scenario import create_topic_scenario

ORG, DOMAIN, PHONE, TEXT, HOST = "acme-secret", "customer.example", "819012345678", "the beacon is lit", "host-secret"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
FILES = {"/assets": "/nothing.js", "/icons": "/noroshi-192.png", "/stamps": "/hello.svg"}
BODY = b'{"query": "{ communities { name } bounceRates(from: \\"2026-01-01\\", to: \\"2026-01-02\\") { domain } }"}'

pytestmark = pytest.mark.anyio


class AnonymousClient(NamedTuple):
    """A client without a token, and a path of every route."""

    http: httpx2.AsyncClient
    paths: list[str]


@pytest.fixture
async def tenant_stores(stores: Stores) -> Stores:
    """Returns stores with chat, calls and mail of one organization, and the heartbeat of a worker."""
    scenario = await create_topic_scenario(stores, ORG)
    await scenario.post(TEXT)
    await stores.call_jobs.launch(new_job(organization_id=ORG), f"phone_number\n+{PHONE}\n", None)
    now = await stores.mongo.now()
    await MailScenario(stores, ORG).add_events(*(hard(f"a{n}@{DOMAIN}", at=now) for n in range(MIN_SENT)))
    await WorkerHeartbeat(stores.mongo, f"{HOST}/1")._write()
    return stores


@pytest.fixture
async def anonymous(
    tenant_stores: Stores, mongodb_uri: str, redis_url: str, database: str
) -> AsyncIterator[AnonymousClient]:
    """Yields a client of the application on the tenant's database."""
    secret = "a secret of the tests, longer than 32 bytes"
    app = create_app(
        Settings.from_environment(mongodb_uri=mongodb_uri, redis_url=redis_url, database=database, auth_secret=secret)
    )
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as client,
    ):
        yield AnonymousClient(client, list(paths(app.routes)))


def paths(routes: Iterable[BaseRoute]) -> Iterable[str]:
    """Yields a path of every route. Each parameter of a path is replaced by "value"."""
    for route in routes:
        assert isinstance(route, Route | Mount | WebSocketRoute), route
        path = re.sub(r"{\w+(:\w+)?}", "value", route.path)
        yield path + FILES[path] if isinstance(route, Mount) else path


def names_of_tenant() -> tuple[str, ...]:
    return ORG, DOMAIN, PHONE, TEXT, "Hilltops", "Beacons", HOST, process_name()


async def test_no_route_shows_an_organization_without_token(anonymous: AnonymousClient) -> None:
    assert {"/graphql", "/metrics", "/readyz", "/ingest/deliveries", "/callbacks/telephony"} <= set(anonymous.paths)
    for path in anonymous.paths:
        for method in METHODS:
            response = await anonymous.http.request(
                method, path, content=BODY, headers={"content-type": "application/json"}
            )
            response_text = f"{response.headers} {response.text}"
            assert [name for name in names_of_tenant() if name in response_text] == [], (method, path)


async def test_metrics_have_no_label_with_a_name(anonymous: AnonymousClient) -> None:
    text = (await anonymous.http.get("/metrics")).text
    assert "noroshi_mail_events_total" in text
    labels = set(re.findall(r'[{,](\w+)="', text))
    assert labels.isdisjoint({"organization", "org", "domain", "user", "topic", "host"}), labels
