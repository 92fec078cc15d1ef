"""What a resolver is handed beside its arguments: who asks, and the stores."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import strawberry

from storage.chat.reactions import Sight
from storage.chat.records import Message, Topic
from storage.identity.records import Role, User
from storage.mail.migration import OldBook
from storage.stores import Stores
from storage.timeline import Page, Range


@dataclass(slots=True)
class Crowd:
    """Viewers of one organization who get one answer. Those to whom it does not apply are put apart, and get their own.

    What a field with `for_crowds` gives is right for everybody who is not apart when the execution is over.
    """

    ids: frozenset[str]
    apart: set[str] = field(default_factory=set)
    blocking: frozenset[str] | None = None
    pages: dict[tuple[str, Range], tuple[Topic, Page[Message]]] = field(default_factory=dict)
    """Those that were read, for whoever blocked nobody."""

    def keep(self, ids: AbstractSet[str]) -> None:
        """Puts everybody else apart."""
        self.apart |= self.ids - ids


@dataclass(slots=True)
class Context:
    """One request's, or one socket's. `viewer` is None without a token; roles are the token's, not the stored ones.

    With a crowd, the viewer is any one of it. `left` is the one that the viewer was put apart from: what was read for
    it was read after the viewer asked.
    """

    stores: Stores
    sign_image: Callable[[str], str]
    viewer: User | None = None
    roles: frozenset[Role] = frozenset()
    connection_params: dict[str, Any] | None = None
    old_book: OldBook | None = None
    crowd: Crowd | None = None
    left: Crowd | None = None
    is_query: bool = False
    """One query, in which nothing changes: what was read for it once need not be read again."""
    seen: Sight | None = None

    async def sight(self, viewer: User) -> Sight:
        """What the viewer must not see, as of now or of this query; in a crowd only those stay who see everybody."""
        if self.crowd is not None:
            await self._part_from_blocking(viewer.organization_id, self.crowd)
            return Sight(viewer.id, frozenset())
        if self.seen is None or not self.is_query:
            self.seen = Sight(viewer.id, await self.stores.relations.blocked_by(viewer.organization_id, viewer.id))
        return self.seen

    async def _part_from_blocking(self, organization_id: str, crowd: Crowd) -> None:
        # Once an execution is enough: all of the crowd asked before it began.
        if crowd.blocking is None:
            crowd.blocking = await self.stores.relations.blocking_among(organization_id, crowd.ids)
        crowd.apart |= crowd.blocking


Info = strawberry.Info[Context, None]
