"""How a field is bound to its resolver.

Resolvers return records of storage, and the attribute's annotation names their GraphQL type: two types that agree by
shape, which no type checker sees. tests/schema/test_shapes.py checks them instead.
"""

from collections.abc import Callable
from typing import Any

import strawberry

from schema.sharing import SHARED


def field(resolver: Callable[..., Any], description: str) -> Any:
    """A field of a query or an object. What it gives may depend on the viewer."""
    return strawberry.field(resolver=resolver, description=description)


def shared_field(resolver: Callable[..., Any], description: str) -> Any:
    """A field that gives every viewer of the organization the same, so that subscriptions may share it."""
    return strawberry.field(resolver=resolver, description=description, metadata={SHARED: True})


def mutation(resolver: Callable[..., Any], description: str) -> Any:
    """A field of Mutation."""
    return strawberry.mutation(resolver=resolver, description=description)


def subscription(resolver: Callable[..., Any], description: str) -> Any:
    """A field of Subscription."""
    return strawberry.subscription(resolver=resolver, description=description)
