"""`field` and `expected` of refused values: equal for a literal and a variable, and exact for every nested place."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from graphql import GraphQLError, build_schema, parse, validate
from graphql.execution import Executor

from schema.errors import to_client_error
from schema.values.argument_values import ArgumentValuesRule
from schema.values.input_errors import field_name
from server.graphql.compiled import CompiledExecutor

SCHEMA = build_schema("""
enum Color { RED GREEN }
enum Letter { A B C D E F G H I J K L M N O P Q R S T U }
input Choice @oneOf { number: Int text: String }
input Target { channelId: ID! color: Color! = RED weights: [[Float!]!] choice: Choice next: Target size: Int! }
type Query { put(input: Target, targets: [[Target!]!], ids: [ID!], color: Color, letter: Letter, n: Int): Int }
""")

Reason = tuple[str, str]
"""A `field` and what was expected of it."""


def reasons_of(errors: list[GraphQLError]) -> list[Reason]:
    """Returns the fields and expectations that clients get. All errors have the code of wrong values."""
    extensions = [to_client_error(error).extensions or {} for error in errors]
    assert {each["code"] for each in extensions} <= {"BAD_USER_INPUT"}
    return [(each["field"], each["expected"]) for each in extensions]


def literal_reasons(arguments: str, variables: str = "") -> list[Reason]:
    document = parse(f"query {variables} {{ put({arguments}) }}")
    return reasons_of(validate(SCHEMA, document, [ArgumentValuesRule], max_errors=100))


def variable_reasons(arguments: str, variables: str, **values: Any) -> list[Reason]:
    built = CompiledExecutor.build(SCHEMA, parse(f"query {variables} {{ put({arguments}) }}"), None, None, values)
    return [] if isinstance(built, Executor) else reasons_of(built)


TYPES = {"input": "Target", "targets": "[[Target!]!]", "ids": "[ID!]", "color": "Color", "letter": "Letter", "n": "Int"}
WRONG_VALUES: list[tuple[str, str, Any, list[Reason]]] = [
    ("n", '"ten"', "ten", [("n", "an Int")]),
    ("n", "2147483648", 2**31, [("n", "an Int")]),
    ("n", "[1]", [1], [("n", "an Int")]),
    ("color", "BLUE", "BLUE", [("color", "one of RED, GREEN")]),
    ("color", "5", 5, [("color", "one of RED, GREEN")]),
    ("letter", "Z", "Z", [("letter", "a Letter")]),
    ("ids", "[1, null, 1.5]", [1, None, 1.5], [("ids[1]", "a value, not null"), ("ids[2]", "an ID")]),
    ("ids", "{a: 1}", {"a": 1}, [("ids", "an ID")]),
    ("input", "5", 5, [("input", "a Target object")]),
    ("input", "{size: 1}", {"size": 1}, [("channelId", "a value, not null")]),
    ("input", "{}", {}, [("channelId", "a value, not null"), ("size", "a value, not null")]),
    (
        "input",
        "{channelId: 1, size: 1, color: null}",
        {"channelId": 1, "size": 1, "color": None},
        [("color", "a value, not null")],
    ),
    ("input", "{channelId: 1, size: 1, choice: {}}", {"channelId": 1, "size": 1, "choice": {}}, [("choice", "CHOICE")]),
    (
        "input",
        '{channelId: 1, size: 1, choice: {number: 1, text: "a"}}',
        {"channelId": 1, "size": 1, "choice": {"number": 1, "text": "a"}},
        [("choice", "CHOICE")],
    ),
    (
        "input",
        "{channelId: 1, size: 1, choice: {number: null}}",
        {"channelId": 1, "size": 1, "choice": {"number": None}},
        [("choice.number", "a value, not null")],
    ),
    (
        "targets",
        "[[{channelId: 1, size: 1}], [{channelId: 1, size: 1}, {channelId: {}, size: 1, sise: 2, other: 3}]]",
        [
            [{"channelId": 1, "size": 1}],
            [{"channelId": 1, "size": 1}, {"channelId": {}, "size": 1, "sise": 2, "other": 3}],
        ],
        [
            ("targets[1][1].channelId", "an ID"),
            ("targets[1][1].sise", "a field of Target"),
            ("targets[1][1].other", "a field of Target"),
        ],
    ),
    (
        "targets",
        "{channelId: 1, size: 1, next: {channelId: 1, size: true}}",
        {"channelId": 1, "size": 1, "next": {"channelId": 1, "size": True}},
        [("next.size", "an Int")],
    ),
]
"""Wrong values: argument, literal, JSON, and the reasons."""


@pytest.mark.parametrize(("name", "literal", "value", "reasons"), WRONG_VALUES)
def test_wrong_value_has_equal_reasons_everywhere(name: str, literal: str, value: Any, reasons: list[Reason]) -> None:
    reasons = [(field, expected.replace("CHOICE", "exactly one of number, text")) for field, expected in reasons]
    variable = f"($v: {TYPES[name]})"
    assert literal_reasons(f"{name}: {literal}") == reasons
    assert literal_reasons(f"{name}: $v", variable.replace(")", f" = {literal})")) == reasons
    assert variable_reasons(f"{name}: $v", variable, v=value) == reasons


@pytest.mark.parametrize(
    ("arguments", "variables", "values", "reasons"),
    [
        ("input: $i", "($i: Target!)", {}, [("input", "a value, not null")]),
        ("input: $i", "($i: Target!)", {"i": None}, [("input", "a value, not null")]),
        ("input: {channelId: $c, size: 1}", "($c: ID!)", {"c": 1.5}, [("channelId", "an ID")]),
        ("ids: [$c $c]", "($c: ID!)", {"c": 1.5}, [("ids[0]", "an ID")]),
        ("ids: [$a [] $c]", "($a: ID, $c: ID!)", {"a": 1, "c": 1.5}, [("ids[2]", "an ID")]),
        (
            "n: 1, targets: [[], # a comment, and {\n [{channelId: 1} {weights: [[1] [2 [$w, 3]]]}]]",
            "($n: Int, $w: Float!)",
            {"w": "heavy"},
            [("targets[1][1].weights[1][1][0]", "a Float")],
        ),
        (
            "input: $i",
            "($i: Target)",
            {"i": {"channelId": "a", "size": 1, "\ud83d": 1}},
            [("\\ud83d", "a field of Target")],
        ),
        (
            "n: $n, color: $c",
            "($n: Int, $c: Color)",
            {"n": "1", "c": 1},
            [("n", "an Int"), ("color", "one of RED, GREEN")],
        ),
        ("n: 1", "($unused: Int)", {"unused": "1"}, [("unused", "an Int")]),
    ],
)
def test_variable_has_the_place_of_its_use(
    arguments: str, variables: str, values: dict[str, Any], reasons: list[Reason]
) -> None:
    assert variable_reasons(arguments, variables, **values) == reasons


@pytest.mark.parametrize(
    "text",
    [
        "query ($v: ID) { ...f } fragment f on Query { put(ids: [$v]) }",
        "fragment f on Query { put(ids: [$v]) } query ($v: ID) { ...f }",
        'query ("the id" $v: ID) { put(n: 1, ids: ["""block { text""" $v]) }'.replace(
            '"""block { text""" ', ""
        ).replace("[$v]", "$v"),
    ],
)
def test_variable_of_a_fragment_has_a_place(text: str) -> None:
    errors = CompiledExecutor.build(SCHEMA, parse(text), None, None, {"v": 1.5})
    assert isinstance(errors, list)
    ((field, expected),) = reasons_of(errors)
    assert (field.partition("[")[0], expected) == ("ids", "an ID")


def test_errors_of_variables_beyond_fifty_are_counted() -> None:
    *reasons, last = variable_reasons("ids: $v", "($v: [ID!])", v=[1.5] * 70)
    assert reasons == [(f"ids[{index}]", "an ID") for index in range(50)]
    assert last == ("variables", "fewer than 51 wrong values")


def test_many_comments_around_a_value_are_skipped() -> None:
    comments = "\n" + "# a comment\n" * 2000
    assert literal_reasons(f'n: {comments} "ten"') == [("n", "an Int")]
    assert variable_reasons(f"n: {comments} $n", f"($n: Int, {comments} $m: Int)", n="ten") == [("n", "an Int")]


def test_name_of_an_input_object_is_left_out_before_fields() -> None:
    assert field_name(["input", "targets", 2, "channelId"]) == "targets[2].channelId"
    assert field_name(["targets", 2, "channelId"]) == "targets[2].channelId"
    assert field_name(["input"]) == "input"


class WrongValues:
    """Generates values of the test schema with mistakes, and the reasons for which they are refused."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.reasons: list[Reason] = []

    def list_of(self, place: str, item: Callable[[str], tuple[Any, str]]) -> tuple[Any, str]:
        """Returns a list as JSON and as a literal."""
        items = [item(f"{place}[{index}]") for index in range(self._random.randrange(4))]
        return [value for value, _ in items], f"[{' '.join(literal for _, literal in items)}]"

    def leaf(self, place: str, good: tuple[Any, str], expected: str, bad: tuple[Any, str]) -> tuple[Any, str]:
        """Returns a good value of a non-null type, a bad one, or null."""
        choice = self._random.choice([good, good, bad, (None, "null")])
        if choice is not good:
            self.reasons.append((place, "a value, not null" if choice[0] is None else expected))
        return choice

    def weight(self, place: str) -> tuple[Any, str]:
        """Returns an item of `weights`."""
        return self.leaf(place, (1.5, "1.5"), "a Float", ("1", '"1"'))

    def target(self, place: str, depth: int = 2) -> tuple[Any, str]:
        """Returns an item of `targets`, or of `next`."""
        fields: dict[str, Callable[[str], tuple[Any, str]]] = {
            "channelId": lambda at: self.leaf(at, ("a", '"a"'), "an ID", (1.5, "1.5")),
            "color": lambda at: self.leaf(at, ("RED", "RED"), "one of RED, GREEN", ("BLUE", "BLUE")),
            "weights": lambda at: self.list_of(at, lambda inner: self.list_of(inner, self.weight)),
            "next": lambda at: self.target(at, depth - 1) if depth else (None, "null"),
            "size": lambda at: self.leaf(at, (3, "3"), "an Int", (2.5, "2.5")),
        }
        value: dict[str, Any] = {}
        literals: list[str] = []
        for name, generate in fields.items():
            if self._random.random() < 0.3:
                if name in {"channelId", "size"}:
                    self.reasons.append((f"{place}.{name}", "a value, not null"))
                continue
            value[name], literal = generate(f"{place}.{name}")
            literals.append(f"{name}: {literal}")
        for name in self._random.sample(["siz", "other", "text"], self._random.randrange(3)):
            value[name] = None
            literals.append(f"{name}: null")
            self.reasons.append((f"{place}.{name}", "a field of Target"))
        return value, f"{{{', '.join(literals)}}}"


@pytest.mark.parametrize("seed", range(60))
def test_generated_values_have_the_reasons_of_their_mistakes(seed: int) -> None:
    wrong = WrongValues(seed)
    value, literal = wrong.list_of("targets", lambda place: wrong.list_of(place, wrong.target))
    reasons = wrong.reasons
    assert literal_reasons(f"targets: {literal}")[:50] == reasons[:50]
    assert variable_reasons("targets: $v", "($v: [[Target!]!])", v=value)[:50] == reasons[:50]
