"""The cost of an operation: sizes of lists, merged fields, and documents built to distort or delay the calculation."""

import time
from typing import Any

import pytest
from graphql import (
    DocumentNode,
    GraphQLArgument,
    GraphQLField,
    GraphQLID,
    GraphQLInt,
    GraphQLList,
    GraphQLObjectType,
    GraphQLSchema,
    OperationDefinitionNode,
    build_schema,
    get_introspection_query,
    parse,
    validate,
)
from graphql.type.definition import GraphQLDefaultInput

from schema.root import schema as product_schema
from server.graphql.cost import Cost, measure_cost, size_of

SCHEMA = build_schema("""
  type Query {
    topic(id: ID!): Topic
    messages(topicId: ID!, latest: String, limit: Int! = 50): MessageTimeline!
    users(query: String!, limit: Int! = 10): [User!]!
    unlimited: [User!]!
    addressBook(addresses: [String!]!): [Address!]!
    filtered(states: [String!]): [User!]!
    search: [Found!]!
    pairs(a: [String!]!, b: [String!]!): [Address!]!
    unused: Unused
    mixed: [Mixed!]!
  }
  union Mixed = User | Group
  interface Social { friends(limit: Int! = 20): [User!]! }
  type Group implements Social { friends(limit: Int! = 20): [User!]! }
  interface Unused { id: ID! }
  type Subscription { topicEvents(topicId: ID!): TopicEvent! }
  interface Named { name: String! }
  union Found = User | Topic
  union TopicEvent = Ready | Posted | Edited
  type Ready { cursor: ID! }
  type Posted { message: Message! }
  type Edited { message: Message! }
  type Topic implements Named {
    id: ID! name: String! author: User! guests: [User!]! messages(limit: Int! = 50): MessageTimeline
  }
  type MessageTimeline { items: [Message!]! hasOlder: Boolean! }
  type Message { id: ID! text: String! author: User! stamp: Stamp reactions: [Reaction!]! tags: [String!]! }
  type Stamp { id: ID! name: String! }
  type Reaction { emoji: String! count: Int! users(limit: Int! = 10): [User!]! }
  type User implements Named { id: ID! name: String! friends(limit: Int! = 20): [User!]! }
  type Address { address: String! domain: Domain verdict: Verdict! }
  type Domain { id: ID! verdict: Verdict! }
  type Verdict { rule: String! detail: String! }
""")


def operation(document: DocumentNode) -> OperationDefinitionNode:
    return next(node for node in document.definitions if isinstance(node, OperationDefinitionNode))


def measure(query: str, **variables: Any) -> Cost:
    """Returns the cost of a valid query, and the variables that it depends on."""
    document = parse(query)
    assert validate(SCHEMA, document) == []
    sizes = {name: size_of(value) for name, value in variables.items()}
    return measure_cost(SCHEMA, document, operation(document), sizes)


def cost(query: str, **variables: Any) -> int | None:
    return measure(query, **variables).total


def test_object_costs_one_and_scalar_nothing() -> None:
    assert cost('{ topic(id: "1") { id name __typename author { id } } }') == 2


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('{ users(query: "") { id } }', 10),
        ('{ users(query: "", limit: 7) { id } }', 7),
        ("{ unlimited { id } }", 10),
        ('{ users(query: "", limit: 7) { friends { id } } }', 7 * 21),
        ('{ addressBook(addresses: ["a", "b", "c"]) { address } }', 3),
        ('{ filtered(states: ["a"]) { id } }', 10),
        ('{ messages(topicId: "1", limit: 30) { hasOlder } }', 1),
        ('{ messages(topicId: "1", limit: 30) { items { id tags } } }', 31),
        ('{ messages(topicId: "1") { items { id reactions { emoji } } } }', 1 + 50 * 11),
        ('{ topic(id: "1") { messages(limit: 3) { items { author { id } } } } }', 1 + 1 + 3 * 2),
    ],
)
def test_list_costs_its_size_times_one_of_its_objects(query: str, expected: int) -> None:
    assert cost(query) == expected


def test_full_page_of_999_messages_is_within_cost_limit() -> None:
    reactions = "reactions { emoji count users { id name } }"
    fields = f"items {{ id text author {{ id name }} stamp {{ id name }} {reactions} }} hasOlder"
    assert cost(f'{{ messages(topicId: "1", latest: "now", limit: 999) {{ {fields} }} }}') == 1 + 999 * 113


def test_full_address_book_of_1000_is_within_cost_limit() -> None:
    fields = "address domain { id verdict { rule detail } } verdict { rule detail }"
    query = f"query ($a: [String!]!) {{ addressBook(addresses: $a) {{ {fields} }} }}"
    assert measure(query, a=["x"] * 1000) == Cost(4000, frozenset({"a"}))


QUERY_WITH_LIMIT = 'query ($n: Int! = 4) { users(query: "", limit: $n) { id } }'


@pytest.mark.parametrize(("variables", "expected"), [({}, 4), ({"n": 9}, 9), ({"n": 9.0}, 9), ({"n": 900}, 900)])
def test_list_size_is_the_variable_or_its_default(variables: dict[str, Any], expected: int) -> None:
    assert cost(QUERY_WITH_LIMIT, **variables) == expected


@pytest.mark.parametrize("value", [-5, 0, "9", True, None, [], {}, 2.5, float("inf"), float("nan")])
def test_no_variable_value_makes_cost_zero_or_negative(value: object) -> None:
    assert (cost(QUERY_WITH_LIMIT, n=value) or 0) >= 1
    assert (cost("query ($a: [String!]!) { addressBook(addresses: $a) { address } }", a=value) or 0) >= 1


def test_cost_names_only_variables_that_size_a_list() -> None:
    query = "query ($t: ID!, $q: String!, $n: Int!) { topic(id: $t) { id } users(query: $q, limit: $n) { id } }"
    assert measure(query, t="1", q="x", n=2) == Cost(1 + 2, frozenset({"n"}))


def test_missing_limit_costs_the_argument_default() -> None:
    assert cost('query ($n: Int!) { messages(topicId: "1", limit: $n) { items { id } } }') == 51


def test_literal_of_thousands_of_digits_has_large_cost() -> None:
    document = parse(f'{{ users(query: "", limit: {"9" * 6000}) {{ id }} }}')
    assert (measure_cost(SCHEMA, document, operation(document), {}).total or 0) > 10**9


def test_longest_required_list_counts() -> None:
    query = "query ($a: [String!]!, $b: [String!]!) { pairs(a: $a, b: $b) { address } }"
    assert [cost(query, a=a, b=["y"] * 3) for a in (["x"] * 5, ["x"], "x")] == [5, 3, 3]


def test_interface_without_types_costs_one() -> None:
    assert cost("{ unused { id } }") == 1


def test_merged_fields_cost_once() -> None:
    fragments = "fragment A on Topic { author { id } ...B } fragment B on Topic { author { id name } ... { name } }"
    assert cost('{ topic(id: "1") { ...A ...B author { friends(limit: 5) { id } } } }' + fragments) == 1 + 1 + 5


def test_aliases_cost_once_each() -> None:
    assert cost('{ topic(id: "1") { a: author { id } b: author { id } } }') == 3


def test_union_costs_its_most_expensive_type() -> None:
    events = "... on Posted { message { author { id } } } ... on Edited { message { id } } ... on Ready { cursor }"
    assert cost(f'subscription {{ topicEvents(topicId: "1") {{ {events} }} }}') == 3
    assert cost("{ search { ... on Named { name ... on User { friends(limit: 9) { id } } } } }") == 10 * 10


def test_fragment_on_interface_costs_only_its_types() -> None:
    fragments = "... on User { few: friends(limit: 5) { id } } ... on Social { friends(limit: 90) { id } }"
    assert cost(f"{{ mixed {{ {fragments} }} }}") == 10 * 91


@pytest.mark.parametrize(("fields", "total"), [(10_000, 0), (10_001, None)])
def test_cost_is_measured_in_at_most_10_000_steps(fields: int, total: int | None) -> None:
    document = parse(f"{{ {'__typename ' * fields} }}")
    assert measure_cost(SCHEMA, document, operation(document), {}).total == total


@pytest.mark.parametrize("order", [1, -1])
def test_same_key_on_several_types_costs_most_expensive(order: int) -> None:
    fragments = ["... on User { x: friends { id } }", "... on Topic { x: guests { id } }"][::order]
    assert cost(f"{{ search {{ {' '.join(fragments)} }} }}") == 10 * 21


def test_standard_introspection_is_within_cost_limit() -> None:
    total = cost(get_introspection_query())
    assert total is not None
    assert 1_000 < total < 50_000


def test_unknown_fields_cost_nothing() -> None:
    document = parse("{ nothing { here } topic { ...Missing ... on Nowhere { id } } }")
    assert measure_cost(SCHEMA, document, operation(document), {}).total == 1
    without_selection = parse("{ topic messages { items } }")
    assert measure_cost(SCHEMA, without_selection, operation(without_selection), {}).total == 1 + 1 + 50
    mutation = parse("mutation { nothing }")
    assert measure_cost(SCHEMA, mutation, operation(mutation), {}) == Cost(0, frozenset())


def test_fragments_spread_twice_over_30_levels_cost_once() -> None:
    doubling = [f"fragment F{n} on Topic {{ ...F{n + 1} ...F{n + 1} }}" for n in range(30)]
    began_s = time.process_time()
    assert cost('{ topic(id: "1") { ...F0 } }' + " ".join(doubling) + "fragment F30 on Topic { author { id } }") == 2
    assert time.process_time() - began_s < 10


def test_fragments_aliased_twice_over_30_levels_cost_exactly() -> None:
    inner = "a: friends(limit: 1) {{ ...F{n} }} b: friends(limit: 1) {{ ...F{n} }}"
    doubling = [f"fragment F{n} on User {{ {inner.format(n=n + 1)} }}" for n in range(30)]
    query = "{ unlimited { ...F0 } }" + " ".join(doubling) + "fragment F30 on User { id }"
    assert measure_cost(SCHEMA, parse(query), operation(parse(query)), {}).total == 10 * (2**31 - 1)


def test_fragments_too_complex_to_measure_have_no_cost() -> None:
    def spreading_fragment(level: int, n: int) -> str:
        """Returns a fragment whose fields spread different fragments, so that every path merges a different set."""
        fields = [f"f{k}: friends {{ ...L{level + 1}G{(n * (k + 2) + k) % 9} }}" for k in range(9)]
        return f"fragment L{level}G{n} on User {{ {' '.join(fields)} }}"

    all_fragments = " ".join(f"...L0G{n}" for n in range(9))
    fragments = [spreading_fragment(level, n) for level in range(10) for n in range(9)]
    fragments += [f"fragment L10G{n} on User {{ id }}" for n in range(9)]
    document = parse(f"{{ unlimited {{ {all_fragments} }} }}" + " ".join(fragments))
    began_s = time.process_time()
    assert measure_cost(SCHEMA, document, operation(document), {}).total is None
    assert time.process_time() - began_s < 10


def test_a_coroutine_for_each_object_costs_five() -> None:
    schema = product_schema._schema
    totals = []
    for fields in ("name", "name viewerRole viewerMutedUntil"):
        document = parse(f"{{ communities(limit: 300) {{ {fields} }} }}")
        totals.append(measure_cost(schema, document, operation(document), {}).total)
    assert totals[0] is not None
    assert totals[1] == totals[0] + 300 * 2 * 5


def test_batch_resolver_of_scalar_costs_nothing() -> None:
    schema = product_schema._schema
    totals = []
    for fields in ("id", "id unreadCount muted"):
        document = parse(f"{{ communities(limit: 300) {{ topics(limit: 1) {{ {fields} }} }} }}")
        totals.append(measure_cost(schema, document, operation(document), {}).total)
    assert totals[0] == totals[1]


@pytest.mark.parametrize("default", [{"default_value": 7}, {"default": GraphQLDefaultInput(value=7)}])
def test_default_of_limit_counts_in_any_form(default: dict[str, Any]) -> None:
    user = GraphQLObjectType("User", {"id": GraphQLField(GraphQLID)})
    users = GraphQLField(GraphQLList(user), {"limit": GraphQLArgument(GraphQLInt, **default)})
    schema, document = GraphQLSchema(GraphQLObjectType("Query", {"users": users})), parse("{ users { id } }")
    assert measure_cost(schema, document, operation(document), {}).total == 7


@pytest.mark.parametrize(
    ("reactions", "limit"), [("reactions { users(limit: 1) { id } }", 180), ("reactions { emoji count }", 999)]
)
def test_a_query_for_each_object_costs_a_hundred(reactions: str, limit: int) -> None:
    """A page of reactions is one query; the users of each reaction are a query of their own."""
    query = f'{{ messages(topicId: "t", latest: "now", limit: LIMIT) {{ items {{ {reactions} }} }} }}'
    schema = product_schema._schema
    totals = []
    for each in (limit, limit + 1):
        document = parse(query.replace("LIMIT", str(each)))
        totals.append(measure_cost(schema, document, operation(document), {}).total)
    assert totals[0] is not None
    assert totals[1] is not None
    assert totals[0] < 200_000
    assert totals[1] - totals[0] == 1 + 10 * (1 + (101 if "users" in reactions else 0))
