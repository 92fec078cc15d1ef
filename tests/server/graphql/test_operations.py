"""Queries and mutations run without Strawberry's stages, and give the same results as with the stages."""

import gc
from typing import Any, cast

import pytest
from graphql import GraphQLSchema, print_schema

from resolvers.context import Context
from schema.errors import to_client_error
from schema.root import schema
from server.graphql.compiled import CompiledExecutor
from server.graphql.operations import Operations
from storage.identity.records import User
from storage.identity.roles import Role
from storage.stores import Stores
from tests.execution import run_operation

pytestmark = pytest.mark.anyio

OPERATIONS = Operations(schema)
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
    "subscription": ("subscription { notificationEvents { __typename } }", None, None),
    "one of two operations": (TWO_OPERATIONS, None, "b"),
    "unknown operation name": (TWO_OPERATIONS, None, "c"),
    "missing operation name": (TWO_OPERATIONS, None, None),
    "alias": ("{ callJobs(limit: 1) { jobs: items { id } } }", None, None),
    "incomplete input": ("mutation { postMessage(input: {topicId: 1}) { id } }", None, None),
    "type name": ("{ __typename }", None, None),
}
"""Requests as query, variables and operation name."""

REFUSED_REQUESTS = {
    "unknown field": "GRAPHQL_VALIDATION_FAILED",
    "syntax error": "GRAPHQL_PARSE_FAILED",
    "subscription": "BAD_USER_INPUT",
    "unknown operation name": "BAD_USER_INPUT",
    "missing operation name": "GRAPHQL_VALIDATION_FAILED",
}
"""The error codes of requests that are refused before they are executed."""

REFUSED_VARIABLES = {"missing variable": "BAD_USER_INPUT", "malformed timestamp": "BAD_USER_INPUT"}
"""The error codes of requests whose variables are refused."""


def context() -> Context:
    """Returns the context of a member's request that needs no store."""
    return Context(cast("Stores", None), str, VIEWER, frozenset({Role.MEMBER}))


def comparable(result: Any) -> tuple[Any, Any]:
    """Returns data and formatted errors as clients see them, without the ids of masked errors.

    Strawberry does not explain refused variables, whose errors have no path.
    """
    errors = [to_client_error(each) for each in result.errors or ()]
    for error in errors:
        (error.extensions or {}).pop("requestId", None)
        if error.path is None:
            (error.extensions or {}).clear()
    return result.data, [error.formatted for error in errors]


def test_schema_of_graphql_core_is_the_whole_schema() -> None:
    assert isinstance(OPERATIONS.schema, GraphQLSchema)
    assert print_schema(OPERATIONS.schema).strip().splitlines()[-1] == schema.as_str().strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("query", "variables", "name"),
    [pytest.param(*REQUESTS[key], id=key) for key in REQUESTS if key not in REFUSED_REQUESTS],
)
async def test_results_equal_those_of_strawberry(
    query: str, variables: dict[str, Any] | None, name: str | None
) -> None:
    expected = comparable(await schema.execute(query, variables, context(), None, name))
    for _ in range(2):
        assert comparable(await run_operation(OPERATIONS, context(), query, variables, name)) == expected


@pytest.mark.parametrize("name", REFUSED_REQUESTS | REFUSED_VARIABLES)
async def test_refused_operation_is_not_executed(name: str) -> None:
    result = await run_operation(OPERATIONS, context(), *REQUESTS[name])
    assert result.data is None
    assert [(each.extensions or {})["code"] for each in result.errors or ()] == [
        (REFUSED_REQUESTS | REFUSED_VARIABLES)[name]
    ]


@pytest.mark.usefixtures("_no_garbage_collection")
@pytest.mark.parametrize("name", ["include directive", "type name"])
async def test_answered_request_leaves_no_reference_cycle(name: str) -> None:
    await run_operation(OPERATIONS, context(), *REQUESTS[name])
    gc.collect()
    executions_before = live_executions()
    for _ in range(3):
        await run_operation(OPERATIONS, context(), *REQUESTS[name])
    assert live_executions() == executions_before


def live_executions() -> int:
    """Returns the number of contexts and executors of this process that are still alive."""
    return sum(isinstance(each, Context | CompiledExecutor) for each in gc.get_objects())
