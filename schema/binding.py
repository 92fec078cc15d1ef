"""Binds fields to their resolvers, and declares as metadata what the GraphQL engine must know of a field.

A resolver returns a storage record, and the attribute's annotation names its GraphQL type. No type checker sees that
the two agree; tests/schema/test_shapes.py compares them.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import strawberry
from strawberry.types.field import StrawberryField

MANY = "many"
SHARED = "shared"
FOR_AUDIENCES = "for_audiences"
GATE = "gate"
LARGE_BODY = "large_body"
QUERIES_EACH = "queries_each"

ForMany = Callable[[Sequence[Any], Any], Awaitable[Sequence[Any]]]
"""Resolves a field of many objects at once: takes the objects and the Info, returns the values in the same order."""

Gate = Callable[[Any], AbstractAsyncContextManager[None]]
"""Takes the context; operations that select the field are executed inside. Raises when it refuses the operation."""


def field(
    resolver: Callable[..., Any],
    description: str,
    many: ForMany | None = None,
    *,
    for_audiences: bool = False,
    gate: Gate | None = None,
    large_body: bool = False,
    queries_each: bool = False,
) -> Any:
    """Binds a field of Query or of an object type, whose value may depend on the viewer.

    `many` resolves the field for many objects at once, and raises where `resolver` would raise for any of them.
    `for_audiences` promises that the resolver serves `Context.audience`: its value suits every viewer whom it does not
    exclude. Queries of such fields are coalesced. `large_body` allows larger request bodies. `queries_each` says that
    the resolver queries the database for each object, which the cost of the operation counts.
    """
    metadata = {
        MANY: many,
        FOR_AUDIENCES: for_audiences,
        GATE: gate,
        LARGE_BODY: large_body or None,
        QUERIES_EACH: queries_each,
    }
    return strawberry.field(resolver=resolver, description=description, metadata=metadata)


def shared_field(
    resolver: Callable[..., Any], description: str, many: ForMany | None = None, *, queries_each: bool = False
) -> Any:
    """Binds a field that is the same for every viewer of the organization, so that subscriptions may share it."""
    metadata = {SHARED: True, MANY: many, QUERIES_EACH: queries_each}
    return strawberry.field(resolver=resolver, description=description, metadata=metadata)


def resolver_for_many(bound: StrawberryField) -> ForMany | None:
    """Returns the field's resolver for many objects; None without one, and for a field with arguments or extensions."""
    many: ForMany | None = bound.metadata.get(MANY)
    return None if bound.arguments or bound.extensions else many


def mutation(resolver: Callable[..., Any], description: str, *, large_body: bool = False) -> Any:
    """Binds a field of Mutation. `large_body` allows larger request bodies."""
    metadata = {LARGE_BODY: large_body or None}
    return strawberry.mutation(resolver=resolver, description=description, metadata=metadata)


def subscription(resolver: Callable[..., Any], description: str) -> Any:
    """Binds a field of Subscription."""
    return strawberry.subscription(resolver=resolver, description=description)
