"""Scalars and enums in compiled functions: usual values directly, all others by graphql-core's executor."""

import math
from collections.abc import Callable
from enum import Enum
from inspect import isawaitable
from typing import Any

from graphql import (
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLFloat,
    GraphQLID,
    GraphQLInt,
    GraphQLLeafType,
    GraphQLString,
    Undefined,
)

Show = Callable[[Any], Any]

USUAL: dict[object, str] = {
    GraphQLString: "{v}.__class__ is str",
    GraphQLID: "{v}.__class__ is str",
    GraphQLInt: "{v}.__class__ is int and -2147483648 <= {v} <= 2147483647",
    GraphQLFloat: "{v}.__class__ is float and isfinite({v})",
    GraphQLBoolean: "{v} is True or {v} is False",
}
"""Python conditions under which a value is serialized unchanged; `v` is the name of the value."""

NAMES = {"isfinite": math.isfinite}
"""The names used by those conditions."""


class NotCompilable(Exception):
    """A value or a type that compiled functions cannot complete."""


def present(value: Any) -> Any:
    """Returns the value. Raises: NotCompilable for None, awaitables and exceptions, which are raised in the end."""
    if value is None or value is Undefined or isinstance(value, Exception) or isawaitable(value):
        raise NotCompilable
    return value


def show_leaf(type_: GraphQLLeafType) -> Show:
    """Serializes a value other than None. Raises: NotCompilable, and what the type raises."""
    coerce = type_.coerce_output_value

    def checked(value: Any) -> Any:
        return _kept(coerce(present(value)))

    return _by_member(checked) if isinstance(type_, GraphQLEnumType) else _by_class(coerce, checked)


def _kept(shown: Any) -> Any:
    if shown is None or shown is Undefined:
        raise NotCompilable
    return shown


def _by_class(coerce: Show, checked: Show) -> Show:
    """If one value of a class is neither an exception nor awaitable, no value of it is."""
    known: set[type] = set()

    def show(value: Any) -> Any:
        if value.__class__ in known:
            return _kept(coerce(value))
        shown = checked(value)
        known.add(value.__class__)
        return shown

    return show


def _by_member(checked: Show) -> Show:
    """Enum members are always serialized alike. Looked up by identity, since equality means more to an enum."""
    names: dict[int, tuple[Enum, Any]] = {}

    def show(value: Any) -> Any:
        known = names.get(id(value))
        if known is not None:
            return known[1]
        shown = checked(value)
        if isinstance(value, Enum):
            names[id(value)] = value, shown
        return shown

    return show
