"""From a selection set over plain attributes to a Python function: record in, dict out; and one for many records.

They know the usual way only. Whatever else they meet they leave to the general executor by raising (anything): they
have no effects, so the value may simply be completed again.
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

from server.graphql.compiled.leaves import NAMES, USUAL, Odd, present, show_leaf

Core = Callable[[Any, Any], Any]
"""What becomes of a value that is not None, given it and a GraphQLResolveInfo. Raises: Odd or anything."""

CoreOfMany = Callable[[Sequence[Any], Any], list[Any]]
"""The same for many values, none of which is None."""


class Built(NamedTuple):
    """What builds objects of one type."""

    one: Core
    many: CoreOfMany


@dataclass(slots=True)
class Source:
    """The text of the functions that build objects, while it is written. Holes are filled by others.

    `read` are the attributes, `made` what is made of some of them, by name.
    """

    type_: GraphQLObjectType
    entries: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    made: dict[str, str] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=lambda: {"Odd": Odd, "present": present, **NAMES})

    def constant(self, key: str, value: str) -> None:
        """An entry that is always the same."""
        self.entries.append(f"{key!r}: {value!r}")

    def hole(self, key: str) -> None:
        """An entry's place."""
        self.entries.append(f"{key!r}: None")

    def leaf(self, key: str, attribute: str, type_: GraphQLOutputType) -> None:
        """An attribute that is a scalar or an enum."""
        inner = cast("GraphQLScalarType | GraphQLEnumType", get_nullable_type(type_))
        name, show, usual = self._read(attribute), self._name(show_leaf(inner)), USUAL.get(inner)
        shown = f"{name} if {usual.format(v=name)} else {show}({name})" if usual else f"{show}({name})"
        self.entries.append(f"{key!r}: {self._null(name, type_)}{shown}")

    def value(self, key: str, attribute: str, type_: GraphQLOutputType, core: Core) -> None:
        """An attribute that is anything else."""
        name, make = self._read(attribute), self._name(core)
        self.made[name] = f"{self._null(name, type_)}{make}({name}, info)"
        self.entries.append(f"{key!r}: made_{name}")

    def build(self) -> Built:
        """The functions."""
        text = "\n".join([*self._one(), *self._many()])
        # Only names that GraphQL and Python take for names are in the text.
        exec(compile(text, f"<compiled {self.type_}>", "exec"), self.names)  # noqa: S102
        return Built(self.names["build"], self.names["build_many"])

    def _one(self) -> list[str]:
        made = [f"made_{name} = {make}" for name, make in self.made.items()]
        return ["def build(o, info):", *_indented(1, [*self._looked_at(), *made, f"return {self._row()}"])]

    def _many(self) -> list[str]:
        # Neighbours share much: what was made of the same object is taken again. It is kept with what was made of it,
        # since another one could get its id.
        known = [f"known_{name} = {{}}" for name in self.made]
        made = [line for name, make in self.made.items() for line in _made_once(name, make)]
        loop = _indented(1, [*self._looked_at(), *made, f"rows.append({self._row()})"])
        return [
            "def build_many(items, info):",
            *_indented(1, [*known, "rows = []", "for o in items:", *loop, "return rows"]),
        ]

    def _looked_at(self) -> list[str]:
        type_of = self.type_.is_type_of
        checked = [f"if not {self._name(type_of)}(o, info): raise Odd"] if type_of else []
        # Where nothing is read of it, nothing would tell that it is no object.
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
        # A non-null field's None is odd to whatever shows it.
        return "" if isinstance(type_, GraphQLNonNull) else f"None if {name} is None else "


def _made_once(name: str, make: str) -> list[str]:
    return [
        f"seen = known_{name}.get(id({name}))",
        f"if seen is None: seen = known_{name}[id({name})] = {name}, {make}",
        f"made_{name} = seen[1]",
    ]


def _indented(levels: int, lines: Sequence[str]) -> list[str]:
    return [f"{'    ' * levels}{line}" for line in lines]


def core_of(type_: GraphQLOutputType, objects: Callable[[GraphQLObjectType], Built], schema: GraphQLSchema) -> Core:
    """The function for a type's values, given those for the object types in it."""
    if isinstance(type_, GraphQLNonNull):
        return core_of(type_.of_type, objects, schema)
    if isinstance(type_, GraphQLList):
        return _list_of(type_.of_type, objects, schema)
    if isinstance(type_, GraphQLObjectType):
        return objects(type_).one
    if is_abstract_type(type_):
        return _abstract(type_, {each.name: objects(each).one for each in schema.get_possible_types(type_)})
    assert is_leaf_type(type_)
    show = show_leaf(type_)
    return lambda value, _info: show(value)


def items_of(value: Any) -> Sequence[Any]:
    """A list's items. Raises: Odd for what can be read but once, or not in order."""
    if value.__class__ is not list and value.__class__ is not tuple:
        raise Odd
    items: Sequence[Any] = value
    return items


def _list_of(
    item_type: GraphQLOutputType, objects: Callable[[GraphQLObjectType], Built], schema: GraphQLSchema
) -> Core:
    if isinstance(item_type, GraphQLNonNull) and isinstance(item_type.of_type, GraphQLObjectType):
        many = objects(item_type.of_type).many
        return lambda value, info: many(items_of(value), info)
    core = core_of(item_type, objects, schema)
    if isinstance(item_type, GraphQLNonNull):
        return lambda value, info: [core(item, info) for item in items_of(value)]
    return lambda value, info: [None if item is None else core(item, info) for item in items_of(value)]


def _abstract(type_: GraphQLAbstractType, cores: Mapping[str, Core]) -> Core:
    resolve = type_.resolve_type
    if resolve is None:
        raise Odd

    def dispatch(value: Any, info: Any) -> Any:
        return cores[cast("str", resolve(value, info, type_))](value, info)

    return dispatch
