"""Compiled execution returns the same data, errors and paths as graphql-core's executor, for any operation and data."""

import asyncio
import gc
import importlib.metadata
import inspect
import random
from collections import defaultdict
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any

import orjson
import pytest
from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLNamedOutputType,
    GraphQLSchema,
    GraphQLUnionType,
    build_schema,
    execute,
    get_named_type,
    is_leaf_type,
    is_required_argument,
    parse,
    print_schema,
    validate,
)
from graphql.execution import Executor
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis_graphql import nodes
from hypothesis_graphql import queries as operations
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext

import server.graphql.compiled.compiler
from schema.root import build_schema as build_product_schema
from server.graphql.compiled import CompiledExecutor, compiled_executor
from server.graphql.compiled.rows import (
    CompiledPlan,
    CompletionPlan,
    ListPlan,
    ObjectPlan,
    OpenBatchField,
    OpenSingleField,
)
from server.graphql.documents import DocumentCache
from server.graphql.event_execution import EventExecution
from tests.server.graphql.generated_data import SCALARS, BatchResolvers, GeneratedData, install_resolvers
from tests.server.graphql.operation_enricher import OperationEnricher

FieldPath = tuple[str | int, ...]
# When a field fails, graphql-core drops coroutines of its siblings that have not started. Both executors do that.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CORE_EXECUTOR = StrawberryGraphQLCoreExecutionContext
SUBSCRIPTIONS = ("topicEvents", "communityEvents", "homeFeedEvents", "notificationEvents", "jobEvents")
CUSTOM_SCALARS = {
    name: st.just(nodes.String(text))
    for name, text in {"Timestamp": "now", "DateTime": "2026-01-01T00:00:00Z", "Cursor": "here"}.items()
}

batch_resolvers: BatchResolvers = {}
GRAPHQL_CORE_SCHEMA: GraphQLSchema = build_product_schema()._schema
install_resolvers(GRAPHQL_CORE_SCHEMA, batch_resolvers)


@pytest.fixture(autouse=True, scope="module")
def _collect_coroutines() -> Iterator[None]:
    """Frees coroutines that were never awaited, while warnings about them are still ignored."""
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def _generated_batch_resolvers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the product's batch resolvers by generated resolvers."""
    monkeypatch.setattr(
        server.graphql.compiled.compiler, "batch_resolver_of", lambda bound: batch_resolvers.get(id(bound))
    )


async def execute_with(
    executor: type[Executor[Any]], document: DocumentNode, data: GeneratedData, **more_variables: Any
) -> ExecutionResult:
    variables = {"yes": data.seed % 3 > 0, "no": data.seed % 2 > 0, **more_variables}
    result = execute(
        GRAPHQL_CORE_SCHEMA, document, context_value=data, variable_values=variables, executor_class=executor
    )
    execution = await result if isinstance(result, Awaitable) else result
    assert isinstance(execution, ExecutionResult)
    return execution


def errors_by_position(result: ExecutionResult) -> dict[FieldPath, set[str]]:
    """Returns the errors by the position in the data that each error made null.

    An error at the position itself has its message and locations. If several errors occur below a position,
    graphql-core reports the earliest error, which varies. Such an error is therefore only marked as "error below".
    """
    errors: defaultdict[FieldPath, set[str]] = defaultdict(set)
    for error in result.errors or ():
        path = tuple(error.path or ())
        position = null_position(result.data, path)
        is_own = position == path
        errors[position].add(f"{error.message.split(' at 0x')[0]} {error.locations}" if is_own else "error below")
    return errors


def null_position(data: Any, path: FieldPath) -> FieldPath:
    """Returns the first position on the path that is null in the data."""
    for length, key in enumerate(path):
        if data is None:
            return path[:length]
        data = data[key]
    return path


seeds = st.integers(0, 2**32)
faults = st.sampled_from([0, 0, 1, 5, 20])


def assert_equal_results(document: DocumentNode, data: GeneratedData) -> None:
    """Asserts that compiled execution gives the same data and errors as graphql-core's executor."""
    expected, compiled = asyncio.run(execute_with_both(document, data))
    assert compiled.data == expected.data
    assert orjson.dumps(compiled.data) == orjson.dumps(expected.data), "The order of the fields differs."
    assert errors_by_position(compiled) == errors_by_position(expected)


async def execute_with_both(document: DocumentNode, data: GeneratedData) -> list[ExecutionResult]:
    """Executes the document with graphql-core's executor and with the compiled one."""
    results = [await execute_with(executor, document, data) for executor in (CORE_EXECUTOR, CompiledExecutor)]
    # Tasks of fields whose parent became null are still running.
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(tasks)
    return results


def assert_equal_results_when_enriched(text: str, seed: int, fault_percentage: int) -> None:
    """Asserts equal results for the operation with additions, on data with this percentage of faults."""
    document = OperationEnricher(GRAPHQL_CORE_SCHEMA, seed).enrich(text)
    assert validate(GRAPHQL_CORE_SCHEMA, document) == []
    assert_equal_results(document, GeneratedData(GRAPHQL_CORE_SCHEMA, seed, fault_percentage))


# Deferred, because it takes a second, and modules are also imported by processes that don't run their tests.
QUERIES = st.deferred(lambda: operations(print_schema(GRAPHQL_CORE_SCHEMA), custom_scalars=CUSTOM_SCALARS))


@settings(max_examples=100)
@given(QUERIES, seeds, faults)
def test_any_query_on_any_data_has_equal_results(text: str, seed: int, fault_percentage: int) -> None:
    assert_equal_results_when_enriched(text, seed, fault_percentage)


@settings(max_examples=100)
@given(seeds)
def test_errors_in_list_items_have_their_paths(seed: int) -> None:
    page = 'messages(latest: "now") { hasOlder items { id } }'
    topics = f'{{ communityTopics(communityId: "1", latest: "now") {{ items {{ id {page} }} }} }}'
    assert_equal_results(parse(topics), GeneratedData(GRAPHQL_CORE_SCHEMA, seed, 10))


@pytest.mark.parametrize("number", [2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**40])
def test_int_outside_32_bits_has_equal_errors(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALARS, "Int", lambda _rng: number)
    document = parse("{ addressBook(addresses: []) { address success softBounce } }")
    for seed in range(10):
        assert_equal_results(document, GeneratedData(GRAPHQL_CORE_SCHEMA, seed, 0))
    results = [
        asyncio.run(execute_with(CORE_EXECUTOR, document, GeneratedData(GRAPHQL_CORE_SCHEMA, seed, 0)))
        for seed in range(10)
    ]
    assert any(result.errors for result in results) == (not -(2**31) <= number < 2**31)


@pytest.mark.soak
@settings(max_examples=5_000)
@given(QUERIES, seeds, faults)
def test_thousands_of_queries_have_equal_results(text: str, seed: int, fault_percentage: int) -> None:
    assert_equal_results_when_enriched(text, seed, fault_percentage)


def random_selection(type_: GraphQLNamedOutputType, rng: random.Random, depth: int = 3) -> str:
    """Returns a nested selection of most of the type's fields."""
    if isinstance(type_, GraphQLUnionType):
        return " ".join(["__typename", *(f"... on {each} {{ {random_selection(each, rng)} }}" for each in type_.types)])
    parts = ["__typename"]
    for name, field in type_.fields.items():  # type: ignore[union-attr]
        inner = get_named_type(field.type)
        if any(is_required_argument(each) for each in field.args.values()) or rng.random() < 0.3:
            continue
        if is_leaf_type(inner):
            parts.append(name)
        elif depth:
            parts.append(f"{name} {{ {random_selection(inner, rng, depth - 1)} }}")
    return " ".join(parts)


async def event_payloads(
    executor: type[Executor[Any]], document: DocumentNode, data: GeneratedData, events: Sequence[Any]
) -> list[bytes]:
    """Returns each event's payload as JSON."""
    subscription_executor = executor.build(GRAPHQL_CORE_SCHEMA, document, context_value=data)
    assert isinstance(subscription_executor, Executor)
    execution = EventExecution(subscription_executor)
    return [await execution.run(event) for event in events]


@pytest.mark.parametrize("root", SUBSCRIPTIONS)
@settings(max_examples=8)
@given(seed=seeds)
def test_any_event_has_equal_payloads(root: str, seed: int) -> None:
    assert GRAPHQL_CORE_SCHEMA.subscription_type
    field = GRAPHQL_CORE_SCHEMA.subscription_type.fields[root]
    event_type = get_named_type(field.type)
    selection = random_selection(event_type, random.Random(seed))
    arguments = ", ".join(f'{name}: "1"' for name, each in field.args.items() if is_required_argument(each))
    document = parse(f"subscription {{ {root} {f'({arguments})' if arguments else ''} {{ {selection} }} }}")
    data = GeneratedData(GRAPHQL_CORE_SCHEMA, seed, 0)
    events = [data.record(each, f"event {each}") for each in GRAPHQL_CORE_SCHEMA.get_possible_types(event_type)]
    expected, compiled = (
        asyncio.run(event_payloads(each, document, data, events)) for each in (CORE_EXECUTOR, CompiledExecutor)
    )
    assert compiled == expected
    assert all(b'"data"' in payload for payload in compiled)


def plan_for(query: str, **variables: Any) -> CompletionPlan | None:
    """Returns the plan of the query's first list."""
    plans: list[CompletionPlan | None] = []

    class RecordingExecutor(CompiledExecutor):
        def _plan(self, *args: Any) -> CompletionPlan | None:
            plans.append(super()._plan(*args))
            return plans[-1]

    result = execute(
        GRAPHQL_CORE_SCHEMA,
        parse(query),
        context_value=GeneratedData(GRAPHQL_CORE_SCHEMA, 1, 0),
        variable_values=variables,
        executor_class=RecordingExecutor,
    )

    async def await_result() -> None:
        if isinstance(result, Awaitable):
            await result

    asyncio.run(await_result())
    return plans[0]


def test_list_of_plain_attributes_is_one_function() -> None:
    query = """{ addressBook(addresses: []) { address blocked verdict { rule } success softBounce hardBounce
      lastEventAt domain { domain verdict { detail } } } }"""
    assert isinstance(plan_for(query), CompiledPlan)


def test_batch_resolvers_take_a_whole_page() -> None:
    query = '{ messages(topicId: "1", latest: "now") { items { id text author { id handle } reactions { emoji } } } }'
    plan = plan_for(query)
    assert isinstance(plan, ListPlan)
    assert isinstance(plan.items, ObjectPlan)
    assert [type(open_field) for open_field in plan.items.open_fields] == [OpenBatchField, OpenBatchField]


def test_field_without_batch_resolver_is_left_to_graphql_core() -> None:
    plan = plan_for('{ community(id: "1") { topics(limit: 3) { id messages(latest: "now", limit: 3) { hasOlder } } } }')
    assert isinstance(plan, ListPlan)
    assert isinstance(plan.items, ObjectPlan)
    assert [type(open_field) for open_field in plan.items.open_fields] == [OpenSingleField]


ECHO_SCHEMA = build_schema("""
  input Names { names: [String!] } input Numbers { numbers: [Int!]! }
  type Query { names(of: [String!]!): [String!]!  within(names: Names): [String] sum(of: [Int!]!): Int }
""")
assert ECHO_SCHEMA.query_type
ECHO_SCHEMA.query_type.fields["names"].resolve = lambda _root, _info, of: of
ECHO_SCHEMA.query_type.fields["within"].resolve = lambda _root, _info, names: names["names"]
ECHO_SCHEMA.query_type.fields["sum"].resolve = lambda _root, _info, of: sum(of)
MANY_NAMES = [f"name {number}" for number in range(1000)]


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("query ($v: [String!]!) { names(of: $v) }", MANY_NAMES),
        ("query ($v: [String!]!) { names(of: $v) }", [*MANY_NAMES, None]),
        ("query ($v: [String!]!) { names(of: $v) }", [*MANY_NAMES, 3]),
        ("query ($v: [String!]!) { names(of: $v) }", []),
        ("query ($v: [String!]!) { names(of: $v) }", "one"),
        ("query ($v: [String!]!) { within(names: {names: $v}) }", MANY_NAMES),
        ("query ($v: Names) { within(names: $v) }", {"names": MANY_NAMES}),
        ("query ($v: [Int!]!) { sum(of: $v) }", MANY_NAMES),
        ("query ($v: [Int!]!) { sum(of: $v) }", list(range(1000))),
        ("query ($v: String!) { names(of: [$v]) }", MANY_NAMES),
        ('query ($v: [String!]!) { names(of: ["a"]) }', MANY_NAMES),
        ('{ names(of: ["a"]) }', MANY_NAMES),
    ],
)
def test_long_lists_in_variables_equal_coerced_lists(query: str, value: Any) -> None:
    expected, compiled = (
        execute(ECHO_SCHEMA, parse(query), variable_values={"v": value}, executor_class=each)
        for each in (CORE_EXECUTOR, CompiledExecutor)
    )
    assert isinstance(expected, ExecutionResult)
    assert isinstance(compiled, ExecutionResult)
    assert compiled.data == expected.data
    # graphql-core does not explain refused variables.
    assert [str(error) for error in compiled.errors or ()] == [str(error) for error in expected.errors or ()]
    assert all((error.extensions or {})["code"] == "BAD_USER_INPUT" for error in compiled.errors or ())


QUERY = "query ($no: Boolean!) { addressBook(addresses: []) { address success @skip(if: $no) } }"


def test_plans_are_cached_by_document_and_condition() -> None:
    documents = DocumentCache(GRAPHQL_CORE_SCHEMA)
    executor, prepared = compiled_executor(documents), documents.prepare(QUERY)
    data = GeneratedData(GRAPHQL_CORE_SCHEMA, 3, 0)
    results = [asyncio.run(execute_with(executor, prepared.document, data, no=no)) for no in (True, False, True, False)]
    assert [result.errors for result in results] == [None] * 4
    assert [set(result.data["addressBook"][0]) for result in results if result.data] == [
        {"address"},
        {"address", "success"},
    ] * 2
    assert executor.compiler_cache is not None
    assert len(executor.compiler_cache._compilers[prepared]) == 2


def test_replaced_methods_of_graphql_core_are_unchanged() -> None:
    """When this fails, an update of Strawberry or graphql-core has changed methods that CompiledExecutor replaces.

    Check that graphql-core still calls these methods for every list and field with these arguments, and which methods
    Strawberry's own executor overrides.
    """
    assert importlib.metadata.version("graphql-core").startswith("3.3.")
    parameters = ["self", "return_type", "field_details_list", "info", "path", "result", "position_context"]
    assert [*inspect.signature(Executor.complete_list_value).parameters] == parameters
    assert [*inspect.signature(Executor.execute_field).parameters] == [
        *("self", "parent_type", "source", "field_details_list", "path", "position_context")
    ]
    overridden = [name for name in vars(CORE_EXECUTOR) if not name.startswith("__") or name == "__init__"]
    assert sorted(overridden) == ["__init__", "build_resolve_info"]
