"""From a selection set over plain attributes to one Python function: record in, dict out.

The function knows the usual way only. Whatever else it meets it leaves to the general executor by raising (anything):
it has no effects, so the value may simply be completed again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

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

from server.compiled.leaves import NAMES, USUAL, Odd, present, show_leaf

Core = Callable[[Any, Any], Any]
"""What becomes of a value that is not None, given it and a GraphQLResolveInfo. Raises: Odd or anything."""


@dataclass(slots=True)
class Source:
    """The text of a function that builds one object, while it is written. `holes` are filled by others."""

    type_: GraphQLObjectType
    entries: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
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
        name, made = self._read(attribute), self._name(core)
        self.entries.append(f"{key!r}: {self._null(name, type_)}{made}({name}, info)")

    def build(self) -> Core:
        """The function."""
        lines = [f"    if not {self._name(self.type_.is_type_of)}(o, info): raise Odd"] if self.type_.is_type_of else []
        # Where nothing is read of it, nothing would tell that it is no object.
        lines += self.lines or ["    present(o)"]
        text = "\n".join(["def build(o, info):", *lines, f"    return {{{', '.join(self.entries)}}}"])
        # Only names that GraphQL and Python take for names are in the text.
        exec(compile(text, f"<compiled {self.type_}>", "exec"), self.names)  # noqa: S102
        built: Core = self.names["build"]
        return built

    def _read(self, attribute: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"    {name} = o.{attribute}")
        return name

    def _name(self, value: Any) -> str:
        name = f"f{len(self.names)}"
        self.names[name] = value
        return name

    @staticmethod
    def _null(name: str, type_: GraphQLOutputType) -> str:
        # A non-null field's None is odd to whatever shows it.
        return "" if isinstance(type_, GraphQLNonNull) else f"None if {name} is None else "


def core_of(type_: GraphQLOutputType, objects: Callable[[GraphQLObjectType], Core], schema: GraphQLSchema) -> Core:
    """The function for a type's values, given those for the object types in it."""
    if isinstance(type_, GraphQLNonNull):
        return core_of(type_.of_type, objects, schema)
    if isinstance(type_, GraphQLList):
        return _list_of(type_.of_type, core_of(type_.of_type, objects, schema))
    if isinstance(type_, GraphQLObjectType):
        return objects(type_)
    if is_abstract_type(type_):
        return _abstract(type_, {each.name: objects(each) for each in schema.get_possible_types(type_)})
    assert is_leaf_type(type_)
    show = show_leaf(type_)
    return lambda value, _info: show(value)


def items_of(value: Any) -> Sequence[Any]:
    """A list's items. Raises: Odd for what can be read but once, or not in order."""
    if value.__class__ is not list and value.__class__ is not tuple:
        raise Odd
    items: Sequence[Any] = value
    return items


def _list_of(item_type: GraphQLOutputType, core: Core) -> Core:
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
