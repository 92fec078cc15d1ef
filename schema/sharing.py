"""Decides from the schema which documents may share one execution.

A field with a resolver depends on the viewer unless its binding marks it as shared. A coalesced query may also select
fields that are bound for audiences.
"""

from collections.abc import Callable
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

SHARED = "shared"
FOR_AUDIENCES = "for_audiences"


def depends_on_viewer(schema: GraphQLSchema, document: DocumentNode) -> bool:
    """Returns whether two viewers with the same rights could get different data for the same event.

    Looks at the whole document, including operations and fragments that are not executed. It may return True for a
    document that does not depend on the viewer, never False for one that does.
    """
    # Listeners share the root field; its event source checks who may listen.
    roots = frozenset({schema.query_type, schema.mutation_type, schema.subscription_type})
    return not _all_fields(schema, document, is_shared, roots)


def suits_audience(schema: GraphQLSchema, document: DocumentNode) -> bool:
    """Returns whether one execution may answer several viewers: each field suits an audience."""
    return _all_fields(schema, document, field_suits_audience, frozenset())


def is_shared(field: StrawberryField) -> bool:
    """Returns whether the field is the same for every viewer: marked as shared, or a plain unguarded attribute."""
    return bool(field.metadata.get(SHARED)) or (field.base_resolver is None and not field.extensions)


def field_suits_audience(field: StrawberryField) -> bool:
    """Returns whether the field is the same for all viewers of an audience who are not excluded."""
    return bool(field.metadata.get(FOR_AUDIENCES)) or is_shared(field)


def _all_fields(
    schema: GraphQLSchema,
    document: DocumentNode,
    is_accepted: Callable[[StrawberryField], bool],
    ignored_types: frozenset[GraphQLObjectType | None],
) -> bool:
    type_info = TypeInfo(schema)
    visitor = _FieldVisitor(schema, type_info, is_accepted, ignored_types)
    visit(document, TypeInfoVisitor(type_info, visitor))
    return visitor.all_accepted


class _FieldVisitor(Visitor):
    """Checks each selected field on every object type that it may be selected on."""

    def __init__(
        self,
        schema: GraphQLSchema,
        type_info: TypeInfo,
        is_accepted: Callable[[StrawberryField], bool],
        ignored_types: frozenset[GraphQLObjectType | None],
    ) -> None:
        super().__init__()
        self.all_accepted = True
        self._schema, self._type_info = schema, type_info
        self._is_accepted, self._ignored_types = is_accepted, ignored_types

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        parent = self._type_info.get_parent_type()
        name = node.name.value
        if parent not in self._ignored_types and name != "__typename":
            self.all_accepted &= all(self._accepts(type_, name) for type_ in self._object_types(parent))

    def _object_types(self, parent: object) -> list[GraphQLObjectType]:
        if isinstance(parent, GraphQLInterfaceType):
            return list(self._schema.get_possible_types(parent))
        return [parent] if isinstance(parent, GraphQLObjectType) else []

    def _accepts(self, type_: GraphQLObjectType, name: str) -> bool:
        field = type_.fields.get(name)
        bound = field and field.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
        return isinstance(bound, StrawberryField) and self._is_accepted(bound)
