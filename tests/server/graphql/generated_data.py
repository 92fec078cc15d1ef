"""Random data for any operation of the schema, some of it faulty.

A value depends only on the seed and on its path. Therefore two executors read the same values, in any order and any
number of times.
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

BatchResolver = Callable[..., Awaitable[Sequence[Any]]]
BatchResolvers = dict[int, BatchResolver]


class DelayedValue:
    """An awaitable value. Unlike a coroutine, it causes no warning when it is never awaited."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __await__(self) -> Generator[Any, None, Any]:
        yield from asyncio.sleep(0).__await__()
        return self._value


@dataclass(frozen=True)
class GeneratedData:
    """All values of one seed. `fault_percentage` percent of these values are wrong."""

    schema: GraphQLSchema
    seed: int
    fault_percentage: int

    def value(self, type_: GraphQLOutputType, path: str) -> Any:
        """Returns a value of the type, or, with `fault_percentage` percent probability, a faulty value."""
        rng = random.Random(f"{self.seed} {path}")
        if rng.randrange(100) < self.fault_percentage:
            return self._faulty_value(rng, type_, path)
        if isinstance(type_, GraphQLNonNull):
            return self._valid_value(rng, type_.of_type, path)
        return None if rng.random() < 0.2 else self._valid_value(rng, type_, path)

    def _faulty_value(self, rng: random.Random, type_: GraphQLOutputType, path: str) -> Any:
        inner = type_.of_type if isinstance(type_, GraphQLNonNull) else type_
        faults: list[Callable[[], Any]] = [
            lambda: None,
            lambda: NotFound("thing", path),
            lambda: object(),
            lambda: rng.choice([3, 3.5, True, "7", "text", float("nan"), 2**40, b"bytes"]),
            lambda: DelayedValue(self._valid_value(rng, inner, path)),
            lambda: DelayedValue(None),
            lambda: iter(()),
            lambda: {"a": 1},
        ]
        return rng.choice(faults)()

    def _valid_value(self, rng: random.Random, type_: GraphQLOutputType, path: str) -> Any:
        if isinstance(type_, GraphQLList):
            items = [self.value(type_.of_type, f"{path}.{number}") for number in range(rng.choice([0, 1, 2, 3]))]
            container: Callable[[list[Any]], Any] = rng.choice([list, list, list, tuple, _iterator])
            return container(items)
        if isinstance(type_, GraphQLUnionType | GraphQLInterfaceType):
            return self.record(rng.choice(self.schema.get_possible_types(type_)), path)
        if isinstance(type_, GraphQLObjectType):
            return self.record(type_, path)
        if isinstance(type_, GraphQLEnumType):
            return rng.choice([value.value for value in type_.values.values()])
        return SCALARS[get_named_type(type_).name](rng)

    def record(self, type_: GraphQLObjectType, path: str) -> Any:
        """Returns a record of the type."""
        return RECORDS_BY_TYPE.get(type_.name) or GeneratedRecord(self, type_, path)


RECORDS_BY_TYPE = {
    "StreamReady": StreamReady(Cursor("here"), EPOCH, resumed=True),
    "HomeFeedTarget": HomeFeedTarget("ann"),
    "TopicTarget": TopicTarget("topic", "community"),
    "AccountTarget": AccountTarget("account", Network.SANDBOX),
}
"""Records of the types that the product recognizes by the class of the record."""

SCALARS: dict[str, Callable[[random.Random], Any]] = {
    "ID": lambda rng: f"id{rng.randrange(1000)}",
    "String": lambda rng: rng.choice(["", "text", "文字", '"quoted"\n']),
    "Int": lambda rng: rng.choice([0, 1, -5, 2**31 - 1]),
    "Float": lambda rng: rng.choice([0.0, 1.5, -2.25, 3]),
    "Boolean": lambda rng: rng.random() < 0.5,
    "Timestamp": lambda rng: Timestamp(rng.randrange(2**50)),
    "DateTime": lambda rng: EPOCH + timedelta(seconds=rng.randrange(10**7)),
    "Cursor": lambda rng: Cursor(f"at {rng.randrange(100)}"),
}


def _iterator(items: list[Any]) -> Iterator[Any]:
    return (item for item in items)


class GeneratedRecord:
    """A record with an attribute for each field of its type. Each access generates the value again.

    The attributes that are set in `__init__` must not have the name of a field.
    """

    def __init__(self, data: GeneratedData, type_: GraphQLObjectType, path: str) -> None:
        self.generated_data, self.record_type, self.value_path = data, type_, path

    def __getattr__(self, name: str) -> Any:
        for each in vars(self)["record_type"].fields.values():
            if binding_of(each).python_name == name:
                return self.generated_data.value(each.type, f"{self.value_path}.{name}")
        if name == "kind":
            # Events are recognized by their kind (schema/events.py).
            return self.record_type.name
        raise AttributeError(name)


def binding_of(field: Any) -> StrawberryField:
    """Returns the Strawberry field that the schema's field is bound to."""
    binding = field.extensions[GraphQLCoreConverter.DEFINITION_BACKREF]
    assert isinstance(binding, StrawberryField)
    return binding


def resolve(type_: GraphQLOutputType, name: str, source: Any, data: GeneratedData) -> Awaitable[Any] | Any:
    """Returns or raises a field's generated value, or returns a coroutine that returns or raises it."""
    path = f"{getattr(source, 'value_path', '')}/{name}"
    rng = random.Random(f"{data.seed} resolver {path}")
    value = Forbidden(path) if rng.randrange(100) < data.fault_percentage else data.value(type_, path)
    return _return_or_raise_after(value, rng.randrange(3)) if rng.random() < 0.7 else _return_or_raise(value)


def _return_or_raise(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


async def _return_or_raise_after(value: Any, ticks: int) -> Any:
    for _ in range(ticks):
        await asyncio.sleep(0)
    return _return_or_raise(value)


def install_resolvers(schema: GraphQLSchema, batch_resolvers: BatchResolvers) -> None:
    """Replaces the resolver of every field that has one, and adds batch resolvers with the same values.

    Fields with several arguments get no batch resolver.
    `batch_resolvers` maps the id of a field's binding to its batch resolver.
    """
    for type_ in schema.type_map.values():
        if not isinstance(type_, GraphQLObjectType) or type_.name.startswith("__"):
            continue
        for name, field in type_.fields.items():
            binding = binding_of(field)
            if binding.base_resolver is not None:
                field.resolve = _resolver(field.type, name)
                if len(field.args) < 2:
                    batch_resolvers[id(binding)] = _batch_resolver(field.type, name)


def _resolver(type_: GraphQLOutputType, name: str) -> Callable[..., Any]:
    return lambda source, info, **_: resolve(type_, name, source, info.context)


def _batch_resolver(type_: GraphQLOutputType, name: str) -> BatchResolver:
    async def resolve_all(sources: Sequence[Any], info: Any, **_: Any) -> Sequence[Any]:
        resolving = (_awaited_value(type_, name, source, info.context) for source in sources)
        values = await asyncio.gather(*resolving, return_exceptions=True)
        for each in values:
            if isinstance(each, BaseException):
                raise each
        return values

    return resolve_all


async def _awaited_value(type_: GraphQLOutputType, name: str, source: Any, data: GeneratedData) -> Any:
    value = resolve(type_, name, source, data)
    return await value if hasattr(value, "__await__") and not isinstance(value, DelayedValue) else value
