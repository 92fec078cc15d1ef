"""Liveness, readiness and metrics of the web process."""

import asyncio
from contextlib import suppress

from prometheus_client import CONTENT_TYPE_LATEST
from pymongo.errors import PyMongoError
from redis.exceptions import RedisError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from server.http.json_answers import json_answer
from server.http.metrics import exposition, worker_metrics
from storage.mongo.deployments import unsupported_reason
from storage.stores import Stores

CHECK_TIMEOUT_S = 2.0


async def healthz(request: Request) -> Response:
    """Answers 200 while the process runs."""
    return json_answer({"status": "ok"})


async def readyz(request: Request) -> Response:
    """Answers 200 when MongoDB has a writable primary, else 503. Redis is reported, but not required."""
    stores: Stores = request.app.state.stores
    mongodb, redis = await asyncio.gather(_mongodb(stores), _redis(stores))
    ready = mongodb == "ok"
    state = {"status": "ready" if ready else "not ready", "mongodb": mongodb, "redis": redis}
    return json_answer(state, 200 if ready else 503)


async def metrics(request: Request) -> Response:
    """Answers with the metrics of this process and of all workers, in Prometheus's text format."""
    stores: Stores = request.app.state.stores
    metrics_by_worker: dict[str, str] = {}
    with suppress(PyMongoError, TimeoutError):
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            metrics_by_worker = await worker_metrics(stores.mongo)
    return Response(exposition(metrics_by_worker), media_type=CONTENT_TYPE_LATEST)


async def _mongodb(stores: Stores) -> str:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            hello = await stores.mongo.database.command("hello")
    except (PyMongoError, TimeoutError) as error:
        return f"does not answer ({type(error).__name__})"
    if fault := unsupported_reason(hello):
        return fault
    return "ok" if hello.get("isWritablePrimary") else "has no writable primary"


async def _redis(stores: Stores) -> str:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            await stores.redis.ping()
    except (RedisError, OSError, TimeoutError) as error:
        return f"does not answer ({type(error).__name__}); events take up to 10 s"
    return "ok"


ROUTES = [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]
