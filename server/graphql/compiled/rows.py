"""Completes objects that have resolvers in some fields: field by field, each field for all objects of a list.

A compiled function builds a row for each object from its plain attributes, and leaves the other fields open. If an open
field has a batch resolver (schema/binding.py), it is filled for all objects at once. Otherwise graphql-core's executor
resolves it for each object.
"""

import asyncio
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any

from graphql import (
    GraphQLAbstractType,
    GraphQLField,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLResolveInfo,
    GraphQLSchema,
    is_abstract_type,
    is_leaf_type,
)
from graphql.execution import Executor
from graphql.execution.collect_fields import FieldDetailsList
from graphql.execution.executor import to_nodes
from graphql.execution.values import get_argument_values
from graphql.pyutils import Path
from strawberry import Info
from strawberry.types.arguments import convert_arguments
from strawberry.types.field import StrawberryField

from server.graphql.compiled.leaves import NotCompilable
from server.graphql.compiled.objects import CompleteValue, CompleteValues, items_of
from server.graphql.fair_shares import MeasuredAwaitable, wait_for_turn

MAX_OBJECTS_AT_ONCE = 100
"""Objects that graphql-core's executor completes before other requests get their turn. All of them take about 10 ms."""

CompletedFields = dict[str, Any]
"""The completed fields of one object, by response name."""

PathOfRow = Callable[[int], Path]
"""Returns the path in the response of the value with this index."""


@dataclass(slots=True)
class CompletionRun:
    """One execution of a plan. `info` belongs to the field that returned the values."""

    executor: Executor[Any]
    info: GraphQLResolveInfo[Any]


class OpenField(ABC):
    """A field that the compiled function of its object type leaves open."""

    @abstractmethod
    async def fill(
        self, run: CompletionRun, objects: Sequence[Any], rows: Sequence[CompletedFields], paths: PathOfRow
    ) -> None:
        """Completes the field for each object, and sets it in the object's row."""


class CompletionPlan(ABC):
    """Completes values of one type together."""

    @abstractmethod
    async def complete(self, run: CompletionRun, values: Sequence[Any], paths: PathOfRow) -> list[Any]:
        """Completes values other than None, in order. Raises: NotCompilable, and what resolvers raise."""


@dataclass(slots=True)
class CompiledPlan(CompletionPlan):
    """Completes values without resolvers."""

    complete_one: CompleteValue

    async def complete(self, run: CompletionRun, values: Sequence[Any], paths: PathOfRow) -> list[Any]:
        complete_one, info = self.complete_one, run.info
        return [complete_one(value, info) for value in values]


@dataclass(slots=True)
class CompiledObjectPlan(CompiledPlan):
    """Completes objects without resolvers by one call for all."""

    complete_many: CompleteValues

    async def complete(self, run: CompletionRun, values: Sequence[Any], paths: PathOfRow) -> list[Any]:
        return self.complete_many(values, run.info)


@dataclass
class ObjectPlan(CompletionPlan):
    """Completes objects of one type that have open fields."""

    build_many: CompleteValues
    open_fields: Sequence[OpenField]

    async def complete(self, run: CompletionRun, values: Sequence[Any], paths: PathOfRow) -> list[Any]:
        rows = self.build_many(values, run.info)
        if rows:
            await await_all(
                [MeasuredAwaitable(open_field.fill(run, values, rows, paths)) for open_field in self.open_fields]
            )
        return rows


@dataclass(slots=True)
class ListPlan(CompletionPlan):
    """Completes lists: the items of all lists are completed together."""

    items: CompletionPlan
    are_items_nullable: bool

    async def complete(self, run: CompletionRun, values: Sequence[Any], paths: PathOfRow) -> list[Any]:
        lists = [items_of(value) for value in values]
        all_items = [item for each in lists for item in each]
        ends = list(accumulate(map(len, lists)))

        def item_path(index: int) -> Path:
            list_index = bisect_right(ends, index)
            return paths(list_index).add_key(index - ends[list_index] + len(lists[list_index]), None)

        completed = iter(await complete_present(self.items, self.are_items_nullable, run, all_items, item_path))
        return [list(islice(completed, len(each))) for each in lists]


@dataclass(slots=True)
class AbstractPlan(CompletionPlan):
    """Completes values of a union or an interface: the values of each object type together."""

    type_: GraphQLAbstractType
    type_name_of: Callable[..., Any]
    plans: Mapping[str, CompletionPlan]
    """The plan of each possible object type, by its name."""

    async def complete(self, run: CompletionRun, values: Sequence[Any], paths: PathOfRow) -> list[Any]:
        indexes: dict[str, list[int]] = {}
        for index, value in enumerate(values):
            indexes.setdefault(self.type_name_of(value, run.info, self.type_), []).append(index)
        completed: list[Any] = [None] * len(values)
        if indexes:
            await await_all([self._complete_type(run, values, paths, completed, *each) for each in indexes.items()])
        return completed

    async def _complete_type(
        self,
        run: CompletionRun,
        values: Sequence[Any],
        paths: PathOfRow,
        completed: list[Any],
        type_name: str,
        indexes: Sequence[int],
    ) -> None:
        own_values = [values[index] for index in indexes]
        results = await self.plans[type_name].complete(run, own_values, lambda number: paths(indexes[number]))
        for index, result in zip(indexes, results, strict=True):
            completed[index] = result


async def complete_present(
    plan: CompletionPlan, is_nullable: bool, run: CompletionRun, values: Sequence[Any], paths: PathOfRow
) -> list[Any]:
    """Completes values, some of which may be None. Raises: NotCompilable, also for None in a non-null type."""
    present = [index for index, value in enumerate(values) if value is not None]
    if len(present) == len(values):
        return await plan.complete(run, values, paths)
    if not is_nullable:
        raise NotCompilable
    results = await plan.complete(run, [values[index] for index in present], lambda number: paths(present[number]))
    completed: list[Any] = [None] * len(values)
    for index, result in zip(present, results, strict=True):
        completed[index] = result
    return completed


@dataclass(slots=True)
class OpenAttribute(OpenField):
    """A plain attribute whose value has fields with resolvers."""

    key: str
    attribute: str
    type_name: str
    plan: CompletionPlan
    is_nullable: bool

    async def fill(
        self, run: CompletionRun, objects: Sequence[Any], rows: Sequence[CompletedFields], paths: PathOfRow
    ) -> None:
        values = [getattr(each, self.attribute) for each in objects]
        field_paths = _field_paths(paths, self.key, self.type_name)
        _set_field(rows, self.key, await complete_present(self.plan, self.is_nullable, run, values, field_paths))


@dataclass(slots=True)
class OpenBatchField(OpenField):
    """A field with a batch resolver, which is called once for all objects."""

    key: str
    type_: GraphQLObjectType
    field: GraphQLField
    bound: StrawberryField
    resolve: Callable[..., Awaitable[Sequence[Any]]]
    details: FieldDetailsList
    plan: CompletionPlan
    is_nullable: bool

    async def fill(
        self, run: CompletionRun, objects: Sequence[Any], rows: Sequence[CompletedFields], paths: PathOfRow
    ) -> None:
        field_paths = _field_paths(paths, self.key, self.type_.name)
        raw_info = run.executor.build_resolve_info(self.field, to_nodes(self.details), self.type_, field_paths(0))
        info: Info[Any, Any] = Info(_raw_info=raw_info, _field=self.bound)
        values = await self.resolve(objects, info, **self._arguments(run.executor, info))
        field_run = CompletionRun(run.executor, raw_info)
        _set_field(rows, self.key, await complete_present(self.plan, self.is_nullable, field_run, values, field_paths))

    def _arguments(self, executor: Executor[Any], info: Info[Any, Any]) -> dict[str, Any]:
        """Returns the field's arguments by their names in Python. Raises: NotCompilable, GraphQLError."""
        if not self.bound.arguments:
            return {}
        if executor.middleware_manager:
            # It checks the arguments of fields that graphql-core's executor resolves.
            raise NotCompilable
        first, schema = self.details[0], info.schema
        given = get_argument_values(self.field, first.node, executor.variable_values, first.fragment_variable_values)
        registry = schema.schema_converter.scalar_registry
        return convert_arguments(given, self.bound.arguments, registry, schema.config, info)


@dataclass(slots=True)
class OpenSingleField(OpenField):
    """A field that graphql-core's executor resolves for each object."""

    key: str
    type_: GraphQLObjectType
    details: FieldDetailsList

    async def fill(
        self, run: CompletionRun, objects: Sequence[Any], rows: Sequence[CompletedFields], paths: PathOfRow
    ) -> None:
        for start in range(0, len(objects), MAX_OBJECTS_AT_ONCE):
            if start:
                await asyncio.sleep(0)
                await wait_for_turn()
            indexes = range(start, min(start + MAX_OBJECTS_AT_ONCE, len(objects)))
            await self._fill_some(run.executor, indexes, objects, rows, paths)

    async def _fill_some(
        self,
        executor: Executor[Any],
        indexes: range,
        objects: Sequence[Any],
        rows: Sequence[CompletedFields],
        paths: PathOfRow,
    ) -> None:
        waiting: list[Awaitable[None]] = []
        try:
            for index in indexes:
                path = paths(index).add_key(self.key, self.type_.name)
                value = executor.execute_field(self.type_, objects[index], self.details, path, None)
                if executor.is_awaitable(value):
                    waiting.append(self._set_awaited(rows[index], value))
                else:
                    rows[index][self.key] = value
        except Exception:
            # Started coroutines must be awaited.
            executor.settle_in_background(waiting)
            raise
        if waiting:
            await await_all(waiting)

    async def _set_awaited(self, row: CompletedFields, value: Awaitable[Any]) -> None:
        row[self.key] = await value


async def await_all(waiting: Sequence[Any]) -> None:
    """Awaits all awaitables, the first without a task. If one fails, cancels the later ones and raises the error."""
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


def plan_of(
    type_: GraphQLOutputType, object_plan: Callable[[GraphQLObjectType], CompletionPlan], schema: GraphQLSchema
) -> CompletionPlan:
    """Returns the plan for a type, given the plans of object types. Raises: NotCompilable."""
    if isinstance(type_, GraphQLNonNull):
        return plan_of(type_.of_type, object_plan, schema)
    if isinstance(type_, GraphQLList):
        return ListPlan(plan_of(type_.of_type, object_plan, schema), is_nullable(type_.of_type))
    if isinstance(type_, GraphQLObjectType):
        return object_plan(type_)
    if is_abstract_type(type_) and type_.resolve_type is not None:
        plans = {each.name: object_plan(each) for each in schema.get_possible_types(type_)}
        return AbstractPlan(type_, type_.resolve_type, plans)
    assert not is_leaf_type(type_)
    raise NotCompilable


def is_nullable(type_: GraphQLOutputType) -> bool:
    """Returns whether values of the type may be None."""
    return not isinstance(type_, GraphQLNonNull)


def _field_paths(paths: PathOfRow, key: str, type_name: str) -> PathOfRow:
    return lambda index: paths(index).add_key(key, type_name)


def _set_field(rows: Sequence[CompletedFields], key: str, values: Sequence[Any]) -> None:
    for row, value in zip(rows, values, strict=True):
        row[key] = value
