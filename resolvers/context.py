"""What a resolver is handed beside its arguments: who asks, and the stores."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import strawberry

from storage.chat.reactions import Sight
from storage.identity import Role, User
from storage.mail.migration import OldBook
from storage.stores import Stores


@dataclass(slots=True)
class Context:
    """One request's, or one socket's. `viewer` is None without a token; roles are the token's, not the stored ones."""

    stores: Stores
    sign_image: Callable[[str], str]
    viewer: User | None = None
    roles: frozenset[Role] = frozenset()
    connection_params: dict[str, Any] | None = None
    old_book: OldBook | None = None

    async def sight(self, viewer: User) -> Sight:
        """What the viewer must not see, as of now."""
        blocked = await self.stores.relations.blocked_by(viewer.organization_id, viewer.id)
        return Sight(viewer.id, blocked)


Info = strawberry.Info[Context, None]
