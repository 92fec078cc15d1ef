"""The fields of the executable schema, and how each is bound."""

from graphql import GraphQLObjectType, GraphQLOutputType, GraphQLUnionType, get_named_type
from strawberry.schema.schema_converter import GraphQLCoreConverter
from strawberry.types.field import StrawberryField


def bound(type_: GraphQLObjectType, name: str) -> StrawberryField:
    """How the field of that name is bound."""
    found = type_.fields[name].extensions[GraphQLCoreConverter.DEFINITION_BACKREF]
    assert isinstance(found, StrawberryField)
    return found


def members(type_: GraphQLOutputType) -> list[GraphQLObjectType]:
    """The object types that a field of this type may give; none for scalars."""
    named = get_named_type(type_)
    if isinstance(named, GraphQLUnionType):
        return list(named.types)
    return [named] if isinstance(named, GraphQLObjectType) else []
