"""Decides from the schema which documents may share one execution.

A field with a resolver depends on the viewer unless its binding marks it as shared. A coalesced query may also select
fields that are bound for audiences.
"""

from collections.abc import Iterator
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    visit,
)
from strawberry.schema.schema_converter import GraphQLCoreConverter
from strawberry.types.field import StrawberryField
from strawberry.utils.str_converters import to_camel_case

from schema.binding import NO_KEY, SCOPE, SERVES_AUDIENCES, SHARED


def depends_on_viewer(schema: GraphQLSchema, document: DocumentNode) -> bool:
    """Returns whether two viewers with the same rights could get different data for the same event.

    Looks at the whole document, including operations and fragments that are not executed. It may return True for a
    document that does not depend on the viewer, never False for one that does.
    """
    # Subscribers share the root field; its event source checks the rights of each.
    roots = {schema.query_type, schema.mutation_type, schema.subscription_type}
    return not all(
        field is not None and is_shared(field)
        for type_, field in _selected_fields(schema, document)
        if type_ not in roots
    )


def suits_audience(schema: GraphQLSchema, document: DocumentNode) -> bool:
    """Returns whether one execution may answer several viewers, because each field suits an audience."""
    return all(field is not None and field_suits_audience(field) for _, field in _selected_fields(schema, document))


def metadata_values(schema: GraphQLSchema, document: DocumentNode, key: str) -> list[Any]:
    """Returns the values of a metadata key on the fields that the document selects."""
    fields = (field for _, field in _selected_fields(schema, document))
    return [field.metadata[key] for field in fields if field is not None and field.metadata.get(key) is not None]


def required_scopes(schema: GraphQLSchema, document: DocumentNode) -> dict[str, str]:
    """Returns the scope of each root field that the document selects, by the name of the field.

    Looks at all operations of the document.
    """
    roots = {schema.query_type, schema.mutation_type, schema.subscription_type}
    fields = (field for type_, field in _selected_fields(schema, document) if type_ in roots and field is not None)
    return {
        field.graphql_name or to_camel_case(field.python_name): field.metadata.get(SCOPE, NO_KEY) for field in fields
    }


def is_shared(field: StrawberryField) -> bool:
    """Returns whether the field is the same for every viewer: marked as shared, or a plain attribute without guards."""
    return bool(field.metadata.get(SHARED)) or (field.base_resolver is None and not field.extensions)


def field_suits_audience(field: StrawberryField) -> bool:
    """Returns whether the field is the same for all viewers of an audience who are not excluded."""
    return bool(field.metadata.get(SERVES_AUDIENCES)) or is_shared(field)


_SelectedField = tuple[GraphQLObjectType, StrawberryField | None]
"""An object type, and the binding of its selected field; None for introspection and unknown fields."""


def _selected_fields(schema: GraphQLSchema, document: DocumentNode) -> Iterator[_SelectedField]:
    """Yields each selected field once for every object type that it may be selected on."""
    type_info = TypeInfo(schema)
    visitor = _FieldVisitor(schema, type_info)
    visit(document, TypeInfoVisitor(type_info, visitor))
    return iter(visitor.selected)


class _FieldVisitor(Visitor):
    def __init__(self, schema: GraphQLSchema, type_info: TypeInfo) -> None:
        super().__init__()
        self.selected: list[_SelectedField] = []
        self._schema, self._type_info = schema, type_info

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        parent, name = self._type_info.get_parent_type(), node.name.value
        if name != "__typename":
            self.selected += [(type_, _binding(type_, name)) for type_ in self._object_types(parent)]

    def _object_types(self, parent: object) -> list[GraphQLObjectType]:
        if isinstance(parent, GraphQLInterfaceType):
            return list(self._schema.get_possible_types(parent))
        return [parent] if isinstance(parent, GraphQLObjectType) else []


def _binding(type_: GraphQLObjectType, name: str) -> StrawberryField | None:
    field = type_.fields.get(name)
    bound = field and field.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
    return bound if isinstance(bound, StrawberryField) else None
