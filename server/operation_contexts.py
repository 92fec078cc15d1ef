"""Signs the viewers of GraphQL operations in, and makes the contexts that resolvers get."""

from collections.abc import Callable, Sequence

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from resolvers.audience import Audience
from resolvers.context import Context
from server.auth.access_watch import AccessWatch, CheckSocket
from server.auth.credentials import RequestCredentials
from server.auth.tokens import TokenInvalid
from server.auth.viewers import ViewerSession
from server.transport.clients import client_of
from storage.identity.presence.online import OnlinePeople
from storage.identity.records import User
from storage.identity.roles import Role, with_included

ContextFactory = Callable[..., Context]
"""Returns a new context; takes keyword arguments of Context, such as `viewer`, `roles` and `client`."""


class OperationContexts:
    """The application of a GraphQLEndpoint (server/graphql/protocols.py)."""

    def __init__(
        self,
        access_watch: AccessWatch,
        credentials: RequestCredentials,
        online: OnlinePeople,
        new_context: ContextFactory,
    ) -> None:
        self._access_watch, self._credentials = access_watch, credentials
        self._online, self._new_context = online, new_context

    async def session_of_request(self, headers: Headers, *, is_use: bool = True) -> ViewerSession | None:
        """Returns the session of a request; None without a credential. Raises: Unauthenticated, Forbidden."""
        return await self._access_watch.sessions.session(self._credentials.of_request(headers), is_use=is_use)

    async def session_of_socket(self, authorization: str | None, headers: Headers, *, is_use: bool) -> ViewerSession:
        """Returns the session of a socket. Raises: Unauthenticated, Forbidden."""
        credential = self._credentials.of_socket(authorization, headers)
        session = await self._access_watch.sessions.session(credential, is_use=is_use)
        if session is None:
            raise TokenInvalid("no token: send it as `authorization` in the payload of connection_init")
        return session

    def may_send_large_bodies(self, session: ViewerSession) -> bool:
        """Returns whether the viewer may send call lists."""
        return Role.OPERATOR in with_included(session.roles)

    def new_context(self, connection: HTTPConnection) -> Context:
        """Returns the context of a request or a socket, in which nobody is signed in."""
        return self._new_context(client=client_of(connection))

    def new_shared_context(self, session: ViewerSession, viewers: Sequence[User]) -> Context:
        """Returns the context of one execution for several viewers."""
        audience = Audience(session.user.organization_id, frozenset(each.id for each in viewers))
        return self._new_context(viewer=viewers[0], roles=session.roles, coalesced=audience, is_query=True)

    def socket_opened(self, session: ViewerSession, check: CheckSocket) -> None:
        """Checks the socket whenever the viewer's access is reduced. A person is online while a socket is open."""
        self._access_watch.add(session.user_key, check)
        if _is_person(session):
            self._online.connect(session.user_key)

    def socket_closed(self, session: ViewerSession, check: CheckSocket) -> None:
        """Ends the checks of the socket."""
        self._access_watch.remove(session.user_key, check)
        if _is_person(session):
            self._online.disconnect(session.user_key)


def _is_person(session: ViewerSession) -> bool:
    return not (session.user.is_service or session.is_service)
