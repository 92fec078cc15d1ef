"""Executing one operation for many events: results equal graphql-core's, and memory is bounded."""

import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable
from typing import Any

import orjson
import pytest
from graphql import GraphQLError, build_schema, parse
from graphql.execution import Executor, execute_subscription_event

from schema.errors import to_client_error
from server.graphql.event_execution import EventExecution

pytestmark = pytest.mark.anyio

SCHEMA = build_schema("""
  type Query { nothing: Int }
  type Subscription { events(of: ID): Event! }
  interface Event { at: Int! }
  type Posted implements Event { at: Int!  author: User!  later: Int  broken: Int  never: Int! }
  type Ready implements Event { at: Int! }
  type User { name: String! }
""")
QUERY = """subscription($with: Boolean = false) { events(of: "x") { __typename at ...Who
  ... on Posted @include(if: $with) { broken } } } fragment Who on Posted { who: author { name } later }"""
EVENT_COUNT, MAX_GROWTH_BYTES = 300, 200
"""The number of events of one measurement, and the limit of memory growth per event."""


async def later(_info: object) -> int:
    await asyncio.sleep(0)
    return 7


def broken(_info: object) -> int:
    raise GraphQLError("It broke.")


def posted_event(at: int) -> dict[str, Any]:
    """Returns the root value of a Posted event."""
    event = {"__typename": "Posted", "at": at, "author": {"name": "ann"}, "later": later, "broken": broken}
    return {"events": event}


def executor(query: str, **variables: Any) -> Executor[Any]:
    built = Executor.build(SCHEMA, parse(query), raw_variable_values=variables)
    assert isinstance(built, Executor)
    return built


async def execute_with_graphql_core(query: str, record: object, **variables: Any) -> dict[str, Any]:
    result = execute_subscription_event(executor(query, **variables).build_per_event_executor(record))
    execution = await result if isinstance(result, Awaitable) else result
    errors = [to_client_error(error).formatted for error in execution.errors or ()]
    return {"data": execution.data} | ({"errors": errors} if errors else {})


@pytest.mark.parametrize(
    ("query", "variables", "record"),
    [
        (QUERY, {}, posted_event(1)),
        (QUERY, {}, {"events": {"__typename": "Ready", "at": 1}}),
        (QUERY, {"with": True}, posted_event(1)),
        ("subscription { events { ... on Posted { never } at } }", {}, posted_event(1)),
        ("subscription { events { at } }", {}, {"events": None}),
        ("subscription { nothing: events { at } events { ... on Posted { later } } }", {}, posted_event(1)),
    ],
)
async def test_event_execution_equals_graphql_core(query: str, variables: dict[str, Any], record: Any) -> None:
    execution = EventExecution(executor(query, **variables))
    expected = await execute_with_graphql_core(query, record, **variables)
    for _ in range(2):
        assert _without_error_ids(orjson.loads(await execution.run(record))) == _without_error_ids(expected)


def _without_error_ids(payload: dict[str, Any]) -> dict[str, Any]:
    """Returns the payload without the ids of masked errors, which differ each time."""
    for error in payload.get("errors", ()):
        error.get("extensions", {}).pop("requestId", None)
    return payload


async def test_errors_of_one_event_do_not_appear_in_the_next() -> None:
    execution = EventExecution(executor(QUERY, **{"with": True}))
    assert "errors" in orjson.loads(await execution.run(posted_event(1)))
    assert "errors" not in orjson.loads(await execution.run({"events": {"__typename": "Ready", "at": 2}}))


async def test_events_can_be_executed_concurrently() -> None:
    execution = EventExecution(executor(QUERY))
    payloads = await asyncio.gather(*(execution.run(posted_event(at)) for at in range(20)))
    assert [orjson.loads(payload)["data"]["events"]["at"] for payload in payloads] == list(range(20))


async def test_executed_events_leave_no_memory_behind() -> None:
    execution = EventExecution(executor(QUERY))

    async def bytes_after_events() -> int:
        for at in range(EVENT_COUNT):
            await execution.run(posted_event(at))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        bytes_before = await bytes_after_events()
        assert (await bytes_after_events() - bytes_before) / EVENT_COUNT < MAX_GROWTH_BYTES
    finally:
        tracemalloc.stop()
