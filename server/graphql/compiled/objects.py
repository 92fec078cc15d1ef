"""Compiles a selection set of plain attributes to two Python functions: one completes a record, the other a list.

The functions handle usual values only, and raise an exception for any other value. They have no effects, so that
graphql-core's executor can complete the value again.
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

from server.graphql.compiled.leaves import NAMES, UNCHANGED, NotCompilable, require_present, serialize_leaf

CompleteValue = Callable[[Any, Any], Any]
"""Completes a value other than None, given a GraphQLResolveInfo. Raises: NotCompilable, or any exception."""

CompleteValues = Callable[[Sequence[Any], Any], list[Any]]
"""Completes many values, none of which is None."""


class ObjectFunctions(NamedTuple):
    """The functions that complete objects of one type: one object, or many."""

    one: CompleteValue
    many: CompleteValues


@dataclass(slots=True)
class FunctionSource:
    """Python source of the functions that complete objects of one type. Plans fill the open fields."""

    type_: GraphQLObjectType
    entries: list[str] = field(default_factory=list)
    """The entries of the completed object, as source of a dict."""
    reads: list[str] = field(default_factory=list)
    """Statements that read the record's attributes into variables."""
    computed: dict[str, str] = field(default_factory=dict)
    """Expressions that complete attributes other than leaves, by the variable of the attribute."""
    names: dict[str, Any] = field(
        default_factory=lambda: {"NotCompilable": NotCompilable, "require_present": require_present, **NAMES}
    )
    """Objects that the source refers to, by name."""

    def add_constant(self, key: str, value: str) -> None:
        """Adds an entry with a constant value."""
        self.entries.append(f"{key!r}: {value!r}")

    def leave_open(self, key: str) -> None:
        """Adds an entry that a plan sets later."""
        self.entries.append(f"{key!r}: None")

    def add_leaf(self, key: str, attribute: str, type_: GraphQLOutputType) -> None:
        """Adds an entry for an attribute that is a scalar or an enum."""
        inner = cast("GraphQLScalarType | GraphQLEnumType", get_nullable_type(type_))
        name, serialize, unchanged = self._read(attribute), self._name(serialize_leaf(inner)), UNCHANGED.get(inner.name)
        call = f"{serialize}({name})"
        value = f"{name} if {unchanged.format(v=name)} else {call}" if unchanged else call
        self.entries.append(f"{key!r}: {self._null_case(name, type_)}{value}")

    def add_value(self, key: str, attribute: str, type_: GraphQLOutputType, complete: CompleteValue) -> None:
        """Adds an entry for any other attribute, whose value `complete` completes."""
        name, function = self._read(attribute), self._name(complete)
        self.computed[name] = f"{self._null_case(name, type_)}{function}({name}, info)"
        self.entries.append(f"{key!r}: computed_{name}")

    def build(self) -> ObjectFunctions:
        """Compiles and returns the functions."""
        text = "\n".join([*self._function_for_one(), *self._function_for_many()])
        # The source holds only names that are valid in GraphQL and in Python.
        exec(compile(text, f"<compiled {self.type_}>", "exec"), self.names)  # noqa: S102
        return ObjectFunctions(self.names["complete_one"], self.names["complete_many"])

    def _function_for_one(self) -> list[str]:
        computed = [f"computed_{name} = {expression}" for name, expression in self.computed.items()]
        return [
            "def complete_one(o, info):",
            *_indented(1, [*self._read_lines(), *computed, f"return {self._row()}"]),
        ]

    def _function_for_many(self) -> list[str]:
        # Neighbouring records often share a value, so its result is reused, by the value's id. The value is stored with
        # the result, so that no other value gets the same id.
        caches = [f"cache_{name} = {{}}" for name in self.computed]
        computed = [line for name, expression in self.computed.items() for line in _computed_once(name, expression)]
        loop = _indented(1, [*self._read_lines(), *computed, f"rows.append({self._row()})"])
        return [
            "def complete_many(items, info):",
            *_indented(1, [*caches, "rows = []", "for o in items:", *loop, "return rows"]),
        ]

    def _read_lines(self) -> list[str]:
        type_of = self.type_.is_type_of
        checked = [f"if not {self._name(type_of)}(o, info): raise NotCompilable"] if type_of else []
        # If no attribute is read, None and awaitables must be recognized explicitly.
        return [*checked, *(self.reads or ["require_present(o)"])]

    def _row(self) -> str:
        return f"{{{', '.join(self.entries)}}}"

    def _read(self, attribute: str) -> str:
        name = f"v{len(self.reads)}"
        self.reads.append(f"{name} = o.{attribute}")
        return name

    def _name(self, value: Any) -> str:
        name = f"f{len(self.names)}"
        self.names[name] = value
        return name

    @staticmethod
    def _null_case(name: str, type_: GraphQLOutputType) -> str:
        # None in a non-null field needs no case here: completing it raises.
        return "" if isinstance(type_, GraphQLNonNull) else f"None if {name} is None else "


def _computed_once(name: str, expression: str) -> list[str]:
    return [
        f"cached = cache_{name}.get(id({name}))",
        f"if cached is None: cached = cache_{name}[id({name})] = {name}, {expression}",
        f"computed_{name} = cached[1]",
    ]


def _indented(levels: int, lines: Sequence[str]) -> list[str]:
    return [f"{'    ' * levels}{line}" for line in lines]


def complete_value_of(
    type_: GraphQLOutputType, functions_of: Callable[[GraphQLObjectType], ObjectFunctions], schema: GraphQLSchema
) -> CompleteValue:
    """Returns the function that completes a type's values, given the functions of the object types in it."""
    if isinstance(type_, GraphQLNonNull):
        return complete_value_of(type_.of_type, functions_of, schema)
    if isinstance(type_, GraphQLList):
        return _complete_list_of(type_.of_type, functions_of, schema)
    if isinstance(type_, GraphQLObjectType):
        return functions_of(type_).one
    if is_abstract_type(type_):
        by_name = {each.name: functions_of(each).one for each in schema.get_possible_types(type_)}
        return _complete_abstract(type_, by_name)
    assert is_leaf_type(type_)
    serialize = serialize_leaf(type_)
    return lambda value, _info: serialize(value)


def items_of(value: Any) -> Sequence[Any]:
    """Returns the items of a list. Raises: NotCompilable for iterators and unordered collections."""
    if value.__class__ is not list and value.__class__ is not tuple:
        raise NotCompilable
    items: Sequence[Any] = value
    return items


def _complete_list_of(
    item_type: GraphQLOutputType, functions_of: Callable[[GraphQLObjectType], ObjectFunctions], schema: GraphQLSchema
) -> CompleteValue:
    if isinstance(item_type, GraphQLNonNull) and isinstance(item_type.of_type, GraphQLObjectType):
        complete_many = functions_of(item_type.of_type).many
        return lambda value, info: complete_many(items_of(value), info)
    complete = complete_value_of(item_type, functions_of, schema)
    if isinstance(item_type, GraphQLNonNull):
        return lambda value, info: [complete(item, info) for item in items_of(value)]
    return lambda value, info: [None if item is None else complete(item, info) for item in items_of(value)]


def _complete_abstract(type_: GraphQLAbstractType, by_name: Mapping[str, CompleteValue]) -> CompleteValue:
    """Returns the function that completes a value with the function of its object type."""
    resolve_type = type_.resolve_type
    if resolve_type is None:
        raise NotCompilable

    def dispatch(value: Any, info: Any) -> Any:
        return by_name[cast("str", resolve_type(value, info, type_))](value, info)

    return dispatch
