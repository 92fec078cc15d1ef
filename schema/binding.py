"""Binds fields to their resolvers, and declares properties of a field that the GraphQL engine reads as metadata.

A resolver returns a storage record, and the attribute's annotation names the GraphQL type of the record. Type checkers
cannot compare record and type, so tests/schema/test_shapes.py does.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import strawberry
from strawberry.extensions.field_extension import AsyncExtensionResolver, FieldExtension
from strawberry.types.field import StrawberryField

from resolvers.context import Info
from resolvers.limits.writes import WriteLimit
from schema.timeline import ConnectionArguments

BATCH_RESOLVER = "batch_resolver"
SHARED = "shared"
SERVES_AUDIENCES = "serves_audiences"
ACCEPTS_LARGE_BODY = "accepts_large_body"
QUERIES_PER_OBJECT = "queries_per_object"
SCOPE = "scope"

ANY_KEY = "any"
"""The scope of root fields that each service key may use."""

NO_KEY = "none"
"""The scope of root fields that no service key may use."""

_AREAS = {
    "resolvers.administration.webhooks": "webhooks",
    "resolvers.calls": "calls",
    "resolvers.chat": "chat",
    "resolvers.chat.community_settings": "moderation",
    "resolvers.chat.moderation": "moderation",
    "resolvers.chat.stamp_ownerships": "moderation",
    "resolvers.content_reports": "moderation",
    "resolvers.feed": "feed",
    "resolvers.files": "files",
    "resolvers.identity": "identity",
    "resolvers.job_events": "jobs",
    "resolvers.mail": "mail",
    "resolvers.mutes": "identity",
    "resolvers.publishing": "publishing",
}
"""The area of scopes, by module or folder of resolvers.

Service keys may not use root fields of other modules, unless the binding names a scope.
"""

BatchResolver = Callable[..., Awaitable[Sequence[Any]]]
"""Resolves a field of many objects at once: takes the objects and the Info, returns the values in the same order.

It takes the field's arguments, which are the same for all objects, by the names that `resolver` has for them.
"""


def field(
    resolver: Callable[..., Any],
    description: str,
    batch_resolver: BatchResolver | None = None,
    *,
    serves_audiences: bool = False,
    accepts_large_body: bool = False,
    queries_per_object: bool = False,
    is_connection: bool = False,
    scope: str | None = None,
) -> Any:
    """Binds a field of Query or of an object type, whose value may depend on the viewer.

    - `batch_resolver` resolves the field for many objects at once. It raises if `resolver` would raise for one of them.
    - `serves_audiences` promises that the resolver's value is right for every viewer of `Context.audience`, except for
      viewers whom the resolver excludes. Queries of such fields are coalesced.
    - `accepts_large_body` allows larger request bodies.
    - `queries_per_object` says that the resolver queries the database for each object. Such fields cost more.
    - `is_connection` lets clients page a timeline as Relay's connections, too.
    - `scope` is the scope that a service key needs for a field of Query: by default, to read the resolver's area.
    """
    metadata = {
        SCOPE: scope or area_scope(resolver, "read"),
        BATCH_RESOLVER: batch_resolver,
        SERVES_AUDIENCES: serves_audiences,
        ACCEPTS_LARGE_BODY: accepts_large_body or None,
        QUERIES_PER_OBJECT: queries_per_object,
    }
    extensions: list[FieldExtension] = [ConnectionArguments()] if is_connection else []
    return strawberry.field(resolver=resolver, description=description, metadata=metadata, extensions=extensions)


def shared_field(
    resolver: Callable[..., Any],
    description: str,
    batch_resolver: BatchResolver | None = None,
    *,
    queries_per_object: bool = False,
) -> Any:
    """Binds a field whose value is the same for all viewers of the organization, so that subscriptions may share it."""
    metadata = {SHARED: True, BATCH_RESOLVER: batch_resolver, QUERIES_PER_OBJECT: queries_per_object}
    return strawberry.field(resolver=resolver, description=description, metadata=metadata)


def batch_resolver_of(bound: StrawberryField) -> BatchResolver | None:
    """Returns the field's batch resolver; None if it has none, and for a field with extensions."""
    resolver: BatchResolver | None = bound.metadata.get(BATCH_RESOLVER)
    return None if bound.extensions else resolver


class _CountWrites(FieldExtension):
    """Counts each execution of a mutation against its limit, before the resolver runs."""

    def __init__(self, limit: WriteLimit) -> None:
        self._limit = limit

    async def resolve_async(self, next_: AsyncExtensionResolver, source: Any, info: Info, **kwargs: Any) -> Any:
        """Runs the mutation. Raises: RateLimited."""
        info.context.count_write(self._limit, info.field_name, getattr(kwargs.get("input"), "idempotency_key", None))
        return await next_(source, info, **kwargs)


def mutation(
    resolver: Callable[..., Any],
    description: str,
    *,
    limit: WriteLimit | None,
    accepts_large_body: bool = False,
    scope: str | None = None,
) -> Any:
    """Binds a field of Mutation.

    - `limit` says how often users, service keys and organizations may execute it. None means any number of times.
    - `accepts_large_body` allows larger request bodies.
    - `scope` is the scope that a service key needs: by default, to write to the resolver's area.
    """
    metadata = {ACCEPTS_LARGE_BODY: accepts_large_body or None, SCOPE: scope or area_scope(resolver, "write")}
    extensions: list[FieldExtension] = [] if limit is None else [_CountWrites(limit)]
    return strawberry.mutation(resolver=resolver, description=description, metadata=metadata, extensions=extensions)


def subscription(resolver: Callable[..., Any], description: str) -> Any:
    """Binds a field of Subscription. A service key needs the scope to read the resolver's area."""
    metadata = {SCOPE: area_scope(resolver, "read")}
    return strawberry.subscription(resolver=resolver, description=description, metadata=metadata)


def area_scope(resolver: Callable[..., Any], action: str) -> str:
    """Returns the scope of an action in the resolver's area; NO_KEY for a module that belongs to no area of scopes."""
    module = resolver.__module__
    found = (name for name in (module, module.rpartition(".")[0]) if name in _AREAS)
    area = next(found, None)
    return NO_KEY if area is None else f"{_AREAS[area]}:{action}"
