"""Random data for any operation of the schema, some of it faulty: values depend on the seed and their path only.

So two executors see the same values, however often and in whatever order they read them.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLSchema,
    GraphQLUnionType,
    get_named_type,
)
from strawberry.schema.schema_converter import GraphQLCoreConverter
from strawberry.types.field import StrawberryField

from resolvers.events import StreamReady
from storage.errors import Forbidden, NotFound
from storage.publishing.networks import Network
from storage.publishing.records import AccountTarget, HomeFeedTarget, TopicTarget
from storage.streams.log import Cursor
from storage.timeline import Timestamp

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Later:
    """Something to be waited for that may be left alone, unlike a coroutine."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __await__(self) -> Generator[Any, None, Any]:
        yield from asyncio.sleep(0).__await__()
        return self._value


@dataclass(frozen=True)
class World:
    """All values of one seed. `faults` is how many of a hundred values are wrong."""

    schema: GraphQLSchema
    seed: int
    faults: int

    def value(self, type_: GraphQLOutputType, place: str) -> Any:
        """Returns an existing value, or one that the type does not allow."""
        chance = random.Random(f"{self.seed} {place}")
        if chance.randrange(100) < self.faults:
            return self._fault(chance, type_, place)
        if isinstance(type_, GraphQLNonNull):
            return self._there(chance, type_.of_type, place)
        return None if chance.random() < 0.2 else self._there(chance, type_, place)

    def _fault(self, chance: random.Random, type_: GraphQLOutputType, place: str) -> Any:
        inner = type_.of_type if isinstance(type_, GraphQLNonNull) else type_
        faults: list[Callable[[], Any]] = [
            lambda: None,
            lambda: NotFound("thing", place),
            lambda: object(),
            lambda: chance.choice([3, 3.5, True, "7", "text", float("nan"), 2**40, b"bytes"]),
            lambda: Later(self._there(chance, inner, place)),
            lambda: Later(None),
            lambda: iter(()),
            lambda: {"a": 1},
        ]
        return chance.choice(faults)()

    def _there(self, chance: random.Random, type_: GraphQLOutputType, place: str) -> Any:
        if isinstance(type_, GraphQLList):
            items = [self.value(type_.of_type, f"{place}.{number}") for number in range(chance.choice([0, 1, 2, 3]))]
            container: Callable[[list[Any]], Any] = chance.choice([list, list, list, tuple, _once])
            return container(items)
        if isinstance(type_, GraphQLUnionType | GraphQLInterfaceType):
            return self.thing(chance.choice(self.schema.get_possible_types(type_)), place)
        if isinstance(type_, GraphQLObjectType):
            return self.thing(type_, place)
        if isinstance(type_, GraphQLEnumType):
            return chance.choice([value.value for value in type_.values.values()])
        return SCALARS[get_named_type(type_).name](chance)

    def thing(self, type_: GraphQLObjectType, place: str) -> Any:
        """A record of the type."""
        return KNOWN_BY_CLASS.get(type_.name) or Thing(self, type_, place)


KNOWN_BY_CLASS = {
    "StreamReady": StreamReady(Cursor("here"), EPOCH, resumed=True),
    "HomeFeedTarget": HomeFeedTarget("ann"),
    "TopicTarget": TopicTarget("topic", "community"),
    "AccountTarget": AccountTarget("account", Network.SANDBOX),
}
"""Returns records of types that are distinguished by their class."""

SCALARS: dict[str, Callable[[random.Random], Any]] = {
    "ID": lambda chance: f"id{chance.randrange(1000)}",
    "String": lambda chance: chance.choice(["", "text", "文字", '"quoted"\n']),
    "Int": lambda chance: chance.choice([0, 1, -5, 2**31 - 1]),
    "Float": lambda chance: chance.choice([0.0, 1.5, -2.25, 3]),
    "Boolean": lambda chance: chance.random() < 0.5,
    "Timestamp": lambda chance: Timestamp(chance.randrange(2**50)),
    "DateTime": lambda chance: EPOCH + timedelta(seconds=chance.randrange(10**7)),
    "Cursor": lambda chance: Cursor(f"at {chance.randrange(100)}"),
}


def _once(items: list[Any]) -> Iterator[Any]:
    return (item for item in items)


class Thing:
    """A record whose attributes are those of its type's fields, anew each time."""

    def __init__(self, world: World, type_: GraphQLObjectType, place: str) -> None:
        self.world, self.type_, self.place = world, type_, place

    def __getattr__(self, name: str) -> Any:
        for each in vars(self)["type_"].fields.values():
            if bound_to(each).python_name == name:
                return self.world.value(each.type, f"{self.place}.{name}")
        if name == "kind":
            # By which events tell what they are (schema/events.py).
            return self.type_.name
        raise AttributeError(name)


def bound_to(field: Any) -> StrawberryField:
    """Returns how the schema's field is bound."""
    bound = field.extensions[GraphQLCoreConverter.DEFINITION_BACKREF]
    assert isinstance(bound, StrawberryField)
    return bound


def resolve(type_: GraphQLOutputType, name: str, source: Any, world: World) -> Awaitable[Any] | Any:
    """Returns or raises a field's value, at once or later."""
    place = f"{getattr(source, 'place', '')}/{name}"
    chance = random.Random(f"{world.seed} resolver {place}")
    value = Forbidden(place) if chance.randrange(100) < world.faults else world.value(type_, place)
    return _later(value, chance.randrange(3)) if chance.random() < 0.7 else _now(value)


def _now(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


async def _later(value: Any, ticks: int) -> Any:
    for _ in range(ticks):
        await asyncio.sleep(0)
    return _now(value)


def populate(schema: GraphQLSchema, many: dict[int, Callable[..., Awaitable[Sequence[Any]]]]) -> None:
    """Puts random values behind every field with a resolver, and the same for many objects into `many`, by binding."""
    for type_ in schema.type_map.values():
        if not isinstance(type_, GraphQLObjectType) or type_.name.startswith("__"):
            continue
        for name, field in type_.fields.items():
            bound = bound_to(field)
            if bound.base_resolver is not None:
                field.resolve = _one(field.type, name)
                if not field.args:
                    many[id(bound)] = _all(field.type, name)


def _one(type_: GraphQLOutputType, name: str) -> Callable[..., Any]:
    return lambda source, info, **_: resolve(type_, name, source, info.context)


def _all(type_: GraphQLOutputType, name: str) -> Callable[..., Awaitable[Sequence[Any]]]:
    async def resolve_all(sources: Sequence[Any], info: Any) -> Sequence[Any]:
        asked = (_settled(type_, name, source, info.context) for source in sources)
        settled = await asyncio.gather(*asked, return_exceptions=True)
        for each in settled:
            if isinstance(each, BaseException):
                raise each
        return settled

    return resolve_all


async def _settled(type_: GraphQLOutputType, name: str, source: Any, world: World) -> Any:
    value = resolve(type_, name, source, world)
    return await value if hasattr(value, "__await__") and not isinstance(value, Later) else value
