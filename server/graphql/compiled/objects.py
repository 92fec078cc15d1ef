"""Compiles a selection set over plain attributes to Python functions: for one record, and for many.

The functions handle usual values only. They raise for any other value and have no effects, so that graphql-core's
executor can complete the value again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from graphql import (
    GraphQLAbstractType,
    GraphQLEnumType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLScalarType,
    GraphQLSchema,
    get_nullable_type,
    is_abstract_type,
    is_leaf_type,
)

from server.graphql.compiled.leaves import NAMES, UNCHANGED, NotCompilable, present, serialize_leaf

CompleteValue = Callable[[Any, Any], Any]
"""Completes a value other than None, given a GraphQLResolveInfo. Raises: NotCompilable or anything."""

CompleteValues = Callable[[Sequence[Any], Any], list[Any]]
"""Completes many values, none of which is None."""


class ObjectFunctions(NamedTuple):
    """Builds objects of one type."""

    one: CompleteValue
    many: CompleteValues


@dataclass(slots=True)
class FunctionSource:
    """The source of functions that build objects. Gaps are filled by plans.

    `read` are the attributes, `made` are computed values, by name.
    """

    type_: GraphQLObjectType
    entries: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    made: dict[str, str] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=lambda: {"NotCompilable": NotCompilable, "present": present, **NAMES})

    def constant(self, key: str, value: str) -> None:
        """Adds an entry with a constant value."""
        self.entries.append(f"{key!r}: {value!r}")

    def gap(self, key: str) -> None:
        """Adds a gap."""
        self.entries.append(f"{key!r}: None")

    def leaf(self, key: str, attribute: str, type_: GraphQLOutputType) -> None:
        """Adds an attribute that is a scalar or an enum."""
        inner = cast("GraphQLScalarType | GraphQLEnumType", get_nullable_type(type_))
        name, show, usual = self._read(attribute), self._name(serialize_leaf(inner)), UNCHANGED.get(inner)
        shown = f"{name} if {usual.format(v=name)} else {show}({name})" if usual else f"{show}({name})"
        self.entries.append(f"{key!r}: {self._null(name, type_)}{shown}")

    def value(self, key: str, attribute: str, type_: GraphQLOutputType, core: CompleteValue) -> None:
        """Adds any other attribute."""
        name, make = self._read(attribute), self._name(core)
        self.made[name] = f"{self._null(name, type_)}{make}({name}, info)"
        self.entries.append(f"{key!r}: made_{name}")

    def build(self) -> ObjectFunctions:
        """Compiles and returns the functions."""
        text = "\n".join([*self._one(), *self._many()])
        # The source holds only names that are valid in GraphQL and in Python.
        exec(compile(text, f"<compiled {self.type_}>", "exec"), self.names)  # noqa: S102
        return ObjectFunctions(self.names["build"], self.names["build_many"])

    def _one(self) -> list[str]:
        made = [f"made_{name} = {make}" for name, make in self.made.items()]
        return ["def build(o, info):", *_indented(1, [*self._read_lines(), *made, f"return {self._row()}"])]

    def _many(self) -> list[str]:
        # Neighbouring records share values, so results are reused for the same object. The object is kept with its
        # result, since another object could get its id.
        known = [f"known_{name} = {{}}" for name in self.made]
        made = [line for name, make in self.made.items() for line in _computed_once(name, make)]
        loop = _indented(1, [*self._read_lines(), *made, f"rows.append({self._row()})"])
        return [
            "def build_many(items, info):",
            *_indented(1, [*known, "rows = []", "for o in items:", *loop, "return rows"]),
        ]

    def _read_lines(self) -> list[str]:
        type_of = self.type_.is_type_of
        checked = [f"if not {self._name(type_of)}(o, info): raise NotCompilable"] if type_of else []
        # If no attribute is read, nothing would reveal that the value is not an object.
        return [*checked, *(self.read or ["present(o)"])]

    def _row(self) -> str:
        return f"{{{', '.join(self.entries)}}}"

    def _read(self, attribute: str) -> str:
        name = f"v{len(self.read)}"
        self.read.append(f"{name} = o.{attribute}")
        return name

    def _name(self, value: Any) -> str:
        name = f"f{len(self.names)}"
        self.names[name] = value
        return name

    @staticmethod
    def _null(name: str, type_: GraphQLOutputType) -> str:
        # None in a non-null field is unusual for every leaf.
        return "" if isinstance(type_, GraphQLNonNull) else f"None if {name} is None else "


def _computed_once(name: str, make: str) -> list[str]:
    return [
        f"seen = known_{name}.get(id({name}))",
        f"if seen is None: seen = known_{name}[id({name})] = {name}, {make}",
        f"made_{name} = seen[1]",
    ]


def _indented(levels: int, lines: Sequence[str]) -> list[str]:
    return [f"{'    ' * levels}{line}" for line in lines]


def complete_value_of(
    type_: GraphQLOutputType, objects: Callable[[GraphQLObjectType], ObjectFunctions], schema: GraphQLSchema
) -> CompleteValue:
    """Returns the function for a type's values, given the functions for the object types in it."""
    if isinstance(type_, GraphQLNonNull):
        return complete_value_of(type_.of_type, objects, schema)
    if isinstance(type_, GraphQLList):
        return _list_of(type_.of_type, objects, schema)
    if isinstance(type_, GraphQLObjectType):
        return objects(type_).one
    if is_abstract_type(type_):
        return _abstract(type_, {each.name: objects(each).one for each in schema.get_possible_types(type_)})
    assert is_leaf_type(type_)
    show = serialize_leaf(type_)
    return lambda value, _info: show(value)


def items_of(value: Any) -> Sequence[Any]:
    """Returns the items of a list. Raises: NotCompilable for iterators and unordered collections."""
    if value.__class__ is not list and value.__class__ is not tuple:
        raise NotCompilable
    items: Sequence[Any] = value
    return items


def _list_of(
    item_type: GraphQLOutputType, objects: Callable[[GraphQLObjectType], ObjectFunctions], schema: GraphQLSchema
) -> CompleteValue:
    if isinstance(item_type, GraphQLNonNull) and isinstance(item_type.of_type, GraphQLObjectType):
        many = objects(item_type.of_type).many
        return lambda value, info: many(items_of(value), info)
    core = complete_value_of(item_type, objects, schema)
    if isinstance(item_type, GraphQLNonNull):
        return lambda value, info: [core(item, info) for item in items_of(value)]
    return lambda value, info: [None if item is None else core(item, info) for item in items_of(value)]


def _abstract(type_: GraphQLAbstractType, cores: Mapping[str, CompleteValue]) -> CompleteValue:
    resolve = type_.resolve_type
    if resolve is None:
        raise NotCompilable

    def dispatch(value: Any, info: Any) -> Any:
        return cores[cast("str", resolve(value, info, type_))](value, info)

    return dispatch
