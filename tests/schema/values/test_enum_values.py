"""The table of enum values fits the schema, and clients that introspect the schema see it."""

from graphql import GraphQLEnumType, build_client_schema, introspection_from_schema

from schema.root import schema
from schema.values.enum_values import ENUM_VALUES

CLIENT_TYPES = build_client_schema(introspection_from_schema(schema._schema)).type_map
ENUMS = {
    name: {value: definition.description for value, definition in type_.values.items()}
    for name, type_ in CLIENT_TYPES.items()
    if isinstance(type_, GraphQLEnumType) and not name.startswith("__")
}


def test_introspection_has_the_description_of_every_enum_value() -> None:
    assert ENUMS == ENUM_VALUES


def test_descriptions_of_enum_values_are_short_sentences() -> None:
    texts = [text for values in ENUM_VALUES.values() for text in values.values()]
    assert len(texts) > 200
    assert [text for text in texts if not text.endswith(".") or len(text) > 120] == []
