"""Every field without a resolver is an attribute of its type's record, of a type that can be shown as the field's."""

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
from tests.schema.shapes import Walk

Item = TypeVar("Item")


def test_records_have_all_attributes_of_their_types() -> None:
    walk = Walk()
    misfits = [line for root in (Query, Mutation, Subscription) for line in walk.root(root)]
    assert not misfits, "Types of schema/ differ from the records that resolvers return:\n" + "\n".join(misfits)


def test_shape_walk_visits_every_object_type() -> None:
    walk = Walk()
    for root in (Query, Mutation, Subscription):
        walk.root(root)
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


def perhaps_a_lamp() -> Lamp | None:
    raise NotImplementedError


def lamps() -> Shelf[Lamp]:
    raise NotImplementedError


def lamps_and_shelves() -> AsyncGenerator[Lamp | Shelf[Lamp], None]:
    raise NotImplementedError


class StreamOfLamps:
    def __aiter__(self) -> AsyncIterator[Lamp]:
        raise NotImplementedError


async def stream_of_lamps() -> StreamOfLamps:
    raise NotImplementedError


def brightness(root: Parent[Lamp]) -> float:
    raise NotImplementedError


def width(root: Parent[Shelf[Any]]) -> float:
    raise NotImplementedError


@strawberry.type
class GoodLamp:
    id: ID
    colours: list[Colour]
    lit_at: datetime | None
    since: Timestamp
    watts: int
    brightness: float = strawberry.field(resolver=brightness)


@strawberry.type
class GoodShelf:
    items: list[GoodLamp]


@strawberry.type
class Misnamed:
    name: str


@strawberry.type
class Misjudged:
    id: ID
    lit_at: datetime


@strawberry.type
class Mistyped:
    watts: str
    since: int


@strawberry.type
class Misbound:
    width: float = strawberry.field(resolver=width)


@strawberry.type
class MisnamedShelf:
    items: list[Misnamed]


@strawberry.type
class Row:
    since: list[Timestamp]


GoodThing = Annotated[GoodLamp | GoodShelf, strawberry.union("GoodThing")]
OddThing = Annotated[GoodLamp | Misnamed, strawberry.union("OddThing")]


@pytest.mark.parametrize(
    ("type_", "resolver", "misfits"),
    [
        (GoodLamp, lamp, []),
        (GoodLamp | None, perhaps_a_lamp, []),
        (GoodShelf, lamps, []),
        (GoodThing, lamps_and_shelves, []),
        (GoodLamp, perhaps_a_lamp, ["Root.thing: may be None, and its type is not nullable"]),
        (Misnamed, lamp, ["Misnamed.name: Lamp has no such attribute"]),
        (MisnamedShelf, lamps, ["Misnamed.name: Lamp has no such attribute"]),
        (Misjudged, lamp, ["Misjudged.lit_at: may be None, and its type is not nullable"]),
        (Mistyped, lamp, ["Mistyped.watts: int is no str", "Mistyped.since: Timestamp is no int"]),
        (Misbound, lamp, ["Misbound.width: its resolver takes Shelf, not Lamp"]),
        (Row, lamp, ["Row.since: Timestamp is no list"]),
        (list[GoodLamp], lamp, ["Root.thing: Lamp is no list"]),
        (OddThing, lamps_and_shelves, ["Misnamed.name: Lamp has no such attribute"]),
        (OddThing, stream_of_lamps, ["Misnamed.name: Lamp has no such attribute"]),
        (GoodLamp, stream_of_lamps, []),
    ],
)
def test_shape_walk_detects_mismatching_record(type_: Any, resolver: Any, misfits: list[str]) -> None:
    @strawberry.type
    class Root:
        thing: type_ = strawberry.field(resolver=resolver)

    assert Walk().root(Root) == misfits
