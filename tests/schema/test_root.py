"""The schema as a whole: descriptions, export and naming."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLEnumValue,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    build_schema,
    is_introspection_type,
    is_specified_scalar_type,
    print_schema,
    validate_schema,
)

from schema.root import schema

EXPORTED_SDL_FILE = Path(__file__).parents[2] / "schema" / "schema.graphql"
SENTENCE_ENDS = (".", "!", "?", ")")

SchemaElement = GraphQLNamedType | GraphQLField | GraphQLArgument | GraphQLInputField | GraphQLEnumValue


def elements(graphql_schema: GraphQLSchema) -> Iterator[tuple[str, SchemaElement]]:
    """Yields every element that must have a description, with its name."""
    for name, type_ in graphql_schema.type_map.items():
        if is_introspection_type(type_) or is_specified_scalar_type(type_):
            continue
        yield name, type_
        if isinstance(type_, GraphQLObjectType | GraphQLInterfaceType):
            for field_name, field in type_.fields.items():
                yield f"{name}.{field_name}", field
                yield from ((f"{name}.{field_name}({each})", argument) for each, argument in field.args.items())
        elif isinstance(type_, GraphQLInputObjectType):
            yield from ((f"{name}.{each}", field) for each, field in type_.fields.items())
        elif isinstance(type_, GraphQLEnumType):
            yield from ((f"{name}.{each}", value) for each, value in type_.values.items())


def elements_without_description(graphql_schema: GraphQLSchema) -> list[str]:
    return [name for name, element in elements(graphql_schema) if not (element.description or "").strip()]


def test_schema_elements_all_have_descriptions() -> None:
    names = elements_without_description(schema._schema)
    assert not names, (
        f"Describe these elements in schema/ (arguments: resolvers/, enums: schema/values/): {', '.join(names)}."
    )


def test_schema_descriptions_are_sentences() -> None:
    names = [
        name
        for name, element in elements(schema._schema)
        if not (element.description or "").endswith(SENTENCE_ENDS) or (element.description or "")[:1].isspace()
    ]
    assert not names, f"End the descriptions of these elements with a full stop: {', '.join(names)}."


@pytest.mark.parametrize(
    ("sdl", "missing"),
    [
        ('type Query { "A." a: Int }', ["Query"]),
        ('"Q." type Query { a: Int }', ["Query.a"]),
        ('"Q." type Query { "A." a(b: Int): Int }', ["Query.a(b)"]),
        ('"Q." type Query { "A." a("B." b: In): Int } "I." input In { c: Int }', ["In.c"]),
        ('"Q." type Query { "A." a: E } enum E { X }', ["E", "E.X"]),
        ('"Q." type Query { "A." a: E } "E." enum E { "X." X Y }', ["E.Y"]),
        ('"Q." type Query { "A." a: U } union U = Query', ["U"]),
        ('"Q." type Query { "A." a: S } "" scalar S', ["S"]),
    ],
)
def test_missing_description_is_detected(sdl: str, missing: list[str]) -> None:
    assert elements_without_description(build_schema(sdl)) == missing


def test_exported_schema_equals_served_schema() -> None:
    assert EXPORTED_SDL_FILE.read_text(encoding="utf-8").rstrip("\n") == schema.as_str().rstrip("\n"), (
        "Run `make schema` and commit schema/schema.graphql."
    )


def test_exported_schema_is_valid_and_parses() -> None:
    assert validate_schema(schema._schema) == []
    exported = build_schema(schema.as_str())
    assert build_schema(print_schema(exported)).type_map.keys() == exported.type_map.keys()


def test_schema_names_follow_case_conventions() -> None:
    enums = [type_ for type_ in schema._schema.type_map.values() if isinstance(type_, GraphQLEnumType)]
    values = [value for enum in enums if not is_introspection_type(enum) for value in enum.values]
    assert [value for value in values if not value.isupper()] == []
    named = [name for name, element in elements(schema._schema) if not isinstance(element, GraphQLEnumValue)]
    names = [name.rpartition(".")[2] for name in named if "." in name]
    assert [name for name in names if "_" in name or name[:1].isupper()] == []
