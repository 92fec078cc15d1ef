"""Batch resolvers with arguments, and those of the types of a union: one call for all objects of all lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as attribute
from typing import Annotated, Any

import pytest
import strawberry
from strawberry import Parent

from schema.binding import field
from server.graphql.operations import Operations
from storage.errors import BadUserInput
from tests.execution import run_operation

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class HillRecord:
    number: int


@dataclass(frozen=True)
class TowerRecord:
    number: int


@dataclass
class CountedCalls:
    """The context of an operation: the calls of batch resolvers, and what a context of the product has."""

    calls: list[Any] = attribute(default_factory=list)
    viewer: None = None
    scopes: None = None
    is_service: bool = False

    def of_query(self) -> "CountedCalls":
        return self


Info = strawberry.Info[CountedCalls, None]


async def height(root: Parent[Any], info: Info, in_feet: bool = False, plus: int = 0, note: str = "") -> int:
    return (await heights([root], info, in_feet, plus, note))[0]


async def heights(hills: Sequence[Any], info: Info, in_feet: bool = False, plus: int = 0, note: str = "") -> list[int]:
    if plus < 0:
        raise BadUserInput("plus", "a positive number")
    info.context.calls.append(("heights", [each.number for each in hills], in_feet, plus, note))
    return [each.number * (3 if in_feet else 1) + plus for each in hills]


async def name(root: Parent[Any], info: Info) -> str:
    return (await names([root], info))[0]


async def names(towers: Sequence[Any], info: Info) -> list[str]:
    info.context.calls.append(("names", [each.number for each in towers]))
    return [f"Tower {each.number}" for each in towers]


@strawberry.type
class Hill:
    number: int
    height: int = field(height, "Its height.", batch_resolver=heights)

    @classmethod
    def is_type_of(cls, record: Any, _info: object) -> bool:
        return isinstance(record, HillRecord)


@strawberry.type
class Tower:
    number: int
    name: str = field(name, "Its name.", batch_resolver=names)

    @classmethod
    def is_type_of(cls, record: Any, _info: object) -> bool:
        return isinstance(record, TowerRecord)


Place = Annotated[Hill | Tower, strawberry.union("Place")]


async def places(root: Parent[Any]) -> Any:
    return [HillRecord(root.number), TowerRecord(root.number), HillRecord(root.number + 1)]


async def places_of_many(regions: Sequence[Any], _info: Info) -> list[Any]:
    return [await places(each) for each in regions]


@strawberry.type
class Region:
    number: int
    places: list[Place] = field(places, "Its places.", batch_resolver=places_of_many)


async def regions() -> list[Region]:
    return [Region(number=number) for number in (1, 5)]  # type: ignore[call-arg]


@strawberry.type
class Query:
    regions: list[Region] = strawberry.field(resolver=regions)


OPERATIONS = Operations(strawberry.Schema(query=Query, types=[Hill, Tower]))


async def run(selection: str, **variables: Any) -> tuple[Any, CountedCalls]:
    """Executes a query of the places, and returns the result and the calls."""
    context: Any = CountedCalls()
    types = {"$plus": "Int", "$feet": "Boolean = true", "$note": "String"}
    declarations = [f"{name}: {type_}" for name, type_ in types.items() if name in selection]
    declared = f"({', '.join(declarations)})" if declarations else ""
    query = f"query {declared} {{ regions {{ places {{ __typename {selection} }} }} }}"
    return await run_operation(OPERATIONS, context, query, variables), context


async def test_union_calls_each_batch_resolver_once() -> None:
    result, context = await run("... on Hill { number height } ... on Tower { name }")
    assert result.data["regions"][1]["places"] == [
        {"__typename": "Hill", "number": 5, "height": 5},
        {"__typename": "Tower", "name": "Tower 5"},
        {"__typename": "Hill", "number": 6, "height": 6},
    ]
    assert sorted(context.calls) == [("heights", [1, 2, 5, 6], False, 0, ""), ("names", [1, 5])]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", (False, 0, "")),
        ("(inFeet: true)", (True, 0, "")),
        ("(inFeet: $feet, plus: $plus)", (True, 7, "")),
        ('(plus: 4, note: "high")', (False, 4, "high")),
    ],
)
async def test_batch_resolver_gets_the_arguments(arguments: str, expected: tuple[bool, int, str]) -> None:
    result, context = await run(f"... on Hill {{ height{arguments} }}", plus=7)
    assert context.calls == [("heights", [1, 2, 5, 6], *expected)]
    heights = [place["height"] for each in result.data["regions"] for place in each["places"] if "height" in place]
    in_feet, plus, _ = expected
    assert heights == [number * (3 if in_feet else 1) + plus for number in (1, 2, 5, 6)]


async def test_error_of_an_argument_is_reported_for_each_object() -> None:
    result, _ = await run("... on Hill { height(plus: -1) }")
    assert [error.path for error in result.errors] == [["regions", 0, "places", 0, "height"]]
    assert [error.extensions["code"] for error in result.errors] == ["BAD_USER_INPUT"]


async def test_lone_surrogate_reaches_no_batch_resolver() -> None:
    result, context = await run("... on Hill { height(note: $note) }", note="\ud800")
    assert result.errors
    assert context.calls == []
