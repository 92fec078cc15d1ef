"""Objects of which some fields have resolvers: all objects of a list together, their resolvers field by field.

Plain attributes are built by a compiled function that leaves holes. A hole is filled for all objects at once where the
field has a resolver for many (schema/binding.py), else by the general executor, for each object.
"""

import asyncio
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any

from graphql import (
    GraphQLField,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLResolveInfo,
    is_leaf_type,
)
from graphql.execution import Executor
from graphql.execution.collect_fields import FieldDetailsList
from graphql.execution.executor import to_nodes
from graphql.pyutils import Path
from strawberry import Info
from strawberry.types.field import StrawberryField

from server.graphql.compiled.leaves import Odd
from server.graphql.compiled.objects import Core, CoreOfMany, items_of

Row = dict[str, Any]
Paths = Callable[[int], Path]
"""Where each of several values stands in the answer."""


@dataclass(slots=True)
class Run:
    """One execution of a part of an operation. `info` is that of the field which gave it."""

    executor: Executor[Any]
    info: GraphQLResolveInfo[Any]


class Hole(ABC):
    """One field of many objects."""

    @abstractmethod
    async def fill(self, run: Run, objects: Sequence[Any], rows: Sequence[Row], paths: Paths) -> None:
        """Puts the field into each object's row."""


class Plan(ABC):
    """How values of one type are completed, all together."""

    pays_alone = True
    """Whether it is worth it for one object: not where everything is left to the general executor anyway."""

    @abstractmethod
    async def complete(self, run: Run, values: Sequence[Any], paths: Paths) -> list[Any]:
        """What becomes of values that are not None, in their order. Raises: Odd, and what resolvers raise."""


@dataclass(slots=True)
class Plain(Plan):
    """Values in which nothing has a resolver."""

    core: Core

    async def complete(self, run: Run, values: Sequence[Any], paths: Paths) -> list[Any]:
        core, info = self.core, run.info
        return [core(value, info) for value in values]


@dataclass(slots=True)
class PlainObjects(Plain):
    """The same of objects, of which many are built at once."""

    many: CoreOfMany

    async def complete(self, run: Run, values: Sequence[Any], paths: Paths) -> list[Any]:
        return self.many(values, run.info)


@dataclass
class Objects(Plan):
    """Objects of one type with holes."""

    build_many: CoreOfMany
    holes: Sequence[Hole]

    def __post_init__(self) -> None:
        # Not where each field with a resolver is resolved for each object.
        self.pays_alone = not all(isinstance(hole, One) for hole in self.holes)

    async def complete(self, run: Run, values: Sequence[Any], paths: Paths) -> list[Any]:
        rows = self.build_many(values, run.info)
        if rows:
            await together([hole.fill(run, values, rows, paths) for hole in self.holes])
        return rows


@dataclass(slots=True)
class Lists(Plan):
    """Lists, all their items as one."""

    items: Plan
    nullable: bool

    async def complete(self, run: Run, values: Sequence[Any], paths: Paths) -> list[Any]:
        lists = [items_of(value) for value in values]
        every = [item for each in lists for item in each]
        ends = list(accumulate(map(len, lists)))

        def path(number: int) -> Path:
            i = bisect_right(ends, number)
            return paths(i).add_key(number - ends[i] + len(lists[i]), None)

        done = iter(await complete_present(self.items, self.nullable, run, every, path))
        return [list(islice(done, len(each))) for each in lists]


async def complete_present(plan: Plan, nullable: bool, run: Run, values: Sequence[Any], paths: Paths) -> list[Any]:
    """The same for values some of which may be None. Raises: Odd also where none may be."""
    there = [number for number, value in enumerate(values) if value is not None]
    if len(there) == len(values):
        return await plan.complete(run, values, paths)
    if not nullable:
        raise Odd
    done = await plan.complete(run, [values[number] for number in there], lambda number: paths(there[number]))
    completed: list[Any] = [None] * len(values)
    for number, value in zip(there, done, strict=True):
        completed[number] = value
    return completed


@dataclass(slots=True)
class Attribute(Hole):
    """A plain attribute in which something has a resolver."""

    key: str
    attribute: str
    type_name: str
    plan: Plan
    nullable: bool

    async def fill(self, run: Run, objects: Sequence[Any], rows: Sequence[Row], paths: Paths) -> None:
        values = [getattr(each, self.attribute) for each in objects]
        inner = _below(paths, self.key, self.type_name)
        _put(rows, self.key, await complete_present(self.plan, self.nullable, run, values, inner))


@dataclass(slots=True)
class Many(Hole):
    """A field with a resolver that takes many objects: called once."""

    key: str
    type_: GraphQLObjectType
    field: GraphQLField
    bound: StrawberryField
    resolve: Callable[[Sequence[Any], Info[Any, Any]], Awaitable[Sequence[Any]]]
    details: FieldDetailsList
    plan: Plan
    nullable: bool

    async def fill(self, run: Run, objects: Sequence[Any], rows: Sequence[Row], paths: Paths) -> None:
        inner = _below(paths, self.key, self.type_.name)
        raw = run.executor.build_resolve_info(self.field, to_nodes(self.details), self.type_, inner(0))
        values = await self.resolve(objects, Info(_raw_info=raw, _field=self.bound))
        below = Run(run.executor, raw)
        _put(rows, self.key, await complete_present(self.plan, self.nullable, below, values, inner))


@dataclass(slots=True)
class One(Hole):
    """Any other field: the general executor's, for each object."""

    key: str
    type_: GraphQLObjectType
    details: FieldDetailsList

    async def fill(self, run: Run, objects: Sequence[Any], rows: Sequence[Row], paths: Paths) -> None:
        executor, waiting = run.executor, list[Awaitable[None]]()
        try:
            for number, each in enumerate(objects):
                path = paths(number).add_key(self.key, self.type_.name)
                value = executor.execute_field(self.type_, each, self.details, path, None)
                if executor.is_awaitable(value):
                    waiting.append(self._awaited(rows[number], value))
                else:
                    rows[number][self.key] = value
        except Exception:
            # What was begun must be waited for by somebody.
            executor.settle_in_background(waiting)
            raise
        if waiting:
            await together(waiting)

    async def _awaited(self, row: Row, value: Awaitable[Any]) -> None:
        row[self.key] = await value


async def together(waiting: Sequence[Any]) -> None:
    """Awaits all, the first without a task. When one fails, those after it are ended before it is told."""
    first, *others = waiting
    tasks = [asyncio.ensure_future(each) for each in others]
    try:
        await first
        for task in tasks:
            await task
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def plan_of(type_: GraphQLOutputType, objects: Callable[[GraphQLObjectType], Plan]) -> Plan:
    """The plan for a type's values, given those for object types. Raises: Odd for unions and interfaces."""
    if isinstance(type_, GraphQLNonNull):
        return plan_of(type_.of_type, objects)
    if isinstance(type_, GraphQLList):
        return Lists(plan_of(type_.of_type, objects), is_nullable(type_.of_type))
    if isinstance(type_, GraphQLObjectType):
        return objects(type_)
    assert not is_leaf_type(type_)
    raise Odd


def is_nullable(type_: GraphQLOutputType) -> bool:
    """Whether None is an answer."""
    return not isinstance(type_, GraphQLNonNull)


def _below(paths: Paths, key: str, type_name: str) -> Paths:
    return lambda number: paths(number).add_key(key, type_name)


def _put(rows: Sequence[Row], key: str, values: Sequence[Any]) -> None:
    for row, value in zip(rows, values, strict=True):
        row[key] = value
