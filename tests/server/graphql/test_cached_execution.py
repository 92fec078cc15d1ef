"""Cached documents are executed without Strawberry's stages, and give the same results as with the stages."""

import gc
from typing import Any, cast

import pytest
import strawberry
from strawberry.extensions import SchemaExtension

from resolvers.context import Context
from schema.root import build_schema
from server.graphql.cached_execution import CachedExecution
from server.graphql.compiled import CompiledExecutor, compiled_executor
from server.graphql.documents import DocumentCache
from server.graphql.http import OPERATION_TYPES
from server.graphql.limits_extension import limits_extension
from storage.identity.records import User
from storage.identity.roles import Role
from storage.stores import Stores

pytestmark = pytest.mark.anyio

DOCUMENTS = DocumentCache()
SCHEMA = build_schema(limits_extension(DOCUMENTS), executor=compiled_executor(DOCUMENTS))
CACHED_EXECUTION = CachedExecution(SCHEMA, DOCUMENTS)
VIEWER = User("ann", "ann", "Ann", "hilltop", (Role.MEMBER,), 0, 0)
TIMESTAMP_VARIABLE = "query($latest: Timestamp) { messages(topicId: 1, latest: $latest) { hasNewer } }"
TWO_OPERATIONS = "query a { stamps { id } } query b { viewer { id } }"

REQUESTS: dict[str, tuple[str, dict[str, Any] | None, str | None]] = {
    "valid query": ("{ stamps { id name } viewer { id handle } }", None, None),
    "include directive": ("query($with: Boolean!) { stamps { id name @include(if: $with) } }", {"with": True}, None),
    "missing variable": ("query($with: Boolean!) { stamps { id name @include(if: $with) } }", {}, None),
    "malformed timestamp": (TIMESTAMP_VARIABLE, {"latest": "yesterday"}, None),
    "omitted variable": (TIMESTAMP_VARIABLE, {}, None),
    "limit too large": ("{ messages(topicId: 1, limit: 1000) { hasNewer } }", None, None),
    "unknown field": ("{ emails { id } }", None, None),
    "syntax error": ("{ stamps { id ", None, None),
    "subscription": ("subscription { notificationEvents { cursor } }", None, None),
    "one of two operations": (TWO_OPERATIONS, None, "b"),
    "unknown operation name": (TWO_OPERATIONS, None, "c"),
    "missing operation name": (TWO_OPERATIONS, None, None),
    "alias": ("{ callJobs(limit: 1) { jobs: items { id } } }", None, None),
    "incomplete input": ("mutation { postMessage(input: {topicId: 1}) { id } }", None, None),
    "type name": ("{ __typename }", None, None),
}
"""Requests as query, variables and operation name."""

REFUSED_REQUESTS = ("unknown field", "syntax error", "subscription", "unknown operation name", "missing operation name")


def context() -> Context:
    """Returns the context of a member's request that needs no store."""
    return Context(cast("Stores", None), str, VIEWER, frozenset({Role.MEMBER}))


async def execute_with_stages(
    schema: strawberry.Schema, query: str, variables: dict[str, Any] | None, name: str | None
) -> tuple[Any, list[Any] | None]:
    """Executes with Strawberry's stages. Returns data and errors, or the type of a raised exception and None."""
    try:
        result = await schema.execute(query, variables, context(), None, name, OPERATION_TYPES)
    except Exception as error:
        return type(error), None
    return comparable(result.data, result.errors)


def comparable(data: Any, errors: list[Any] | None) -> tuple[Any, list[Any] | None]:
    """Returns data and formatted errors without the ids of masked errors, which differ each time."""
    for error in errors or []:
        (error.extensions or {}).pop("requestId", None)
    return data, errors and [error.formatted for error in errors]


@pytest.mark.parametrize(
    ("query", "variables", "name"),
    [pytest.param(*REQUESTS[key], id=key) for key in REQUESTS if key not in REFUSED_REQUESTS],
)
async def test_cached_execution_equals_first_execution(
    query: str, variables: dict[str, Any] | None, name: str | None
) -> None:
    first = await execute_with_stages(SCHEMA, query, variables, name)
    cached = await CACHED_EXECUTION.execute(query, variables, name, context())
    assert cached is not None
    assert comparable(cached.data, cached.errors) == first


async def test_new_or_refused_document_is_left_to_strawberry() -> None:
    assert await CACHED_EXECUTION.execute("{ never: __typename }", None, None, context()) is None
    for name in REFUSED_REQUESTS:
        await execute_with_stages(SCHEMA, *REQUESTS[name])
        assert await CACHED_EXECUTION.execute(*REQUESTS[name], context()) is None


@pytest.mark.usefixtures("_no_garbage_collection")
@pytest.mark.parametrize("name", ["include directive", "type name"])
async def test_answered_request_leaves_no_reference_cycle(name: str) -> None:
    await execute_with_stages(SCHEMA, *REQUESTS[name])
    gc.collect()
    executions_before = live_executions()
    for _ in range(3):
        await CACHED_EXECUTION.execute(*REQUESTS[name], context())
    assert live_executions() == executions_before


def live_executions() -> int:
    """Returns the number of contexts and executors of this process that are still alive."""
    return sum(isinstance(each, Context | CompiledExecutor) for each in gc.get_objects())


async def test_schema_with_further_extensions_keeps_its_stages() -> None:
    class FurtherExtension(SchemaExtension):
        pass

    schema = build_schema(limits_extension(DOCUMENTS), FurtherExtension, executor=compiled_executor(DOCUMENTS))
    await execute_with_stages(schema, *REQUESTS["valid query"])
    assert await CachedExecution(schema, DOCUMENTS).execute(*REQUESTS["valid query"], context()) is None
