"""Liveness, readiness and metrics of the web process."""

import asyncio
from contextlib import suppress
from typing import Literal

from prometheus_client import CONTENT_TYPE_LATEST
from pymongo.errors import PyMongoError
from redis.exceptions import RedisError
from starlette.requests import Request
from starlette.responses import Response

from server.http.json_answers import json_answer
from server.http.metrics import exposition, worker_metrics
from server.http.openapi import Answer, AnswerModel, DescribedRoute, Operation, Tag
from storage.mongo.deployments import unsupported_reason
from storage.stores import Stores

CHECK_TIMEOUT_S = 2.0


class Liveness(AnswerModel):
    """The process runs."""

    status: Literal["ok"]


class Readiness(AnswerModel):
    """Whether the server can answer, and the state of its databases: `ok`, or what is wrong."""

    status: Literal["ready", "not ready"]
    mongodb: str
    redis: str


HEALTHZ = Operation(
    id="getLiveness",
    tag=Tag.OPERATION,
    summary="Ask whether the process runs",
    answers={200: Answer("The process runs.", Liveness)},
)
READYZ = Operation(
    id="getReadiness",
    tag=Tag.OPERATION,
    summary="Ask whether the server can answer",
    description="MongoDB must have a writable primary. Redis is reported, but not required.",
    answers={200: Answer("The server is ready.", Readiness), 503: Answer("The server is not ready.", Readiness)},
)
METRICS = Operation(
    id="getMetrics",
    tag=Tag.OPERATION,
    summary="Read the metrics of this process and of all workers",
    answers={200: Answer("Metrics in Prometheus's text format.", media_types=["text/plain"])},
)


async def healthz(request: Request) -> Response:
    """Answers 200 while the process runs."""
    return json_answer(Liveness(status="ok"))


async def readyz(request: Request) -> Response:
    """Answers 200 when MongoDB has a writable primary, else 503. Redis is reported, but not required."""
    stores: Stores = request.app.state.stores
    mongodb, redis = await asyncio.gather(_mongodb(stores), _redis(stores))
    ready = mongodb == "ok"
    state = Readiness(status="ready" if ready else "not ready", mongodb=mongodb, redis=redis)
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


ROUTES = [
    DescribedRoute("/healthz", healthz, {"GET": HEALTHZ}),
    DescribedRoute("/readyz", readyz, {"GET": READYZ}),
    DescribedRoute("/metrics", metrics, {"GET": METRICS}),
]
