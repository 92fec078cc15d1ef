"""The context that resolvers get beside their arguments: the viewer, the audience and the stores."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import strawberry

from resolvers.audience import Audience
from resolvers.limits.writes import WriteBudgets, WriteLimit
from storage.calls.records import SIMULATED_LINES, TelephonyLine
from storage.chat.reactions.store import ViewerBlocks
from storage.errors import Conflict, Unauthenticated
from storage.identity.audit import Actor
from storage.identity.mutes import HiddenSubjects
from storage.identity.records import User
from storage.identity.roles import Role
from storage.mail.legacy_book import LegacyBook
from storage.publishing.credentials.connections import BegunConnection, ConnectionOwner, ConnectionRequest
from storage.publishing.networks import Network
from storage.publishing.records import NOT_VERIFIED, VerifiedAccount
from storage.stores import Stores


@dataclass(frozen=True, slots=True)
class RequestClient:
    """The address and the user agent from which a request comes."""

    address: str | None = None
    user_agent: str | None = None


UNKNOWN_CLIENT = RequestClient()


class ImageSigner(Protocol):
    """Returns this server's URL of a remote image, of which a copy with the id may be stored."""

    def __call__(self, remote_url: str, copy_id: str = "", /) -> str:
        """Signs the URL. `copy_id` is empty for images of which no copies are stored."""
        ...


class AccountVerification(Protocol):
    """Asks a network, at its address, whose the credentials are."""

    async def __call__(self, network: Network, base_url: str | None, secret: str, /) -> VerifiedAccount:
        """Returns the account. Raises: CredentialsNotAccepted, Unavailable."""
        ...


class AccountConnections(Protocol):
    """Connects accounts in a browser, by OAuth."""

    @property
    def connectable(self) -> Sequence[Network]:
        """The networks whose accounts can be connected in a browser."""
        ...

    async def begin(self, owner: ConnectionOwner, request: ConnectionRequest, /) -> BegunConnection:
        """Returns the address at which the person allows access. Raises: Conflict, BadUserInput, Unavailable."""
        ...


class NoAccountConnections:
    """Connects no accounts, for contexts in which nobody can."""

    connectable: Sequence[Network] = ()

    async def begin(self, owner: ConnectionOwner, request: ConnectionRequest, /) -> BegunConnection:
        """Raises: Conflict."""
        raise Conflict("Accounts cannot be connected in a browser here.")


async def _not_verified(_network: Network, _base_url: str | None, _secret: str) -> VerifiedAccount:
    return NOT_VERIFIED


async def _no_refusal(_url: str) -> str | None:
    return None


@dataclass(slots=True)
class Context:
    """The context of one request or one socket.

    `viewer` is None without a token. `roles` are the token's roles that the user has, not all stored roles. The
    audience has one viewer, except for a coalesced query; then `viewer` is any viewer of the audience.
    """

    stores: Stores
    sign_image: ImageSigner
    viewer: User | None = None
    roles: frozenset[Role] = frozenset()
    scopes: frozenset[str] | None = None
    """The scopes of the request's service key; None for requests without one."""

    client: RequestClient = UNKNOWN_CLIENT
    session_id: str | None = None
    """Id of the browser's session; None for a token or a key."""

    legacy_book: LegacyBook | None = None
    sign_download: Callable[[str], str] = str
    """Returns the signed URL of an export, by its id."""

    egress_refusal: Callable[[str], Awaitable[str | None]] = _no_refusal
    """Returns why this server sends no requests to a URL, or None. The server passes its address guard."""

    verify_account: AccountVerification = _not_verified
    """The server passes the clients of all networks."""

    account_connections: AccountConnections = field(default_factory=NoAccountConnections)
    """The server passes the connector of the networks at which it has an app."""

    push_key: str | None = None
    """The public VAPID key in base64url; None if nothing is pushed."""

    telephony_lines: Sequence[TelephonyLine] = SIMULATED_LINES
    """The lines of the server's settings. Without one no call job can be launched."""

    write_budgets: WriteBudgets | None = None
    """The budgets of this process. None: writes are not limited."""

    coalesced: Audience | None = None
    """The audience of a coalesced query; None for a single viewer. Use cases read `audience` instead."""

    base_url: str = ""
    """The address at which people reach the server, without a slash at the end; for links."""

    has_public_address: bool = False
    """Whether networks can fetch files from `base_url`, because it is an address that the operator has set."""

    is_query: bool = False
    """Whether the context serves one query, which reads the viewer's blocks and memberships once and reuses them."""

    _viewer_blocks: ViewerBlocks | None = None
    _is_joined: dict[str, bool] = field(default_factory=dict)
    """For each community whose membership a query has read: whether the viewer is a member."""

    @property
    def is_service(self) -> bool:
        """Whether the viewer has the role SERVICE."""
        return Role.SERVICE in self.roles

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
        """The viewer and the client, for the audit log. Raises: Unauthenticated."""
        if self.viewer is None:
            raise Unauthenticated
        return Actor(self.viewer.organization_id, self.viewer.id, self.client.address, self.client.user_agent)

    def of_query(self) -> "Context":
        """Returns a copy for one query."""
        return replace(self, is_query=True, _viewer_blocks=None, _is_joined={})

    def count_write(self, limit: WriteLimit, mutation: str, idempotency_key: str | None) -> None:
        """Counts a mutation of the viewer. Raises: RateLimited.

        Counts nothing without a viewer, since the mutation then fails with Unauthenticated.
        """
        if self.viewer is None or self.write_budgets is None:
            return
        keyed_mutation = (mutation, idempotency_key) if isinstance(idempotency_key, str) else None
        self.write_budgets.count(self.viewer, self.roles, limit, keyed_mutation, has_key=self.scopes is not None)

    async def viewer_blocks(self) -> ViewerBlocks:
        """Returns the viewer, and the users whose content is hidden from the viewer.

        From an audience of several viewers, excludes the viewers who blocked somebody. For all others, no content is
        hidden, and the result names no viewer.

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

    async def joined_communities(self, ids: Collection[str]) -> set[str]:
        """Returns those of the communities and conversations that the viewer has joined.

        A query reads each membership once. Raises: Unauthenticated.
        """
        if self.viewer is None:
            raise Unauthenticated
        known = self._is_joined if self.is_query else {}
        unknown = [id_ for id_ in ids if id_ not in known]
        if unknown:
            joined = await self.stores.communities.joined_communities(unknown, self.viewer.id)
            known.update((id_, id_ in joined) for id_ in unknown)
        return {id_ for id_ in ids if known[id_]}

    async def hidden_subjects(self) -> HiddenSubjects:
        """Returns the users, topics and communities that the viewer has blocked or muted.

        Raises: Unauthenticated.
        """
        if self.viewer is None:
            raise Unauthenticated
        blocks, muted = await asyncio.gather(
            self.viewer_blocks(), self.stores.mutes.muted_by(self.viewer.organization_id, self.viewer.id)
        )
        return muted._replace(users=muted.users | blocks.blocked)


Info = strawberry.Info[Context, None]
