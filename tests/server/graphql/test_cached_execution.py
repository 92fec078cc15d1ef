"""Documents that were executed before, past Strawberry's stages: the same answers as with them."""

import gc
from typing import Any, cast

import pytest
import strawberry
from strawberry.extensions import SchemaExtension

from resolvers.context import Context
from schema.root import build_schema
from server.graphql.cached_execution import CachedExecution
from server.graphql.compiled import CompiledExecutor, compiled_executor
from server.graphql.documents import Documents
from server.graphql.http import OPERATIONS
from server.graphql.limits_extension import limits_extension
from storage.identity.records import User
from storage.identity.roles import Role
from storage.stores import Stores

pytestmark = pytest.mark.anyio

DOCUMENTS = Documents()
SCHEMA = build_schema(limits_extension(DOCUMENTS), executor=compiled_executor(DOCUMENTS))
CACHED = CachedExecution(SCHEMA, DOCUMENTS)
VIEWER = User("ann", "ann", "Ann", "hilltop", (Role.MEMBER,), 0, 0)
LATEST = "query($latest: Timestamp) { messages(topicId: 1, latest: $latest) { hasNewer } }"
TWO = "query a { stamps { id } } query b { viewer { id } }"

ASKED: list[tuple[str, dict[str, Any] | None, str | None]] = [
    ("{ stamps { id name } viewer { id handle } }", None, None),
    ("query($with: Boolean!) { stamps { id name @include(if: $with) } }", {"with": True}, None),
    ("query($with: Boolean!) { stamps { id name @include(if: $with) } }", {}, None),
    (LATEST, {"latest": "yesterday"}, None),
    (LATEST, {}, None),
    ("{ messages(topicId: 1, limit: 1000) { hasNewer } }", None, None),
    ("{ emails { id } }", None, None),
    ("{ stamps { id ", None, None),
    ("subscription { notificationEvents { cursor } }", None, None),
    (TWO, None, "b"),
    (TWO, None, "c"),
    (TWO, None, None),
    ("{ callJobs(limit: 1) { jobs: items { id } } }", None, None),
    ("mutation { postMessage(input: {topicId: 1}) { id } }", None, None),
    ("{ __typename }", None, None),
]


def context() -> Context:
    """The request of a user that reads nothing stored."""
    return Context(cast("Stores", None), str, VIEWER, frozenset({Role.MEMBER}))


async def staged(
    schema: strawberry.Schema, query: str, variables: dict[str, Any] | None, name: str | None
) -> tuple[Any, list[Any] | None]:
    """By Strawberry: data, and errors without the ids under which they were logged. What it raises is no answer."""
    try:
        result = await schema.execute(query, variables, context(), None, name, OPERATIONS)
    except Exception as error:
        return type(error), None
    return seen(result.data, result.errors)


def seen(data: Any, errors: list[Any] | None) -> tuple[Any, list[Any] | None]:
    for error in errors or []:
        (error.extensions or {}).pop("requestId", None)
    return data, errors and [error.formatted for error in errors]


@pytest.mark.parametrize(("query", "variables", "name"), ASKED)
async def test_the_second_answer_is_the_first_one(
    query: str, variables: dict[str, Any] | None, name: str | None
) -> None:
    first = await staged(SCHEMA, query, variables, name)
    known = await CACHED.execute(query, variables, name, context())
    assert known is None or seen(known.data, known.errors) == first


async def test_valid_documents_are_executed_without_strawberrys_stages() -> None:
    for query, variables, name in (ASKED[0], ASKED[1], ASKED[4], ASKED[9], ASKED[14]):
        await staged(SCHEMA, query, variables, name)
        assert await CACHED.execute(query, variables, name, context()) is not None


async def test_new_or_refused_document_is_left_to_strawberry() -> None:
    assert await CACHED.execute("{ never: __typename }", None, None, context()) is None
    for query, variables, name in (ASKED[6], ASKED[7], ASKED[8], ASKED[10], ASKED[11]):
        await staged(SCHEMA, query, variables, name)
        assert await CACHED.execute(query, variables, name, context()) is None


@pytest.mark.usefixtures("_no_garbage_collection")
@pytest.mark.parametrize("asked", [ASKED[1], ASKED[14]])
async def test_answered_request_leaves_no_reference_cycle(
    asked: tuple[str, dict[str, Any] | None, str | None],
) -> None:
    await staged(SCHEMA, *asked)
    gc.collect()
    before = executions()
    for _ in range(3):
        await CACHED.execute(*asked, context())
    assert executions() == before


def executions() -> int:
    """Returns how many objects of this process are still alive."""
    return sum(isinstance(each, Context | CompiledExecutor) for each in gc.get_objects())


async def test_a_schema_with_further_extensions_keeps_its_stages() -> None:
    class More(SchemaExtension):
        pass

    schema = build_schema(limits_extension(DOCUMENTS), More, executor=compiled_executor(DOCUMENTS))
    await staged(schema, *ASKED[0])
    assert await CachedExecution(schema, DOCUMENTS).execute(*ASKED[0], context()) is None
