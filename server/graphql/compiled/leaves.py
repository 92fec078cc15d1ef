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

Serialize = Callable[[Any], Any]

UNCHANGED: dict[object, str] = {
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


def serialize_leaf(type_: GraphQLLeafType) -> Serialize:
    """Serializes a value other than None. Raises: NotCompilable, and what the type raises."""
    coerce = type_.coerce_output_value

    def checked(value: Any) -> Any:
        return _require_value(coerce(present(value)))

    return _serialize_enum(checked) if isinstance(type_, GraphQLEnumType) else _serialize_scalar(coerce, checked)


def _require_value(shown: Any) -> Any:
    if shown is None or shown is Undefined:
        raise NotCompilable
    return shown


def _serialize_scalar(coerce: Serialize, checked: Serialize) -> Serialize:
    """Checks the first value of each class. The others are neither exceptions nor awaitable if the first is not."""
    known: set[type] = set()

    def show(value: Any) -> Any:
        if value.__class__ in known:
            return _require_value(coerce(value))
        shown = checked(value)
        known.add(value.__class__)
        return shown

    return show


def _serialize_enum(checked: Serialize) -> Serialize:
    """Serializes each member once. Members are found by identity, since an enum may define its own equality."""
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
