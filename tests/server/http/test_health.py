"""Liveness, readiness and metrics while a server is missing or degraded."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from pymongo.errors import PyMongoError
from redis.asyncio import Redis
from starlette.applications import Starlette

from server.embedded import Mongod, find_mongod
from server.http import health
from server.http.metrics import worker_metrics
from storage.heartbeats import WorkerHeartbeat
from storage.mongo import connect
from storage.mongo.deployments import MONGOS, STANDALONE
from storage.stores import Stores, open_stores
from tests.twins.mongos import mongos_twin

pytestmark = pytest.mark.anyio

UNUSED_PORT = 1
"""A port where no process listens."""


@pytest.fixture
async def mongod(tmp_path: Path) -> AsyncIterator[Mongod]:
    """Yields a mongod that a test may break."""
    mongod = Mongod(tmp_path / "mongodb", find_mongod())
    await mongod.start()
    yield mongod
    await mongod.stop(0)


@asynccontextmanager
async def health_client(stores: Stores) -> AsyncIterator[httpx2.AsyncClient]:
    app = Starlette(routes=health.ROUTES)
    app.state.stores = stores
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://noroshi") as http:
        yield http


async def test_ready_when_both_servers_answer(stores: Stores) -> None:
    async with health_client(stores) as http:
        response = await http.get("/readyz")
    assert response.status_code == 200
    assert response.json() == {"status": "ready", "mongodb": "ok", "redis": "ok"}
    assert response.headers["cache-control"] == "no-store"


async def test_ready_process_reports_unreachable_redis(stores: Stores) -> None:
    async with Redis(port=UNUSED_PORT) as unreachable, health_client(replace(stores, redis=unreachable)) as http:
        response = await http.get("/readyz")
    assert response.status_code == 200
    assert response.json()["status"] == "ready"
    assert response.json()["redis"].startswith("does not answer")


async def test_ready_process_reports_hanging_redis(stores: Stores) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with (
            Redis(port=silent.getsockname()[1]) as hanging,
            health_client(replace(stores, redis=hanging)) as http,
        ):
            response = await http.get("/readyz")
    assert response.status_code == 200
    assert "TimeoutError" in response.json()["redis"]


async def test_live_but_not_ready_without_mongodb(stores: Stores) -> None:
    unreachable = connect(f"mongodb://127.0.0.1:{UNUSED_PORT}/", "t_unreachable")
    async with health_client(replace(stores, mongo=unreachable)) as http:
        ready, alive = await http.get("/readyz"), await http.get("/healthz")
    await unreachable.close()
    assert ready.status_code == 503
    assert ready.json()["status"] == "not ready"
    assert ready.json()["mongodb"].startswith("does not answer")
    assert (alive.status_code, alive.json()) == (200, {"status": "ok"})


async def test_not_ready_without_writable_primary(mongod: Mongod, redis_url: str) -> None:
    async with open_stores(mongod.uri, redis_url, "t_ready") as stores, health_client(stores) as http:
        assert (await http.get("/readyz")).status_code == 200
        await step_down(stores)
        demoted = await http.get("/readyz")
    assert (demoted.status_code, demoted.json()["mongodb"]) == (503, "has no writable primary")


async def test_not_ready_with_standalone_mongod(tmp_path: Path, stores: Stores) -> None:
    standalone = Mongod(tmp_path / "standalone", find_mongod(), initiate=False)
    await standalone.start()
    mongo = connect(standalone.uri, "t_standalone")
    async with health_client(replace(stores, mongo=mongo)) as http:
        response = await http.get("/readyz")
    await mongo.close()
    await standalone.stop(0)
    assert (response.status_code, response.json()["mongodb"]) == (503, STANDALONE)


async def test_not_ready_with_mongos(stores: Stores) -> None:
    async with mongos_twin() as address:
        mongo = connect(f"mongodb://{address}/", "t_mongos")
        async with health_client(replace(stores, mongo=mongo)) as http:
            response = await http.get("/readyz")
        await mongo.close()
    assert (response.status_code, response.json()["mongodb"]) == (503, MONGOS)


async def test_metrics_are_in_prometheus_format(stores: Stores) -> None:
    await WorkerHeartbeat(stores.mongo, "host/1")._write()
    (label,) = await worker_metrics(stores.mongo)
    async with health_client(stores) as http:
        response = await http.get("/metrics")
    assert f'noroshi_call_brokers{{worker="{label}"}} ' in response.text
    assert response.headers["content-type"].startswith("text/plain; version=")
    assert "# TYPE noroshi_hub_subscribers gauge" in response.text


async def step_down(stores: Stores) -> None:
    """Makes the only member step down, and keeps it from being elected again for a minute."""
    # Some versions of MongoDB close the connection on this command.
    with suppress(PyMongoError):
        await stores.mongo.client.admin.command({"replSetStepDown": 60, "force": True})
