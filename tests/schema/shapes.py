"""Compares the GraphQL types with the records that their resolvers return, and reports mismatches.

Strawberry takes a field's type from the annotation of the class attribute and its value from the record,
so no type checker compares them (schema/binding.py).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from strawberry import ID
from strawberry.types.base import StrawberryList, StrawberryObjectDefinition, StrawberryOptional
from strawberry.types.enum import StrawberryEnumDefinition
from strawberry.types.field import StrawberryField
from strawberry.types.lazy_type import LazyType
from strawberry.types.union import StrawberryUnion

from resolvers.events import SharedEventSource

LISTS = (list, tuple, Sequence)


class ShapeWalk:
    """A walk from the root types to all types. Each pair of a type and a record is visited once."""

    def __init__(self) -> None:
        self.records: dict[str, set[Any]] = {}
        self._mismatches: dict[tuple[str, Any], list[str]] = {}

    def mismatches_below(self, type_: Any) -> list[str]:
        """Returns the mismatches of everything that is reachable from a root type."""
        return [line for field in _definition(type_).fields for line in self._field_mismatches(type_, field, None)]

    def mismatches(self, path: str, type_: Any, record: Any) -> list[str]:
        """Returns the reasons why values annotated as `record` do not fit the GraphQL type `type_`."""
        records = _alternatives(record)
        if isinstance(type_, LazyType):
            return self.mismatches(path, type_.resolve_type(), record)
        if isinstance(type_, StrawberryOptional):
            return self.mismatches(path, type_.of_type, _union([each for each in records if not _is_null(each)]))
        if NoneType in records:
            return [f"{path}: may be None, and its type is not nullable"]
        if isinstance(type_, StrawberryList):
            return self._list_mismatches(path, type_, record)
        if isinstance(type_, StrawberryUnion):
            return self._union_mismatches(path, type_, records)
        if definition := getattr(type_, "__strawberry_definition__", None):
            implementing = records if definition.is_interface else [record]
            return [line for each in implementing for line in self._object_mismatches(path, definition, each)]
        expected = type_.wrapped_cls if isinstance(type_, StrawberryEnumDefinition) else str if type_ is ID else type_
        return [] if record is expected else [f"{path}: {_name(record)} is no {_name(expected)}"]

    def _list_mismatches(self, path: str, type_: StrawberryList, record: Any) -> list[str]:
        if get_origin(record) not in LISTS:
            return [f"{path}: {_name(record)} is no list"]
        return self.mismatches(path, type_.of_type, get_args(record)[0])

    def _union_mismatches(self, path: str, type_: StrawberryUnion, records: Sequence[Any]) -> list[str]:
        """Returns the mismatches of each member of the union that no record fits."""
        by_member = [[self.mismatches(path, member, record) for record in records] for member in type_.types]
        return [line for row in by_member if all(row) for line in min(row, key=len)]

    def _object_mismatches(self, path: str, definition: StrawberryObjectDefinition, record: Any) -> list[str]:
        if not is_dataclass(get_origin(record) or record):
            return [f"{path}: {_name(record)} is no record"]
        key = definition.name, record
        if key not in self._mismatches:
            self._mismatches[key] = []  # Ends the recursion if the type contains itself.
            if not definition.is_interface:
                self.records.setdefault(definition.name, set()).add(record)
            fields = definition.fields
            self._mismatches[key] += [
                line for f in fields for line in self._field_mismatches(definition.origin, f, record)
            ]
        return self._mismatches[key]

    def _field_mismatches(self, type_: Any, field: StrawberryField, record: Any) -> Iterator[str]:
        path = f"{_definition(type_).name}.{field.python_name}"
        if field.base_resolver is None:
            annotation = attributes(record).get(field.python_name)
            if annotation is None:
                yield f"{path}: {_name(record)} has no such attribute"
                return
        else:
            hints = get_type_hints(field.base_resolver.wrapped_func)
            annotation = hints["return"]
            if record is not None and "root" in hints and hints["root"] not in (record, Any):
                yield f"{path}: its resolver takes {_name(hints['root'])}, not {_name(record)}"
        yield from self.mismatches(path, field.type, _yielded_type(annotation))


def _is_null(record: Any) -> bool:
    """Returns whether the value makes a nullable field null: None, or the error of an item of a list."""
    return record is NoneType or (isinstance(record, type) and issubclass(record, Exception))


def attributes(record: Any) -> dict[str, Any]:
    """Returns the types of a record's fields and properties by name.

    Type parameters are replaced by their arguments.
    """
    origin = get_origin(record) or record
    bases = [*getattr(origin, "__orig_bases__", ()), record]
    arguments = {
        parameter: argument
        for base in bases
        for parameter, argument in zip(getattr(get_origin(base), "__parameters__", ()), get_args(base), strict=False)
    }
    properties = {name: value for each in reversed(origin.__mro__) for name, value in vars(each).items()}
    types = {
        name: get_type_hints(value.fget)["return"] for name, value in properties.items() if isinstance(value, property)
    }
    types |= get_type_hints(origin)
    return {name: _with_arguments(annotation, arguments) for name, annotation in types.items()}


def _with_arguments(annotation: Any, arguments: dict[Any, Any]) -> Any:
    parameters = getattr(annotation, "__parameters__", ())
    if annotation in arguments:
        return arguments[annotation]
    return annotation[tuple(arguments[each] for each in parameters)] if parameters else annotation


def _yielded_type(annotation: Any) -> Any:
    """Returns the type that a subscription's resolver yields, or that another resolver returns."""
    if get_origin(annotation) in (AsyncGenerator, AsyncIterator):
        return get_args(annotation)[0]
    if isinstance(annotation, type) and issubclass(annotation, SharedEventSource):
        return get_type_hints(annotation.record)["return"]
    iterate = getattr(annotation, "__aiter__", None)
    return annotation if iterate is None else _yielded_type(get_type_hints(iterate)["return"])


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _union(alternatives: Iterable[Any]) -> Any:
    return Union[tuple(alternatives)]  # noqa: UP007


def _definition(type_: Any) -> StrawberryObjectDefinition:
    definition: StrawberryObjectDefinition = type_.__strawberry_definition__
    return definition


def _name(annotation: Any) -> str:
    return getattr(annotation, "__name__", None) or str(annotation)
