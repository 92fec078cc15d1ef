"""The interface of objects that clients can fetch again by their id alone, as Relay does, and its root fields."""

from typing import Any

import strawberry
from strawberry import ID, Parent

import resolvers.nodes
from resolvers.context import Info
from schema.binding import ANY_KEY, field, shared_field
from storage.ids import id_with_type


@strawberry.interface(
    description="An object that `node` finds by its id. Ids are unique among the objects of all types with the field "
    "`id`, except ids of users, which come from the organization's identity provider."
)
class Node:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")

    @classmethod
    def is_type_of(cls, _record: object, _info: object) -> bool:
        """Returns True, since `resolve_type` or the type of the field determines the object's type."""
        return True

    @classmethod
    def resolve_type(cls, record: object, *_: object) -> str:
        """Returns the name of the record's GraphQL type."""
        return resolvers.nodes.type_name_of(record)


def own_id(type_name: str, description: str, attribute: str = "id") -> Any:
    """Binds the id of an object that has the stored id of an object of another type."""

    async def ids(records: list[Any], info: Info) -> list[str]:
        return [id_with_type(type_name, getattr(record, attribute)) for record in records]

    async def id_(root: Parent[Any], info: Info) -> str:
        return id_with_type(type_name, getattr(root, attribute))

    return shared_field(id_, description, batch_resolver=ids)


@strawberry.type
class NodeQuery:
    """Reads of any object by its id."""

    node: Node | None = field(
        resolvers.nodes.node,
        "The object with this id. NOT_FOUND if there is none, or if the viewer may not see it. A service key needs the "
        "scope to read the object's type. Needs no role.",
        queries_per_object=True,
        scope=ANY_KEY,
    )
    nodes: list[Node | None] = field(
        resolvers.nodes.nodes,
        "The objects with these ids, in the same order. Each one that `node` would not find is null, with an error.",
        queries_per_object=True,
        scope=ANY_KEY,
    )
