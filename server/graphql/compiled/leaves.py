"""Scalars and enums in compiled functions: the usual value at once, every other as the general executor shows it."""

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
"""When a value is shown as it is, as Python; `v` is the value's name."""

NAMES = {"isfinite": math.isfinite}
"""What those conditions speak of."""


class Odd(Exception):
    """Something of which only the general executor tells what becomes of it."""


def present(value: Any) -> Any:
    """The value. Raises: Odd for None, what has to be waited for, and exceptions, which are raised in the end."""
    if value is None or value is Undefined or isinstance(value, Exception) or isawaitable(value):
        raise Odd
    return value


def show_leaf(type_: GraphQLLeafType) -> Show:
    """What the type makes of a value that is not None. Raises: Odd, and what the type raises."""
    coerce = type_.coerce_output_value

    def checked(value: Any) -> Any:
        return _kept(coerce(present(value)))

    return _by_member(checked) if isinstance(type_, GraphQLEnumType) else _by_class(coerce, checked)


def _kept(shown: Any) -> Any:
    if shown is None or shown is Undefined:
        raise Odd
    return shown


def _by_class(coerce: Show, checked: Show) -> Show:
    """A class of which one value was no exception and nothing to wait for has no such values."""
    known: set[type] = set()

    def show(value: Any) -> Any:
        if value.__class__ in known:
            return _kept(coerce(value))
        shown = checked(value)
        known.add(value.__class__)
        return shown

    return show


def _by_member(checked: Show) -> Show:
    """An enum's members are always shown alike. Looked up by identity: equal is not the same to an enum."""
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
