"""Ids that name their type, and the types of nodes."""

from types import SimpleNamespace
from typing import Any

import pytest
from graphql import GraphQLInterfaceType, GraphQLObjectType

from resolvers.nodes import NODE_TYPES
from schema.binding import batch_resolver_of
from schema.root import schema
from storage.ids import TYPES_IN_IDS
from tests.schema.fields import field_binding

TYPES = schema._schema.type_map


def bound_ids() -> dict[str, Any]:
    """Returns the bindings of the ids that `own_id` has bound, by type."""
    types = [type_ for type_ in TYPES.values() if isinstance(type_, GraphQLObjectType) and "id" in type_.fields]
    bound = {type_.name: field_binding(type_, "id") for type_ in types if not type_.name.startswith("__")}
    return {name: field for name, field in bound.items() if field.base_resolver is not None}


def test_types_that_name_themselves_in_ids_are_known() -> None:
    assert bound_ids().keys() == TYPES_IN_IDS


def test_types_of_nodes_implement_the_interface() -> None:
    node = TYPES["Node"]
    assert isinstance(node, GraphQLInterfaceType)
    assert {type_.name for type_ in schema._schema.get_possible_types(node)} == NODE_TYPES.keys()


@pytest.mark.anyio
@pytest.mark.parametrize("name", sorted(TYPES_IN_IDS))
async def test_ids_of_one_and_of_many_objects_name_the_type(name: str) -> None:
    field, record, info = bound_ids()[name], SimpleNamespace(id="a"), SimpleNamespace()
    resolve_many = batch_resolver_of(field)
    assert resolve_many is not None
    assert await resolve_many([record], info) == [f"{name}:a"]
    assert await resolve_many([], info) == []
    assert await field.base_resolver.wrapped_func(record, info) == f"{name}:a"
