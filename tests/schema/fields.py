"""The fields of the executable schema, and their bindings."""

from graphql import GraphQLObjectType, GraphQLOutputType, get_named_type, is_abstract_type
from strawberry.schema.schema_converter import GraphQLCoreConverter
from strawberry.types.field import StrawberryField

from schema.root import schema


def field_binding(type_: GraphQLObjectType, name: str) -> StrawberryField:
    """Returns the binding of the field."""
    binding = type_.fields[name].extensions[GraphQLCoreConverter.DEFINITION_BACKREF]
    assert isinstance(binding, StrawberryField)
    return binding


def possible_types(type_: GraphQLOutputType) -> list[GraphQLObjectType]:
    """Returns the object types that a field of this type may return. A scalar field has none."""
    named = get_named_type(type_)
    if is_abstract_type(named):
        return list(schema._schema.get_possible_types(named))
    return [named] if isinstance(named, GraphQLObjectType) else []
