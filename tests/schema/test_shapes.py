"""Every field without a resolver is an attribute of its type's record, and the types of both fit."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Generic, TypeVar

import pytest
import strawberry
from strawberry import ID, Parent
from strawberry.types.base import StrawberryObjectDefinition

from schema.root import Mutation, Query, Subscription, schema
from storage.timeline import Timestamp
from tests.schema.shapes import ShapeWalk

Item = TypeVar("Item")


def test_records_have_all_attributes_of_their_types() -> None:
    walk = ShapeWalk()
    mismatches = [line for root in (Query, Mutation, Subscription) for line in walk.mismatches_below(root)]
    assert not mismatches, "Types of schema/ differ from the records that resolvers return:\n" + "\n".join(mismatches)


def test_shape_walk_visits_every_object_type() -> None:
    walk = ShapeWalk()
    for root in (Query, Mutation, Subscription):
        walk.mismatches_below(root)
    assert object_types() == set(walk.records)


def object_types() -> set[str]:
    definitions = [each.definition for each in schema.schema_converter.type_map.values()]
    objects = [each for each in definitions if isinstance(each, StrawberryObjectDefinition)]
    return {each.name for each in objects if not each.is_input and not each.is_interface} - {
        "Query",
        "Mutation",
        "Subscription",
    }


class Colour(Enum):
    RED = "RED"


strawberry.enum(Colour)


@dataclass
class Lamp:
    id: str
    colours: tuple[Colour, ...]
    lit_at: datetime | None
    since: Timestamp

    @property
    def watts(self) -> int:
        return 60


@dataclass
class Shelf(Generic[Item]):
    items: Sequence[Item]


def lamp() -> Lamp:
    raise NotImplementedError


def optional_lamp() -> Lamp | None:
    raise NotImplementedError


def lamps() -> Shelf[Lamp]:
    raise NotImplementedError


def lamps_and_shelves() -> AsyncGenerator[Lamp | Shelf[Lamp], None]:
    raise NotImplementedError


class LampStream:
    def __aiter__(self) -> AsyncIterator[Lamp]:
        raise NotImplementedError


async def lamp_stream() -> LampStream:
    raise NotImplementedError


def brightness(root: Parent[Lamp]) -> float:
    raise NotImplementedError


def width(root: Parent[Shelf[Any]]) -> float:
    raise NotImplementedError


@strawberry.type
class LampType:
    id: ID
    colours: list[Colour]
    lit_at: datetime | None
    since: Timestamp
    watts: int
    brightness: float = strawberry.field(resolver=brightness)


@strawberry.type
class ShelfType:
    items: list[LampType]


@strawberry.type
class UnknownFieldType:
    name: str


@strawberry.type
class NonNullFieldType:
    id: ID
    lit_at: datetime


@strawberry.type
class WrongScalarType:
    watts: str
    since: int


@strawberry.type
class WrongParentType:
    width: float = strawberry.field(resolver=width)


@strawberry.type
class UnknownFieldShelfType:
    items: list[UnknownFieldType]


@strawberry.type
class ListFieldType:
    since: list[Timestamp]


MatchingUnion = Annotated[LampType | ShelfType, strawberry.union("MatchingUnion")]
MismatchingUnion = Annotated[LampType | UnknownFieldType, strawberry.union("MismatchingUnion")]


@pytest.mark.parametrize(
    ("type_", "resolver", "mismatches"),
    [
        (LampType, lamp, []),
        (LampType | None, optional_lamp, []),
        (ShelfType, lamps, []),
        (MatchingUnion, lamps_and_shelves, []),
        (LampType, optional_lamp, ["Root.thing: may be None, and its type is not nullable"]),
        (UnknownFieldType, lamp, ["UnknownFieldType.name: Lamp has no such attribute"]),
        (UnknownFieldShelfType, lamps, ["UnknownFieldType.name: Lamp has no such attribute"]),
        (NonNullFieldType, lamp, ["NonNullFieldType.lit_at: may be None, and its type is not nullable"]),
        (WrongScalarType, lamp, ["WrongScalarType.watts: int is no str", "WrongScalarType.since: Timestamp is no int"]),
        (WrongParentType, lamp, ["WrongParentType.width: its resolver takes Shelf, not Lamp"]),
        (ListFieldType, lamp, ["ListFieldType.since: Timestamp is no list"]),
        (list[LampType], lamp, ["Root.thing: Lamp is no list"]),
        (MismatchingUnion, lamps_and_shelves, ["UnknownFieldType.name: Lamp has no such attribute"]),
        (MismatchingUnion, lamp_stream, ["UnknownFieldType.name: Lamp has no such attribute"]),
        (LampType, lamp_stream, []),
    ],
)
def test_shape_walk_detects_mismatching_record(type_: Any, resolver: Any, mismatches: list[str]) -> None:
    @strawberry.type
    class Root:
        thing: type_ = strawberry.field(resolver=resolver)

    assert ShapeWalk().mismatches_below(Root) == mismatches
