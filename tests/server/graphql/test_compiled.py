"""Compiled execution gives the results of graphql-core: data, errors and paths, for any operation on any data."""

import asyncio
import gc
import importlib.metadata
import inspect
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import orjson
import pytest
from graphql import (
    DocumentNode,
    ExecutionResult,
    FieldNode,
    GraphQLNamedOutputType,
    GraphQLSchema,
    GraphQLUnionType,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
    build_schema,
    execute,
    get_named_type,
    is_leaf_type,
    is_required_argument,
    parse,
    print_ast,
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
from server.graphql.compiled.rows import AttributeGap, BatchGap, ListPlan, ObjectPlan, PlainPlan, Plan, SingleGap
from server.graphql.documents import Documents
from server.graphql.event_execution import EventExecution
from server.graphql.limits_extension import limits_extension
from tests.server.graphql.generated_schemas import SCALARS, World, populate

Path = tuple[str | int, ...]
# graphql-core cancels what it has not begun when a neighbour fails, with or without plans.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

GENERAL = StrawberryGraphQLCoreExecutionContext
SUBSCRIPTIONS = ("topicEvents", "communityEvents", "homeFeedEvents", "notificationEvents", "jobEvents")
CUSTOM = {
    name: st.just(nodes.String(text))
    for name, text in {"Timestamp": "now", "DateTime": "2026-01-01T00:00:00Z", "Cursor": "here"}.items()
}

many: dict[int, Callable[..., Awaitable[Sequence[Any]]]] = {}
CORE: GraphQLSchema = build_product_schema()._schema
populate(CORE, many)


@pytest.fixture(autouse=True, scope="module")
def _what_was_not_begun() -> Iterator[None]:
    """Forgotten in here, where it is expected, and not whenever the collector looks in the tests of another module."""
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolvers for many objects of the random world instead of the product's, wherever there are some."""
    monkeypatch.setattr(server.graphql.compiled.compiler, "resolver_for_many", lambda bound: many.get(id(bound)))


class Varied:
    """Adds what generated operations lack: aliases, type names, directives, fragments, the same field twice."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._fragments: list[str] = []
        self._aliases = 0

    def document(self, text: str, kind: str = "query") -> DocumentNode:
        """The operation with more to it, still valid."""
        (operation,) = parse(text).definitions
        assert isinstance(operation, OperationDefinitionNode)
        body = self._selections(operation.selection_set, get_root(kind))
        names = [name for name in ("yes", "no") if f"${name}" in body + "".join(self._fragments)]
        head = f"({', '.join(f'${name}: Boolean!' for name in names)})" if names else ""
        return parse("\n".join([f"{kind} {head} {body}", *self._fragments]))

    def _selections(self, node: SelectionSetNode, type_: GraphQLNamedOutputType) -> str:
        parts = [self._selection(each, type_) for each in node.selections]
        if self._chance.random() < 0.3:
            parts.insert(self._chance.randrange(len(parts) + 1), "__typename")
        if self._chance.random() < 0.3:
            parts.append(self._again(parts, type_))
        return f"{{ {' '.join(parts)} }}"

    def _again(self, parts: Sequence[str], type_: GraphQLNamedOutputType) -> str:
        chosen = f"{{ {' '.join(self._chance.sample(parts, self._chance.randint(1, len(parts))))} }}"
        condition = self._chance.choice(["", "@include(if: $yes)", "@skip(if: $no)", "@skip(if: $yes)"])
        if self._chance.random() < 0.5:
            return f"... {self._chance.choice(['', f'on {type_.name}'])} {condition} {chosen}"
        name = f"f{len(self._fragments)}"
        self._fragments.append(f"fragment {name} on {type_.name} {chosen}")
        return f"...{name} {condition}"

    def _selection(self, node: SelectionNode, type_: GraphQLNamedOutputType) -> str:
        if isinstance(node, InlineFragmentNode):
            assert node.type_condition
            on = CORE.type_map[node.type_condition.name.value]
            return f"... on {on.name} {self._selections(node.selection_set, on)}"  # type: ignore[arg-type]
        assert isinstance(node, FieldNode)
        return self._field(node, type_)

    def _field(self, node: FieldNode, type_: GraphQLNamedOutputType) -> str:
        name, key = node.name.value, node.alias.value if node.alias else ""
        if not key and self._chance.random() < 0.2:
            self._aliases += 1
            key = f"x{self._aliases}"
        arguments = f"({', '.join(map(print_ast, node.arguments))})" if node.arguments else ""
        condition = self._chance.choice([""] * 8 + ["@include(if: $yes)", "@skip(if: $no)", "@skip(if: $yes)"])
        below = ""
        if node.selection_set:
            field = type_.fields[name]  # type: ignore[union-attr]
            below = self._selections(node.selection_set, get_named_type(field.type))
        return f"{key}{':' if key else ''} {name}{arguments} {condition} {below}"


def get_root(kind: str) -> GraphQLNamedOutputType:
    root = {"query": CORE.query_type, "mutation": CORE.mutation_type, "subscription": CORE.subscription_type}[kind]
    assert root
    return root


async def executed(executor: type[Executor[Any]], document: DocumentNode, world: World) -> ExecutionResult:
    variables = {"yes": world.seed % 3 > 0, "no": world.seed % 2 > 0}
    result = execute(CORE, document, context_value=world, variable_values=variables, executor_class=executor)
    answer = await result if isinstance(result, Awaitable) else result
    assert isinstance(answer, ExecutionResult)
    return answer


def errors_by_position(answer: ExecutionResult) -> dict[Path, set[str]]:
    """Returns the errors by the position that each made null.

    A field's own error is compared whole. Of several errors that nulled one position above them, the first one counts,
    and which one that is depends on timing: only the position is compared.
    """
    errors: defaultdict[Path, set[str]] = defaultdict(set)
    for error in answer.errors or ():
        path = tuple(error.path or ())
        place = nulled(answer.data, path)
        own = place == path
        errors[place].add(f"{error.message.split(' at 0x')[0]} {error.locations}" if own else "something below")
    return errors


def nulled(data: Any, path: Path) -> Path:
    """The part of the path that the data still have."""
    for length, key in enumerate(path):
        if data is None:
            return path[:length]
        data = data[key]
    return path


seeds = st.integers(0, 2**32)
faults = st.sampled_from([0, 0, 1, 5, 20])


def assert_same(document: DocumentNode, world: World) -> None:
    general, compiled = asyncio.run(both(document, world))
    assert compiled.data == general.data
    assert orjson.dumps(compiled.data) == orjson.dumps(general.data), "in the same order"
    assert errors_by_position(compiled) == errors_by_position(general)


async def both(document: DocumentNode, world: World) -> list[ExecutionResult]:
    answers = [await executed(executor, document, world) for executor in (GENERAL, CompiledExecutor)]
    # What lost its place in the answer is still waited for.
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(tasks)
    return answers


def assert_equal(text: str, seed: int, per_cent: int) -> None:
    document = Varied(seed).document(text)
    assert validate(CORE, document) == []
    assert_same(document, World(CORE, seed, per_cent))


QUERIES = operations(print_schema(CORE), custom_scalars=CUSTOM)


@settings(max_examples=100)
@given(QUERIES, seeds, faults)
def test_any_query_on_any_data_gives_the_same(text: str, seed: int, per_cent: int) -> None:
    assert_equal(text, seed, per_cent)


@settings(max_examples=100)
@given(seeds)
def test_errors_in_list_items_have_their_paths(seed: int) -> None:
    page = 'messages(latest: "now") { hasOlder items { id } }'
    topics = f'{{ communityTopics(communityId: "1", latest: "now") {{ items {{ id {page} }} }} }}'
    assert_same(parse(topics), World(CORE, seed, 10))


@pytest.mark.parametrize("number", [2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**40])
def test_int_outside_32_bits_is_the_same_error(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALARS, "Int", lambda _chance: number)
    document = parse("{ addressBook(addresses: []) { address success softBounce } }")
    for seed in range(10):
        assert_same(document, World(CORE, seed, 0))
    results = [asyncio.run(executed(GENERAL, document, World(CORE, seed, 0))) for seed in range(10)]
    assert any(result.errors for result in results) == (not -(2**31) <= number < 2**31)


@pytest.mark.soak
@settings(max_examples=5_000)
@given(QUERIES, seeds, faults)
def test_thousands_of_queries_give_the_same(text: str, seed: int, per_cent: int) -> None:
    assert_equal(text, seed, per_cent)


def everything_on(type_: GraphQLNamedOutputType, chance: random.Random, depth: int = 3) -> str:
    """Some of the type's fields, and of theirs."""
    if isinstance(type_, GraphQLUnionType):
        return " ".join(["__typename", *(f"... on {each} {{ {everything_on(each, chance)} }}" for each in type_.types)])
    parts = ["__typename"]
    for name, field in type_.fields.items():  # type: ignore[union-attr]
        inner = get_named_type(field.type)
        if any(is_required_argument(each) for each in field.args.values()) or chance.random() < 0.3:
            continue
        if is_leaf_type(inner):
            parts.append(name)
        elif depth:
            parts.append(f"{name} {{ {everything_on(inner, chance, depth - 1)} }}")
    return " ".join(parts)


async def shown(executor: type[Executor[Any]], document: DocumentNode, world: World, events: Sequence[Any]) -> Any:
    """Returns each event's payload as JSON."""
    built = executor.build(CORE, document, context_value=world)
    assert isinstance(built, Executor)
    execution = EventExecution(built)
    return [await execution.run(event) for event in events]


@pytest.mark.parametrize("root", SUBSCRIPTIONS)
@settings(max_examples=15)
@given(seed=seeds)
def test_any_event_gives_the_same_payload(root: str, seed: int) -> None:
    assert CORE.subscription_type
    field = CORE.subscription_type.fields[root]
    events = get_named_type(field.type)
    chance = random.Random(seed)
    body = everything_on(events, chance)
    arguments = ", ".join(f'{name}: "1"' for name, each in field.args.items() if is_required_argument(each))
    document = parse(f"subscription {{ {root} {f'({arguments})' if arguments else ''} {{ {body} }} }}")
    world = World(CORE, seed, 0)
    things = [world.thing(each, f"event {each}") for each in CORE.get_possible_types(events)]
    general, compiled = (asyncio.run(shown(each, document, world, things)) for each in (GENERAL, CompiledExecutor))
    assert compiled == general
    assert all(b'"data"' in payload for payload in compiled)


def plan_for(query: str, **variables: Any) -> Plan | None:
    """Returns the plan of the query's one list or object."""
    made: list[Plan | None] = []

    class Watched(CompiledExecutor):
        def _complete(self, plan: Plan | None, *args: Any) -> Any:
            made.append(plan)
            return super()._complete(plan, *args)

    result = execute(
        CORE, parse(query), context_value=World(CORE, 1, 0), variable_values=variables, executor_class=Watched
    )

    async def settle() -> None:
        if isinstance(result, Awaitable):
            await result

    asyncio.run(settle())
    return made[0]


def test_a_list_of_plain_attributes_is_one_function() -> None:
    query = """{ addressBook(addresses: []) { address blocked verdict { rule } success softBounce hardBounce
      lastEventAt domain { domain verdict { detail } } } }"""
    assert isinstance(plan_for(query), PlainPlan)


def test_resolvers_for_many_take_a_whole_page() -> None:
    query = '{ messages(topicId: "1", latest: "now") { items { id text author { id handle } reactions { emoji } } } }'
    plan = plan_for(query)
    assert isinstance(plan, ObjectPlan)
    (items,) = plan.gaps
    assert isinstance(items, AttributeGap)
    assert isinstance(items.plan, ListPlan)
    assert isinstance(items.plan.items, ObjectPlan)
    assert [type(gap) for gap in items.plan.items.gaps] == [BatchGap, BatchGap]


def test_a_field_with_arguments_is_left_to_the_graphql_core() -> None:
    plan = plan_for('{ message(id: "1") { reactions { emoji users(limit: 3) { id } } } }')
    assert isinstance(plan, ObjectPlan)
    (reactions,) = plan.gaps
    assert isinstance(reactions, BatchGap)
    assert isinstance(reactions.plan, ListPlan)
    assert isinstance(reactions.plan.items, ObjectPlan)
    assert [type(gap) for gap in reactions.plan.items.gaps] == [SingleGap]


ECHO = build_schema("""
  input Names { names: [String!] } input Numbers { numbers: [Int!]! }
  type Query { names(of: [String!]!): [String!]!  within(names: Names): [String] sum(of: [Int!]!): Int }
""")
assert ECHO.query_type
ECHO.query_type.fields["names"].resolve = lambda _root, _info, of: of
ECHO.query_type.fields["within"].resolve = lambda _root, _info, names: names["names"]
ECHO.query_type.fields["sum"].resolve = lambda _root, _info, of: sum(of)
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
def test_long_lists_in_variables_equal_coerced_ones(query: str, value: Any) -> None:
    general, compiled = (
        execute(ECHO, parse(query), variable_values={"v": value}, executor_class=each)
        for each in (GENERAL, CompiledExecutor)
    )
    assert isinstance(general, ExecutionResult)
    assert isinstance(compiled, ExecutionResult)
    assert compiled.data == general.data
    assert [error.formatted for error in compiled.errors or ()] == [error.formatted for error in general.errors or ()]


QUERY = "query ($no: Boolean!) { addressBook(addresses: []) { address success @skip(if: $no) } }"


def test_plans_live_with_document_and_per_condition() -> None:
    documents = Documents()
    executor = compiled_executor(documents)
    schema = build_product_schema(limits_extension(documents), executor=executor)
    populate(schema._schema, {})
    world = World(schema._schema, 3, 0)
    answers = [asyncio.run(schema.execute(QUERY, {"no": no}, context_value=world)) for no in (True, False, True, False)]
    assert [answer.errors for answer in answers] == [None] * 4
    assert [set(answer.data["addressBook"][0]) for answer in answers if answer.data] == [
        {"address"},
        {"address", "success"},
    ] * 2
    prepared = documents.find(QUERY)
    assert prepared is not None
    assert executor.compiler_cache is not None
    assert len(executor.compiler_cache._compilers[prepared]) == 2


def test_the_hook_is_where_it_is_expected() -> None:
    """When this fails, Strawberry or graphql-core has moved: see whether what CompiledExecutor replaces is still
    called for every list and object, with these arguments, and what Strawberry's own executor does besides."""
    assert importlib.metadata.version("graphql-core").startswith("3.3.")
    completing = ["self", "return_type", "field_details_list", "info", "path", "result", "position_context"]
    for step in (Executor.complete_list_value, Executor.complete_object_value):
        assert [*inspect.signature(step).parameters] == completing
    assert [*inspect.signature(Executor.execute_field).parameters] == [
        *("self", "parent_type", "source", "field_details_list", "path", "position_context")
    ]
    own = [name for name in vars(GENERAL) if not name.startswith("__") or name == "__init__"]
    assert sorted(own) == ["__init__", "build_resolve_info"]
    schema = build_product_schema(executor=CompiledExecutor)
    assert schema.execution_context_class is CompiledExecutor
