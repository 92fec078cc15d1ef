"""The routes of local accounts. docs/interfaces.md describes requests and answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from server.auth.credentials import RequestCredentials
from server.auth.viewers import ViewerSessions
from server.http.accounts import inputs
from server.http.accounts.inputs import Body
from server.http.browser_routes import browser_route, client_of, json_answer, json_body
from server.http.sessions import with_session_cookie
from storage.errors import BadUserInput, Forbidden, Unauthenticated
from storage.identity.accounts.invitations import require_open
from storage.identity.accounts.local_accounts import LocalAccount, NewAccount
from storage.identity.accounts.mails import AccountMailKind
from storage.identity.accounts.throttle import (
    LINKS_BY_CLIENT,
    MAILS_BY_CLIENT,
    MAILS_OF_ORGANIZATION,
    MAILS_TO_ADDRESS,
    SIGN_INS_BY_CLIENT,
    SIGN_INS_OF_ACCOUNT,
    SIGN_INS_OF_ACCOUNT_BY_CLIENT,
    Attempt,
    client_key,
)
from storage.identity.accounts.tokens import TokenPurpose
from storage.identity.audit import Actor
from storage.identity.records import User
from storage.ids import new_id
from storage.stores import Stores

Handler = Callable[[Request, Body], Awaitable[Response]]


def account_routes(
    stores: Stores,
    viewers: ViewerSessions,
    credentials: RequestCredentials,
    organization_id: str,
    *,
    is_registration_open: bool,
) -> list[Route]:
    """Returns the routes of people of an organization. Without open registration, an account needs a link."""
    accounts = _Accounts(stores, viewers, credentials, organization_id, is_registration_open)
    handlers: dict[str, Handler] = {
        "/sign-in/password": accounts.sign_in,
        "/accounts": accounts.create,
        "/accounts/invitation": accounts.show_invitation,
        "/accounts/verification": accounts.verify,
        "/accounts/reset-request": accounts.request_reset,
        "/accounts/reset": accounts.reset,
        "/accounts/password": accounts.change_password,
    }
    return [browser_route(path, "POST", credentials, _with_body(handle)) for path, handle in handlers.items()]


def _with_body(handle: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return await handle(request, await json_body(request))

    return endpoint


@dataclass(frozen=True, slots=True)
class _Accounts:
    """The handlers. Each counts an attempt before it does work, and answers alike for known and unknown addresses."""

    stores: Stores
    viewers: ViewerSessions
    credentials: RequestCredentials
    organization_id: str
    is_registration_open: bool

    async def sign_in(self, request: Request, body: Body) -> Response:
        """Begins a session for a mail address and a password."""
        address, password = inputs.address(body), inputs.password(body)
        attempts = self._sign_ins_of(address, request)
        await self.stores.sign_in_limits.count([(SIGN_INS_BY_CLIENT, _client(request)), *attempts])
        client = client_of(request)
        user, token = await self.stores.password_sessions.sign_in(
            self.organization_id, address, password, client.address, client.user_agent
        )
        await self.stores.sign_in_limits.forget(attempts)
        return with_session_cookie(json_answer({"userId": user.id}), token)

    async def create(self, request: Request, body: Body) -> Response:
        """Makes an account at once, or mails a link that proves the address."""
        await self._count_link(request)
        first_admin, invitation = inputs.token(body, "firstAdmin"), inputs.token(body, "invitation")
        if first_admin is not None:
            await self.stores.account_tokens.find(TokenPurpose.FIRST_ADMIN, first_admin)
            new = await self._new_account(request, body, inputs.address(body))
            return await self._created(request, await self.stores.registrations.create_first_admin(first_admin, new))
        if invitation is not None:
            found = await self.stores.invitations.find(self.organization_id, invitation)
            require_open(found)
            if found.address is not None:
                new = await self._new_account(request, body, found.address)
                return await self._created(request, await self.stores.registrations.create_invited(invitation, new))
            return await self._mail(request, body, AccountMailKind.REGISTRATION, found.id)
        if not self.is_registration_open:
            raise Forbidden("An account needs an invitation. Ask an administrator of the organization for one.")
        return await self._mail(request, body, AccountMailKind.REGISTRATION)

    async def show_invitation(self, request: Request, body: Body) -> Response:
        """Shows what an invitation offers, before somebody accepts it."""
        await self._count_link(request)
        token = inputs.text(body, "invitation", inputs.MAX_TOKEN_CHARS)
        invitation = await self.stores.invitations.find(self.organization_id, token)
        community_id = invitation.community_id
        community = community_id and await self.stores.communities.find(self.organization_id, community_id)
        shown = {
            "state": invitation.state.value,
            "role": invitation.role.value,
            "address": invitation.address,
            "community": community.name if community else None,
            "expiresAt": invitation.expires_at,
        }
        return json_answer(shown)

    async def verify(self, request: Request, body: Body) -> Response:
        """Makes the account of a mail address that the link in the mail proves."""
        await self._count_link(request)
        token = inputs.text(body, "verification", inputs.MAX_TOKEN_CHARS)
        subject = await self.stores.account_tokens.find(TokenPurpose.REGISTRATION, token)
        new = await self._new_account(request, body, subject.address or "")
        return await self._created(request, await self.stores.registrations.create_registered(token, new))

    async def request_reset(self, request: Request, body: Body) -> Response:
        """Mails a link to choose another password, if the address has an account."""
        return await self._mail(request, body, AccountMailKind.RESET)

    async def reset(self, request: Request, body: Body) -> Response:
        """Sets another password, which ends all sessions of the person."""
        await self._count_link(request)
        token = inputs.text(body, "reset", inputs.MAX_TOKEN_CHARS)
        client = client_of(request)
        await self.stores.password_sessions.reset(token, inputs.password(body), client.address, client.user_agent)
        return json_answer({})

    async def change_password(self, request: Request, body: Body) -> Response:
        """Changes the password of the person who is signed in, which ends the person's other sessions."""
        current, password = inputs.password(body, "currentPassword"), inputs.password(body)
        viewer = await self.viewers.session(self.credentials.of_request(request.headers))
        if viewer is None or viewer.id is None:
            raise Unauthenticated("Sign in with your mail address and password first.")
        account = await self.stores.local_accounts.of_user(*viewer.user_key)
        if account is None:
            raise BadUserInput("currentPassword", "an account with a password", "This account has no password here.")
        await self._change(request, account, viewer.id, current, password)
        return json_answer({})

    async def _change(
        self, request: Request, account: LocalAccount, session_id: str, current: str, password: str
    ) -> None:
        attempts = self._sign_ins_of(account.address, request)
        await self.stores.sign_in_limits.count(attempts)
        client = client_of(request)
        actor = Actor(account.organization_id, account.user_id, client.address, client.user_agent)
        await self.stores.password_sessions.change(actor, current, password, session_id)
        await self.stores.sign_in_limits.forget(attempts)

    async def _new_account(self, request: Request, body: Body, address: str) -> NewAccount:
        name, handle, language = inputs.name(body), inputs.handle(body), inputs.language(body)
        password_hash = await self.stores.local_accounts.hashes.hash_new(inputs.password(body), name, address)
        client = client_of(request)
        actor = Actor(self.organization_id, new_id(), client.address, client.user_agent)
        return NewAccount(actor, address, name, handle, password_hash, language)

    async def _created(self, request: Request, user: User) -> Response:
        """Signs a new user in."""
        account = await self.stores.local_accounts.of_user(user.organization_id, user.id)
        assert account is not None
        client = client_of(request)
        _, token = await self.stores.password_sessions.begin(account, client.address, client.user_agent)
        return with_session_cookie(json_answer({"userId": user.id}, 201), token)

    async def _mail(
        self, request: Request, body: Body, kind: AccountMailKind, invitation_id: str | None = None
    ) -> Response:
        address, language = inputs.address(body), inputs.language(body)
        limits = self.stores.sign_in_limits
        subject = f"{self.organization_id}\n{address}"
        await limits.count([(MAILS_BY_CLIENT, _client(request)), (MAILS_TO_ADDRESS, subject)])
        await limits.count([(MAILS_OF_ORGANIZATION, self.organization_id)])
        await self.stores.account_mails.add(kind, self.organization_id, address, language, invitation_id=invitation_id)
        return json_answer({}, 202)

    async def _count_link(self, request: Request) -> None:
        await self.stores.sign_in_limits.count([(LINKS_BY_CLIENT, _client(request))])

    def _sign_ins_of(self, address: str, request: Request) -> list[Attempt]:
        account = f"{self.organization_id}\n{address}"
        return [
            (SIGN_INS_OF_ACCOUNT_BY_CLIENT, f"{account}\n{_client(request)}"),
            (SIGN_INS_OF_ACCOUNT, account),
        ]


def _client(request: Request) -> str:
    return client_key(request.client and request.client.host)
