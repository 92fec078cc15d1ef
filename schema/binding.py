"""How a field is bound to its resolver.

Resolvers return records of storage, and the attribute's annotation names their GraphQL type: two types that agree by
shape, which no type checker sees. tests/schema/test_shapes.py checks them instead.
"""

from collections.abc import Callable
from typing import Any

import strawberry


def field(resolver: Callable[..., Any], description: str) -> Any:
    """A field of a query or an object."""
    return strawberry.field(resolver=resolver, description=description)


def mutation(resolver: Callable[..., Any], description: str) -> Any:
    """A field of Mutation."""
    return strawberry.mutation(resolver=resolver, description=description)


def subscription(resolver: Callable[..., Any], description: str) -> Any:
    """A field of Subscription."""
    return strawberry.subscription(resolver=resolver, description=description)
