"""The protocols by which the engine uses an application, whose areas it does not import."""

from collections.abc import Callable, Coroutine, Hashable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection


class Viewer(Protocol):
    """A user of an organization. `id` is unique within the organization only."""

    @property
    def id(self) -> str: ...

    @property
    def organization_id(self) -> str: ...


class Audience(Protocol):
    """The viewers whom one execution serves."""

    @property
    def excluded_ids(self) -> AbstractSet[str]:
        """The viewers for whom the result is wrong, once the execution has ended."""


class OperationContext(Protocol):
    """The context of one request or one socket, which resolvers get."""

    @property
    def viewer(self) -> Viewer | None:
        """The signed-in user."""

    @property
    def is_service(self) -> bool:
        """Whether the viewer is a service, which has larger limits than a person."""

    @property
    def roles(self) -> frozenset[Hashable]:
        """The roles that the viewer has in this context."""

    @property
    def scopes(self) -> frozenset[str] | None:
        """The scopes of the request's service key; None without a key."""

    @property
    def audience(self) -> Audience:
        """The viewers whom the execution serves."""

    def of_query(self) -> "OperationContext":
        """Returns a copy for one query, whose resolvers may share what they read."""


class Session(Protocol):
    """An authenticated viewer."""

    @property
    def user(self) -> Viewer: ...

    @property
    def is_service(self) -> bool: ...

    @property
    def roles(self) -> frozenset[Hashable]: ...

    @property
    def scopes(self) -> frozenset[str] | None: ...

    @property
    def expires_at(self) -> float:
        """When the credential expires, in Unix seconds."""

    def sign_in(self, context: Any) -> None:
        """Makes the user of the session the viewer of the context."""


CheckSocket = Callable[[], Coroutine[None, None, None]]
"""Authenticates a socket or an event stream again, and closes it if it has lost its access."""


class Application(Protocol):
    """Signs viewers in, and makes the contexts of their operations.

    Parameters of type Any are sessions and viewers that the application has returned.
    """

    async def session_of_request(self, headers: Headers, *, is_use: bool = True) -> Session | None:
        """Returns the session of a request; None without a credential.

        `is_use` is False for a check of an open event stream. Raises: Unauthenticated, Forbidden.
        """

    async def session_of_socket(self, authorization: str | None, headers: Headers, *, is_use: bool) -> Session:
        """Returns the session of a socket by the first credential: `authorization`, then the headers of the handshake.

        `is_use` is False for a check of an open socket. Raises: Unauthenticated, CredentialExpired, Forbidden.
        """

    def may_send_large_bodies(self, session: Any) -> bool:
        """Returns whether bodies of this viewer are received up to the larger limit."""

    def new_context(self, connection: HTTPConnection) -> OperationContext:
        """Returns the context of a request or a socket, in which nobody is signed in."""

    def new_shared_context(self, session: Any, viewers: Sequence[Any]) -> OperationContext:
        """Returns the context of one execution for viewers with the organization and the roles of `session`."""

    def socket_opened(self, session: Any, check: CheckSocket) -> None:
        """Calls `check` whenever the viewer's access is reduced, until `socket_closed`."""

    def socket_closed(self, session: Any, check: CheckSocket) -> None:
        """Ends the calls of `check`."""
