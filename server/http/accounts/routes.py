"""The routes of local accounts. docs/interfaces.md describes requests and answers."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from server.auth.credentials import RequestCredentials
from server.auth.known_browsers import KNOWN_BROWSER_COOKIE, KNOWN_FOR_S, KnownBrowsers
from server.auth.passkeys.ceremonies import PASSKEY_COOKIE, CeremonyPurpose, PasskeyCeremonies
from server.auth.passkeys.relying_party import BrowserAnswer
from server.auth.viewers import ViewerSessions
from server.http.accounts import inputs, operations
from server.http.accounts.sign_in_attempts import account_attempts, client_attempt, client_key_of
from server.http.browser_routes import browser_route, json_body
from server.http.cookies import with_cookie
from server.http.json_answers import json_answer
from server.http.openapi import DescribedRoute, EmptyAnswer, Operation, parsed, required
from server.http.passkeys import options_answer, without_passkey_cookie
from server.http.sessions import SignedInUser, token_of, with_session_cookie
from server.transport.clients import client_of
from storage.errors import BadUserInput, Forbidden, RateLimited, Unauthenticated
from storage.identity.accounts.attempt_limits import (
    LINKS_BY_CLIENT,
    MAILS_BY_CLIENT,
    MAILS_OF_ORGANIZATION,
    MAILS_TO_ADDRESS,
    SIGN_INS_BY_KNOWN_BROWSER,
    LimitedAttempt,
)
from storage.identity.accounts.invitations import require_open
from storage.identity.accounts.local_accounts import LocalAccount, NewLocalAccount, WrongPassword
from storage.identity.accounts.mails import AccountMailKind
from storage.identity.accounts.tokens import LinkInvalid, TokenPurpose
from storage.identity.audit import Actor
from storage.identity.passkeys.records import NewPasskey
from storage.identity.session_records import SignedIn
from storage.ids import UserKey, new_id
from storage.stores import Stores

RequestBody = dict[str, object]
AccountHandler = Callable[[Request, RequestBody], Awaitable[Response]]


def account_routes(
    stores: Stores,
    viewers: ViewerSessions,
    credentials: RequestCredentials,
    organization_id: str,
    browsers: KnownBrowsers,
    *,
    is_registration_open: bool,
    passkeys: PasskeyCeremonies | None,
) -> list[DescribedRoute]:
    """Returns the routes by which people get and use accounts of an organization.

    Without open registration, an account needs a link.

    `passkeys` is None where browsers allow none.
    """
    accounts = _AccountRoutes(stores, viewers, credentials, organization_id, browsers, is_registration_open, passkeys)
    handlers: dict[str, tuple[Operation, AccountHandler]] = {
        "/sign-in/password": (operations.SIGN_IN, accounts.sign_in),
        "/accounts": (operations.CREATE, accounts.create),
        "/accounts/invitation": (operations.SHOW_INVITATION, accounts.show_invitation),
        "/accounts/options": (operations.BEGIN_PASSKEY, accounts.begin_passkey_registration),
        "/accounts/verification": (operations.CREATE_VERIFIED, accounts.create_verified),
        "/accounts/reset-request": (operations.REQUEST_RESET, accounts.request_reset),
        "/accounts/reset": (operations.RESET, accounts.reset),
        "/accounts/password": (operations.CHANGE_PASSWORD, accounts.change_password),
    }
    return [
        browser_route(path, operation, credentials, _with_body(handle))
        for path, (operation, handle) in handlers.items()
    ]


def invitation_routes(
    stores: Stores,
    viewers: ViewerSessions,
    credentials: RequestCredentials,
    organization_id: str,
    browsers: KnownBrowsers,
) -> list[DescribedRoute]:
    """Returns the route that shows an invitation, for people who sign in at a provider."""
    accounts = _AccountRoutes(stores, viewers, credentials, organization_id, browsers, False, None)
    handle = _with_body(accounts.show_invitation)
    return [browser_route("/accounts/invitation", operations.SHOW_INVITATION, credentials, handle)]


def _with_body(handle: AccountHandler) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return await handle(request, await json_body(request))

    return endpoint


@dataclass(frozen=True, slots=True)
class _AccountRoutes:
    """The handlers of the routes. Each handler counts an attempt before it acts.

    Without the link of an invitation or a mail, the answers do not reveal whether an address has an account.
    """

    stores: Stores
    viewers: ViewerSessions
    credentials: RequestCredentials
    organization_id: str
    browsers: KnownBrowsers
    is_registration_open: bool
    passkeys: PasskeyCeremonies | None

    async def sign_in(self, request: Request, body: RequestBody) -> Response:
        """Begins a session for a mail address and a password."""
        shown = parsed(inputs.PasswordSignIn, body)
        attempts, is_known = await self._count_sign_in(request, shown.address)
        account = await self.stores.local_accounts.verify(
            self.organization_id, shown.address, shown.password, is_known_browser=is_known
        )
        client = client_of(request)
        signed_in = await self.stores.password_sessions.begin(
            account, client.address, client.user_agent, token_of(request)
        )
        await self.stores.attempt_limits.forget(attempts)
        answer = with_session_cookie(json_answer(SignedInUser(user_id=signed_in.user.id)), signed_in.token)
        return self._with_known_browser(request, account, answer)

    async def create(self, request: Request, body: RequestBody) -> Response:
        """Creates an account at once, or mails a link that proves the address."""
        await self._count_link(request)
        link, registrations = parsed(inputs.AccountLink, body), self.stores.registrations
        if link.first_admin is not None:
            await self.stores.account_tokens.find(TokenPurpose.FIRST_ADMIN, link.first_admin)
            person = parsed(inputs.FirstAdminAccount, body)
            new = await self._new_account(request, person, person.address)
            return await self._new_account_answer(
                request, await registrations.create_first_admin(link.first_admin, new)
            )
        if link.invitation is not None:
            invitation = await self.stores.invitations.find(self.organization_id, link.invitation)
            require_open(invitation)
            if invitation.address is not None:
                new = await self._new_account(request, parsed(inputs.InvitedAccount, body), invitation.address)
                return await self._new_account_answer(request, await registrations.create_invited(link.invitation, new))
            mail = parsed(inputs.Registration, body)
            return await self._mail(request, mail, AccountMailKind.REGISTRATION, invitation.id)
        if not self.is_registration_open:
            raise Forbidden("An account needs an invitation. Ask an administrator of the organization for one.")
        return await self._mail(request, parsed(inputs.Registration, body), AccountMailKind.REGISTRATION)

    async def show_invitation(self, request: Request, body: RequestBody) -> Response:
        """Shows the content of an invitation, before a person accepts it."""
        await self._count_link(request)
        token = parsed(inputs.InvitationLink, body).invitation
        invitation = await self.stores.invitations.find(self.organization_id, token)
        community_id = invitation.community_id
        community = community_id and await self.stores.communities.find(self.organization_id, community_id)
        content = operations.InvitationContent(
            state=invitation.state,
            role=invitation.role,
            address=invitation.address,
            community=community.name if community else None,
            expires_at=invitation.expires_at,
        )
        return json_answer(content)

    async def begin_passkey_registration(self, request: Request, body: RequestBody) -> Response:
        """Gives the browser the options for a passkey of a new account, which then needs no password."""
        await self._count_link(request)
        if self.passkeys is None:
            raise Forbidden("Passkeys need a public address with https.")
        person = parsed(inputs.NewAccountOptions, body)
        address, user = await self._linked_address(person), UserKey(self.organization_id, new_id())
        return options_answer(self.passkeys.begin_registration(CeremonyPurpose.NEW_ACCOUNT, user, address, person.name))

    async def _linked_address(self, person: inputs.NewAccountOptions) -> str:
        """Returns the mail address of the account that a link creates. Raises: LinkInvalid, BadUserInput."""
        if person.first_admin is not None:
            await self.stores.account_tokens.find(TokenPurpose.FIRST_ADMIN, person.first_admin)
            return required(person.address, "address", inputs.ADDRESS_FORMAT)
        if person.invitation is not None:
            address = (await self.stores.invitations.find(self.organization_id, person.invitation)).address
        else:
            token = required(person.verification, "verification", inputs.TOKEN_FORMAT)
            address = (await self.stores.account_tokens.find(TokenPurpose.REGISTRATION, token)).address
        if address is None:
            raise LinkInvalid
        return address

    async def create_verified(self, request: Request, body: RequestBody) -> Response:
        """Creates an account. The mailed link proves its mail address."""
        await self._count_link(request)
        person = parsed(inputs.VerifiedAccount, body)
        subject = await self.stores.account_tokens.find(TokenPurpose.REGISTRATION, person.verification)
        new = await self._new_account(request, person, subject.address or "")
        created = await self.stores.registrations.create_registered(person.verification, new)
        return await self._new_account_answer(request, created)

    async def request_reset(self, request: Request, body: RequestBody) -> Response:
        """Mails a link to choose another password, if the address has an account."""
        return await self._mail(request, parsed(inputs.MailRequest, body), AccountMailKind.RESET)

    async def reset(self, request: Request, body: RequestBody) -> Response:
        """Sets another password, which ends all sessions of the person."""
        await self._count_link(request)
        chosen, client = parsed(inputs.PasswordReset, body), client_of(request)
        account = await self.stores.password_sessions.reset(
            chosen.reset, chosen.password, client.address, client.user_agent
        )
        return self._with_known_browser(request, account, json_answer(EmptyAnswer()))

    async def change_password(self, request: Request, body: RequestBody) -> Response:
        """Changes the password of the person who is signed in, which ends the person's other sessions."""
        passwords = parsed(inputs.PasswordChange, body)
        viewer = await self.viewers.session(self.credentials.of_request(request.headers))
        if viewer is None or viewer.id is None:
            raise Unauthenticated("Sign in with your mail address and password first.")
        account = await self.stores.local_accounts.of_user(*viewer.user_key)
        if account is None or account.password_hash is None:
            raise BadUserInput("currentPassword", "an account with a password", "This account has no password here.")
        changed = await self._change(
            request, viewer.user_key, viewer.id, passwords.current_password, passwords.password
        )
        return self._with_known_browser(request, changed, json_answer(EmptyAnswer()))

    async def _change(
        self, request: Request, user: UserKey, session_id: str, current: str, password: str
    ) -> LocalAccount:
        # The session's own attempts: those at the account may be used up by strangers.
        attempts = [(SIGN_INS_BY_KNOWN_BROWSER, session_id)]
        await self.stores.attempt_limits.count(attempts)
        client = client_of(request)
        actor = Actor(*user, client.address, client.user_agent)
        try:
            changed = await self.stores.password_sessions.change(actor, current, password, session_id)
        except WrongPassword as error:
            # Not UNAUTHENTICATED, which tells a client that the session has ended.
            expected, message = "the current password", "The current password is wrong."
            raise BadUserInput("currentPassword", expected, message) from error
        await self.stores.attempt_limits.forget(attempts)
        return changed

    async def _new_account(self, request: Request, new: inputs.NewAccount, address: str) -> NewLocalAccount:
        name, handle, language = new.name, new.handle, new.language
        client = client_of(request)
        if new.passkey is not None:
            user_id, passkey = self._new_passkey(request, new.passkey, new.passkey_name)
            actor = Actor(self.organization_id, user_id, client.address, client.user_agent)
            return NewLocalAccount(actor, address, name, handle, None, language, passkey, token_of(request))
        password = required(new.password, "password", inputs.PASSWORD_FORMAT)
        password_hash = await self.stores.local_accounts.hashes.hash_new(password, name, address)
        actor = Actor(self.organization_id, new_id(), client.address, client.user_agent)
        return NewLocalAccount(actor, address, name, handle, password_hash, language, None, token_of(request))

    def _new_passkey(self, request: Request, answer: BrowserAnswer, name: str | None) -> tuple[str, NewPasskey]:
        if self.passkeys is None:
            raise Forbidden("Passkeys need a public address with https.")
        cookie, name = request.cookies.get(PASSKEY_COOKIE), required(name, "passkeyName", inputs.PASSKEY_NAME_FORMAT)
        return self.passkeys.new_passkey(CeremonyPurpose.NEW_ACCOUNT, cookie, answer, name)

    async def _new_account_answer(self, request: Request, signed_in: SignedIn) -> Response:
        """Returns the answer to the creation of an account, whose session has begun."""
        answer = with_session_cookie(json_answer(SignedInUser(user_id=signed_in.user.id), 201), signed_in.token)
        answer = without_passkey_cookie(answer)
        account = await self.stores.local_accounts.of_user(*signed_in.user.key)
        if account is None or account.password_hash is None:
            return answer
        return self._with_known_browser(request, account, answer)

    async def _mail(
        self, request: Request, mail: inputs.MailRequest, kind: AccountMailKind, invitation_id: str | None = None
    ) -> Response:
        address, limits = mail.address, self.stores.attempt_limits
        subject = f"{self.organization_id}\n{address}"
        await limits.count([(MAILS_BY_CLIENT, client_key_of(request)), (MAILS_TO_ADDRESS, subject)])
        await limits.count([(MAILS_OF_ORGANIZATION, self.organization_id)])
        await self.stores.account_mails.add(
            kind, self.organization_id, address, mail.language, invitation_id=invitation_id
        )
        return json_answer(EmptyAnswer(), 202)

    async def _count_link(self, request: Request) -> None:
        await self.stores.attempt_limits.count([(LINKS_BY_CLIENT, client_key_of(request))])

    async def _count_sign_in(self, request: Request, address: str) -> tuple[Sequence[LimitedAttempt], bool]:
        """Counts an attempt. Returns what to forget if it succeeds, and whether the browser is known.

        A known browser whose own attempts are used up is treated like others, since its cookie may have been stolen.
        Raises: RateLimited.
        """
        limits = self.stores.attempt_limits
        if (browser_id := await self._known_browser(request, address)) is not None:
            own_attempts = [(SIGN_INS_BY_KNOWN_BROWSER, browser_id)]
            with suppress(RateLimited):
                await limits.count(own_attempts)
                return own_attempts, True
        attempts = account_attempts(f"{self.organization_id}\n{address}", request)
        await limits.count([client_attempt(request), *attempts])
        return attempts, False

    async def _known_browser(self, request: Request, address: str) -> str | None:
        """Returns the id of a browser that is known for the account. Browsers without a cookie cause no lookup."""
        cookie = request.cookies.get(KNOWN_BROWSER_COOKIE)
        if not self.browsers.is_of_any_account(cookie):
            return None
        account = await self.stores.local_accounts.find(self.organization_id, address)
        return None if account is None else self.browsers.browser_id(account, cookie)

    def _with_known_browser(self, request: Request, account: LocalAccount, answer: Response) -> Response:
        """Makes the browser known for an account, whose password the person has just shown or chosen."""
        cookie = self.browsers.cookie(account, request.cookies.get(KNOWN_BROWSER_COOKIE))
        return with_cookie(answer, KNOWN_BROWSER_COOKIE, cookie, KNOWN_FOR_S, "strict")
