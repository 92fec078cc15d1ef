"""Serializes scalars and enums in compiled functions. Unusual values are left to graphql-core's executor."""

import math
from collections.abc import Callable
from enum import Enum
from inspect import isawaitable
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLLeafType,
    Undefined,
)

Serialize = Callable[[Any], Any]

UNCHANGED = {
    "String": "{v}.__class__ is str",
    "ID": "{v}.__class__ is str",
    "Int": "{v}.__class__ is int and -2147483648 <= {v} <= 2147483647",
    "Float": "{v}.__class__ is float and isfinite({v})",
    "Boolean": "{v} is True or {v} is False",
}
"""Python conditions under which a value is serialized unchanged, by the name of its scalar.

`{v}` is replaced by the value's name.
"""

NAMES = {"isfinite": math.isfinite}
"""The names that the conditions in UNCHANGED use."""


class NotCompilable(Exception):
    """A value or a type that compiled functions cannot complete."""


def require_present(value: Any) -> Any:
    """Returns the value. Raises: NotCompilable for None, awaitables, and exceptions that a resolver returned."""
    if value is None or value is Undefined or isinstance(value, Exception) or isawaitable(value):
        raise NotCompilable
    return value


def serialize_leaf(type_: GraphQLLeafType) -> Serialize:
    """Returns the function that serializes values other than None.

    The function raises NotCompilable and the errors of the type.
    """
    coerce = type_.coerce_output_value

    def serialize_checked(value: Any) -> Any:
        return _require_result(coerce(require_present(value)))

    if isinstance(type_, GraphQLEnumType):
        return _serialize_enum(serialize_checked)
    return _serialize_scalar(coerce, serialize_checked)


def _require_result(serialized: Any) -> Any:
    if serialized is None or serialized is Undefined:
        raise NotCompilable
    return serialized


def _serialize_scalar(coerce: Serialize, serialize_checked: Serialize) -> Serialize:
    """Checks only the first value of each class: all values of a class are awaitable or exceptions, or none is."""
    checked_classes: set[type] = set()

    def serialize(value: Any) -> Any:
        if value.__class__ in checked_classes:
            return _require_result(coerce(value))
        serialized = serialize_checked(value)
        checked_classes.add(value.__class__)
        return serialized

    return serialize


def _serialize_enum(serialize_checked: Serialize) -> Serialize:
    """Serializes each member once. Members are found by identity, since an enum may define its own equality."""
    members: dict[int, tuple[Enum, Any]] = {}

    def serialize(value: Any) -> Any:
        known = members.get(id(value))
        if known is not None:
            return known[1]
        serialized = serialize_checked(value)
        if isinstance(value, Enum):
            members[id(value)] = value, serialized
        return serialized

    return serialize
