"""How a field is bound to its resolver.

Resolvers return records of storage, and the attribute's annotation names their GraphQL type: two types that agree by
shape, which no type checker sees. tests/schema/test_shapes.py checks them instead.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import strawberry
from strawberry.types.field import StrawberryField

from schema.sharing import FOR_CROWDS, SHARED

MANY = "many"
ForMany = Callable[[Sequence[Any], Any], Awaitable[Sequence[Any]]]
"""Resolves a field of many objects, in their order, given them and the Info."""


def field(
    resolver: Callable[..., Any], description: str, many: ForMany | None = None, *, for_crowds: bool = False
) -> Any:
    """A field of a query or an object. What it gives may depend on the viewer.

    `many` gives the same for many objects at once, and raises where `resolver` would for one of them. `for_crowds` says
    that in a crowd it gives what is right for all who stay, and puts the others apart (resolvers/context.py).
    """
    metadata = {MANY: many, FOR_CROWDS: for_crowds}
    return strawberry.field(resolver=resolver, description=description, metadata=metadata)


def shared_field(resolver: Callable[..., Any], description: str, many: ForMany | None = None) -> Any:
    """A field that gives every viewer of the organization the same, so that subscriptions may share it."""
    return strawberry.field(resolver=resolver, description=description, metadata={SHARED: True, MANY: many})


def resolver_for_many(bound: StrawberryField) -> ForMany | None:
    """The resolver of the field for many objects, if it has one and takes no arguments."""
    many: ForMany | None = bound.metadata.get(MANY)
    return None if bound.arguments or bound.extensions else many


def mutation(resolver: Callable[..., Any], description: str) -> Any:
    """A field of Mutation."""
    return strawberry.mutation(resolver=resolver, description=description)


def subscription(resolver: Callable[..., Any], description: str) -> Any:
    """A field of Subscription."""
    return strawberry.subscription(resolver=resolver, description=description)
