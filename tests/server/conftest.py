"""Fixtures: a GraphQL server in the test's own process, stores like those without Redis, and a short demo."""

import gc
from collections.abc import AsyncIterator, Iterator

import pytest

from server.demo import filling, uploads
from server.demo.cast import COMMUNITIES, DemoCommunity, DemoTopic
from storage.mongo import Driver
from storage.stores import Stores, open_stores
from tests.server.graphql.graphql_server import GraphQLServer, serve_graphql
from tests.serving import WebProcess, web_process
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario

UNREACHABLE_REDIS = "redis://127.0.0.1:1/0"


@pytest.fixture(scope="module")
def web(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    mongodb_uri: str,
    redis_url: str,
    shared_database: str,
) -> Iterator[WebProcess]:
    """Yields a web process for the tests of a module, with the module's WEB_SETTINGS and database."""
    folder, settings = tmp_path_factory.mktemp("web"), getattr(request.module, "WEB_SETTINGS", {})
    with web_process(folder, mongodb_uri, redis_url, database=shared_database, **settings) as web:
        yield web


@pytest.fixture
async def server(shared_stores: Stores) -> AsyncIterator[GraphQLServer]:
    """Yields a server with a new topic, in a community founded by ann."""
    async with serve_graphql(await create_topic_scenario(shared_stores)) as served:
        yield served


@pytest.fixture
async def scenario_without_redis(
    server: GraphQLServer, mongodb_uri: str, shared_database: str, mongo_driver: Driver
) -> AsyncIterator[TopicScenario]:
    """Yields the server's topic with other stores, whose posts reach MongoDB but are not published to Redis."""
    async with open_stores(mongodb_uri, UNREACHABLE_REDIS, shared_database, mongo_driver) as stores:
        yield server.scenario.with_stores(stores)


@pytest.fixture
def _no_garbage_collection() -> Iterator[None]:
    """Disables garbage collection, so that only reference counting frees objects."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def small_demo(monkeypatch: pytest.MonkeyPatch) -> list[tuple[DemoCommunity, DemoTopic]]:
    """Replaces the demo's topics by three short topics in two communities. No worker decodes pictures."""
    monkeypatch.setattr(uploads, "MAX_WAIT_S", 0.1)
    hikers, _, _, platform, _ = COMMUNITIES
    topics = [(hikers, DemoTopic("今週の山", "hikes", 40)), (hikers, DemoTopic("写真", "photos", 12))]
    topics.append((platform, DemoTopic("Releases", "releases", 20)))
    monkeypatch.setattr(filling, "all_topics", lambda: iter(topics))
    return topics
