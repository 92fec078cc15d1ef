"""Every type, field, argument and enum value of the schema is described, also for clients that introspect it."""

from collections.abc import Iterator
from typing import Any

from graphql import GraphQLEnumType, build_client_schema, introspection_from_schema

from schema.root import schema
from schema.values.enum_values import ENUM_VALUES

CLIENT_SCHEMA = build_client_schema(introspection_from_schema(schema._schema))
TYPES = {name: type_ for name, type_ in CLIENT_SCHEMA.type_map.items() if not name.startswith("__")}


def described_things() -> Iterator[tuple[str, Any]]:
    """Yields everything that needs a description, by its coordinate."""
    for name, type_ in TYPES.items():
        yield name, type_
        members: dict[str, Any] = getattr(type_, "fields", {}) or getattr(type_, "values", {})
        for member, definition in members.items():
            yield f"{name}.{member}", definition
            for argument, value in (getattr(definition, "args", None) or {}).items():
                yield f"{name}.{member}({argument}:)", value
    for directive in CLIENT_SCHEMA.directives:
        yield f"@{directive.name}", directive


def test_everything_in_the_schema_is_described() -> None:
    missing = [name for name, thing in described_things() if not (thing.description or "").strip()]
    assert not missing, f"Describe it for a stranger; values of enums in schema/values/enum_values.py: {missing}"


def test_descriptions_of_enum_values_are_short_sentences() -> None:
    texts = [text for values in ENUM_VALUES.values() for text in values.values()]
    assert len(texts) > 200
    assert [text for text in texts if not text.endswith(".") or len(text) > 120] == []


def test_table_has_no_values_that_the_schema_lacks() -> None:
    enums = {name: set(type_.values) for name, type_ in TYPES.items() if isinstance(type_, GraphQLEnumType)}
    assert {name: set(values) for name, values in ENUM_VALUES.items()} == enums
