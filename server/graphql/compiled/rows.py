"""Objects with resolvers in some fields: all objects of a list together, resolver by resolver.

A compiled function builds the plain attributes and leaves gaps. A gap is filled for all objects at once where the field
has a resolver for many (schema/binding.py), otherwise by graphql-core's executor for each object.
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

from server.graphql.compiled.leaves import NotCompilable
from server.graphql.compiled.objects import CompleteValue, CompleteValues, items_of

Row = dict[str, Any]
Paths = Callable[[int], Path]
"""Returns the paths of several values in the response."""


@dataclass(slots=True)
class PlanRun:
    """The execution of a plan. `info` belongs to the field that returned the values."""

    executor: Executor[Any]
    info: GraphQLResolveInfo[Any]


class Gap(ABC):
    """One field of many objects."""

    @abstractmethod
    async def fill(self, run: PlanRun, objects: Sequence[Any], rows: Sequence[Row], paths: Paths) -> None:
        """Sets the field in the row of each object."""


class Plan(ABC):
    """The plan that completes values of one type together."""

    pays_for_one = True
    """Whether the plan pays for one object: not where graphql-core's executor completes every field."""

    @abstractmethod
    async def complete(self, run: PlanRun, values: Sequence[Any], paths: Paths) -> list[Any]:
        """Completes values other than None, in order. Raises: NotCompilable, and what resolvers raise."""


@dataclass(slots=True)
class PlainPlan(Plan):
    """Values without resolvers."""

    core: CompleteValue

    async def complete(self, run: PlanRun, values: Sequence[Any], paths: Paths) -> list[Any]:
        core, info = self.core, run.info
        return [core(value, info) for value in values]


@dataclass(slots=True)
class PlainObjectPlan(PlainPlan):
    """Objects without resolvers, built many at once."""

    many: CompleteValues

    async def complete(self, run: PlanRun, values: Sequence[Any], paths: Paths) -> list[Any]:
        return self.many(values, run.info)


@dataclass
class ObjectPlan(Plan):
    """Objects of one type with gaps."""

    build_many: CompleteValues
    gaps: Sequence[Gap]

    def __post_init__(self) -> None:
        # Not where each field with a resolver is resolved for each object.
        self.pays_for_one = not all(isinstance(gap, SingleGap) for gap in self.gaps)

    async def complete(self, run: PlanRun, values: Sequence[Any], paths: Paths) -> list[Any]:
        rows = self.build_many(values, run.info)
        if rows:
            await await_all([gap.fill(run, values, rows, paths) for gap in self.gaps])
        return rows


@dataclass(slots=True)
class ListPlan(Plan):
    """Lists, whose items are completed as one list."""

    items: Plan
    nullable: bool

    async def complete(self, run: PlanRun, values: Sequence[Any], paths: Paths) -> list[Any]:
        lists = [items_of(value) for value in values]
        every = [item for each in lists for item in each]
        ends = list(accumulate(map(len, lists)))

        def path(number: int) -> Path:
            i = bisect_right(ends, number)
            return paths(i).add_key(number - ends[i] + len(lists[i]), None)

        done = iter(await complete_present(self.items, self.nullable, run, every, path))
        return [list(islice(done, len(each))) for each in lists]


async def complete_present(plan: Plan, nullable: bool, run: PlanRun, values: Sequence[Any], paths: Paths) -> list[Any]:
    """Completes values of which some may be None. Raises: NotCompilable, also for None where it is not allowed."""
    there = [number for number, value in enumerate(values) if value is not None]
    if len(there) == len(values):
        return await plan.complete(run, values, paths)
    if not nullable:
        raise NotCompilable
    done = await plan.complete(run, [values[number] for number in there], lambda number: paths(there[number]))
    completed: list[Any] = [None] * len(values)
    for number, value in zip(there, done, strict=True):
        completed[number] = value
    return completed


@dataclass(slots=True)
class AttributeGap(Gap):
    """A plain attribute whose value contains resolvers."""

    key: str
    attribute: str
    type_name: str
    plan: Plan
    nullable: bool

    async def fill(self, run: PlanRun, objects: Sequence[Any], rows: Sequence[Row], paths: Paths) -> None:
        values = [getattr(each, self.attribute) for each in objects]
        inner = _below(paths, self.key, self.type_name)
        _put(rows, self.key, await complete_present(self.plan, self.nullable, run, values, inner))


@dataclass(slots=True)
class BatchGap(Gap):
    """A field with a resolver for many objects, which is called once."""

    key: str
    type_: GraphQLObjectType
    field: GraphQLField
    bound: StrawberryField
    resolve: Callable[[Sequence[Any], Info[Any, Any]], Awaitable[Sequence[Any]]]
    details: FieldDetailsList
    plan: Plan
    nullable: bool

    async def fill(self, run: PlanRun, objects: Sequence[Any], rows: Sequence[Row], paths: Paths) -> None:
        inner = _below(paths, self.key, self.type_.name)
        raw = run.executor.build_resolve_info(self.field, to_nodes(self.details), self.type_, inner(0))
        values = await self.resolve(objects, Info(_raw_info=raw, _field=self.bound))
        below = PlanRun(run.executor, raw)
        _put(rows, self.key, await complete_present(self.plan, self.nullable, below, values, inner))


@dataclass(slots=True)
class SingleGap(Gap):
    """Any other field: graphql-core's executor resolves it for each object."""

    key: str
    type_: GraphQLObjectType
    details: FieldDetailsList

    async def fill(self, run: PlanRun, objects: Sequence[Any], rows: Sequence[Row], paths: Paths) -> None:
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
            # Started coroutines must be awaited.
            executor.settle_in_background(waiting)
            raise
        if waiting:
            await await_all(waiting)

    async def _awaited(self, row: Row, value: Awaitable[Any]) -> None:
        row[self.key] = await value


async def await_all(waiting: Sequence[Any]) -> None:
    """Awaits all, the first one without a task. When one fails, the later ones are cancelled before it is raised."""
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
    """Returns the plan for a type, given those of object types. Raises: NotCompilable for unions and interfaces."""
    if isinstance(type_, GraphQLNonNull):
        return plan_of(type_.of_type, objects)
    if isinstance(type_, GraphQLList):
        return ListPlan(plan_of(type_.of_type, objects), is_nullable(type_.of_type))
    if isinstance(type_, GraphQLObjectType):
        return objects(type_)
    assert not is_leaf_type(type_)
    raise NotCompilable


def is_nullable(type_: GraphQLOutputType) -> bool:
    """Returns whether None is allowed."""
    return not isinstance(type_, GraphQLNonNull)


def _below(paths: Paths, key: str, type_name: str) -> Paths:
    return lambda number: paths(number).add_key(key, type_name)


def _put(rows: Sequence[Row], key: str, values: Sequence[Any]) -> None:
    for row, value in zip(rows, values, strict=True):
        row[key] = value
