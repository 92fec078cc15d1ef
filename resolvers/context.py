"""The context that resolvers get beside their arguments: the viewer, the audience and the stores."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import strawberry

from resolvers.audience import Audience
from resolvers.write_limits import WriteBudgets, WriteLimit
from storage.chat.reactions import ViewerBlocks
from storage.errors import Unauthenticated
from storage.identity.audit import Actor
from storage.identity.records import User
from storage.identity.roles import Role
from storage.mail.legacy_book import LegacyBook
from storage.stores import Stores


@dataclass(frozen=True, slots=True)
class Client:
    """Where a request comes from."""

    address: str | None = None
    user_agent: str | None = None


UNKNOWN_CLIENT = Client()


@dataclass(slots=True)
class Context:
    """The context of one request or one socket.

    `viewer` is None without a token. `roles` are the token's roles that the user has, not all stored roles. The
    audience has one viewer, except for a coalesced query; then `viewer` is any viewer of the audience.
    """

    stores: Stores
    sign_image: Callable[[str], str]
    viewer: User | None = None
    roles: frozenset[Role] = frozenset()
    scopes: frozenset[str] | None = None
    """The scopes of the request's service key; None for requests without one."""

    client: Client = UNKNOWN_CLIENT
    session_id: str | None = None
    """Id of the browser's session; None for a token or a key."""

    connection_params: dict[str, Any] | None = None
    legacy_book: LegacyBook | None = None
    sign_download: Callable[[str], str] = str
    """Returns the signed URL of an export, by its id."""

    has_telephony: bool = True
    """Whether a telephony provider is chosen. Without one no call job can be launched."""

    write_budgets: WriteBudgets | None = None
    """The budgets of this process. None: writes are not limited."""

    coalesced: Audience | None = None
    """The audience of a coalesced query; None for a single viewer. Use cases read `audience` instead."""

    base_url: str = ""
    """The address at which people reach the server, without a slash at the end; for links."""

    is_query: bool = False
    """Whether the context serves one query, which reads the viewer's blocks once and then reuses them."""

    _viewer_blocks: ViewerBlocks | None = None

    @property
    def audience(self) -> Audience:
        """The viewers whom the execution serves. Raises: Unauthenticated."""
        if self.coalesced is not None:
            return self.coalesced
        if self.viewer is None:
            raise Unauthenticated
        return Audience(self.viewer.organization_id, frozenset((self.viewer.id,)))

    @property
    def actor(self) -> Actor:
        """The viewer, as the audit log names who made a change. Raises: Unauthenticated."""
        if self.viewer is None:
            raise Unauthenticated
        return Actor(self.viewer.organization_id, self.viewer.id, self.client.address, self.client.user_agent)

    def count_write(self, limit: WriteLimit, mutation: str, idempotency_key: str | None) -> None:
        """Counts a mutation of the viewer. Raises: RateLimited.

        Counts nothing without a viewer, since the mutation then fails with Unauthenticated.
        """
        if self.viewer is None or self.write_budgets is None:
            return
        keyed_mutation = (mutation, idempotency_key) if isinstance(idempotency_key, str) else None
        self.write_budgets.count(self.viewer, self.roles, limit, keyed_mutation, has_key=self.scopes is not None)

    async def viewer_blocks(self) -> ViewerBlocks:
        """Returns the users whose content is hidden from the audience. An audience of several viewers has none.

        Excludes viewers who blocked somebody from an audience of several viewers.

        Raises: Unauthenticated.
        """
        if self._viewer_blocks is None or not self.is_query:
            self._viewer_blocks = await self._read_viewer_blocks(self.audience)
        return self._viewer_blocks

    async def _read_viewer_blocks(self, audience: Audience) -> ViewerBlocks:
        relations = self.stores.relations
        if not audience.is_single:
            audience.exclude(await relations.users_with_blocks(audience.organization_id, audience.viewer_ids))
            return ViewerBlocks(None, frozenset())
        (viewer_id,) = audience.viewer_ids
        return ViewerBlocks(viewer_id, await relations.blocked_users_of(audience.organization_id, viewer_id))


Info = strawberry.Info[Context, None]
