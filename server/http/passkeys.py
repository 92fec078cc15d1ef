"""The routes by which people sign in with passkeys, and add them. docs/interfaces.md describes requests and answers."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import Response

from server.auth.authenticators import ViewerSession
from server.auth.credentials import RequestCredentials
from server.auth.passkeys.ceremonies import PASSKEY_COOKIE, BegunCeremony, CeremonyPurpose, PasskeyCeremonies
from server.auth.passkeys.relying_party import ANSWER_S, credential_of
from server.auth.viewers import ViewerSessions
from server.http.accounts import inputs
from server.http.accounts.sign_in_attempts import account_attempts, client_attempt
from server.http.browser_routes import browser_route, json_body
from server.http.cookies import with_cookie, without_cookie
from server.http.json_answers import json_answer
from server.http.openapi import Answer, AnswerModel, Body, DescribedRoute, Operation, Scheme, Tag, parsed
from server.http.sessions import SIGNED_IN, SignedInUser, token_of, with_session_cookie
from server.transport.clients import client_of
from storage.errors import Forbidden, Unauthenticated
from storage.identity.accounts.attempt_limits import LimitedAttempt
from storage.identity.accounts.local_accounts import LocalAccount
from storage.identity.audit import Actor
from storage.identity.passkeys.records import CounterWentBack, passkey_id
from storage.ids import UserKey
from storage.stores import Stores

RECENT_SIGN_IN_S = 900
"""How old the sign-in of a person who adds a passkey may be, so that nobody adds a passkey at an unlocked computer."""

log = structlog.get_logger(__name__)


class PasskeyOptions(AnswerModel):
    """Options for the browser: a PublicKeyCredentialRequestOptionsJSON or PublicKeyCredentialCreationOptionsJSON."""

    public_key: dict[str, Any]


class StoredPasskey(AnswerModel):
    """A passkey that was added."""

    id: str


OPTIONS_ANSWER = Answer("The options for the browser, and a cookie that holds the challenge.", PasskeyOptions)

BEGIN_SIGN_IN = Operation(
    id="beginPasskeySignIn",
    tag=Tag.SIGN_IN,
    summary="Get the options for a sign-in with a passkey",
    answers={200: OPTIONS_ANSWER},
)
SIGN_IN = Operation(
    id="signInWithPasskey",
    tag=Tag.SIGN_IN,
    summary="Sign in with a passkey",
    body=Body([inputs.PasskeySignIn]),
    answers={200: SIGNED_IN},
    errors=(401, 429),
)
BEGIN_ADDING = Operation(
    id="beginPasskey",
    tag=Tag.ACCOUNTS,
    summary="Get the options for another passkey of the person who is signed in",
    answers={200: OPTIONS_ANSWER},
    errors=(401,),
    security={Scheme.SESSION: ()},
)
ADD = Operation(
    id="addPasskey",
    tag=Tag.ACCOUNTS,
    summary="Add a passkey for the person who is signed in",
    description="The sign-in must be of the last 15 minutes.",
    body=Body([inputs.AddedPasskey]),
    answers={201: Answer("The passkey is added.", StoredPasskey)},
    errors=(401, 409),
    security={Scheme.SESSION: ()},
)


def passkey_routes(
    stores: Stores,
    viewers: ViewerSessions,
    credentials: RequestCredentials,
    organization_id: str,
    ceremonies: PasskeyCeremonies,
) -> list[DescribedRoute]:
    """Returns the routes by which people of an organization use passkeys."""
    passkeys = _PasskeyRoutes(stores, viewers, credentials, organization_id, ceremonies)
    return [
        browser_route("/sign-in/passkey/options", BEGIN_SIGN_IN, credentials, passkeys.begin_sign_in),
        browser_route("/sign-in/passkey", SIGN_IN, credentials, passkeys.sign_in),
        browser_route("/accounts/passkeys/options", BEGIN_ADDING, credentials, passkeys.begin_adding),
        browser_route("/accounts/passkeys", ADD, credentials, passkeys.add),
    ]


def options_answer(begun: BegunCeremony) -> Response:
    """Returns the answer that begins a ceremony in the browser."""
    answer = json_answer(PasskeyOptions(public_key=begun.options))
    return with_cookie(answer, PASSKEY_COOKIE, begun.cookie, ANSWER_S, "strict")


def without_passkey_cookie(response: Response) -> Response:
    """Deletes the cookie of a complete ceremony."""
    return without_cookie(response, PASSKEY_COOKIE, "strict")


@dataclass(frozen=True, slots=True)
class _PasskeyRoutes:
    """The handlers of the routes. A refusal of a sign-in does not say what is wrong with the answer."""

    stores: Stores
    viewers: ViewerSessions
    credentials: RequestCredentials
    organization_id: str
    ceremonies: PasskeyCeremonies

    async def begin_sign_in(self, request: Request) -> Response:
        """Gives the browser a challenge. Nothing is stored."""
        return options_answer(self.ceremonies.begin_sign_in())

    async def sign_in(self, request: Request) -> Response:
        """Begins a session for the answer of a passkey."""
        answer = parsed(inputs.PasskeySignIn, await json_body(request)).passkey
        credential = credential_of(answer) or b""
        attempts = self._attempts(credential, request)
        await self.stores.attempt_limits.count([client_attempt(request), *attempts])
        passkey = await self.stores.passkeys.find(self.organization_id, credential)
        use = self.ceremonies.use(request.cookies.get(PASSKEY_COOKIE), answer, passkey)
        assert passkey is not None
        client = client_of(request)
        try:
            signed_in = await self.stores.passkey_sessions.sign_in(
                passkey, use, client.address, client.user_agent, token_of(request)
            )
        except CounterWentBack:
            log.warning("passkey_counter_went_back", passkey=passkey.id, user=passkey.user.user_id, counter=use.counter)
            raise
        await self.stores.attempt_limits.forget(attempts)
        response = json_answer(SignedInUser(user_id=signed_in.user.id))
        return without_passkey_cookie(with_session_cookie(response, signed_in.token))

    async def begin_adding(self, request: Request) -> Response:
        """Gives the browser of a signed-in person the options for a new passkey."""
        viewer, account = await self._recent_sign_in(request)
        existing = await self.stores.passkeys.list_of(viewer.user_key)
        user_name = viewer.user.name
        return options_answer(
            self.ceremonies.begin_registration(
                CeremonyPurpose.ADD, viewer.user_key, account.address, user_name, existing
            )
        )

    async def add(self, request: Request) -> Response:
        """Adds the passkey that the browser has created."""
        body = await json_body(request)
        viewer, _ = await self._recent_sign_in(request)
        added = parsed(inputs.AddedPasskey, body)
        actor = Actor(*viewer.user_key, client_of(request).address, client_of(request).user_agent)
        cookie = request.cookies.get(PASSKEY_COOKIE)
        user_id, new = self.ceremonies.new_passkey(CeremonyPurpose.ADD, cookie, added.passkey, added.passkey_name)
        if user_id != viewer.user.id:
            raise Forbidden("Another person was signed in when this began. Try again.")
        passkey = await self.stores.passkeys.add(actor, new)
        return without_passkey_cookie(json_answer(StoredPasskey(id=passkey.id), 201))

    async def _recent_sign_in(self, request: Request) -> tuple[ViewerSession, LocalAccount]:
        """Returns the session of a person who signed in lately, and the person's local account.

        Raises: Unauthenticated, Forbidden.
        """
        viewer = await self.viewers.session(self.credentials.of_request(request.headers))
        if viewer is None or viewer.id is None:
            raise Unauthenticated("Sign in first.")
        account = await self.stores.local_accounts.of_user(*viewer.user_key)
        if account is None:
            raise Forbidden("Only people who have an account on this server have passkeys here.")
        await self._require_recent_sign_in(viewer.user_key, viewer.id)
        return viewer, account

    async def _require_recent_sign_in(self, user: UserKey, session_id: str) -> None:
        sessions = await self.stores.sessions.list_of(user)
        now, max_age = await self.stores.clock.now(), timedelta(seconds=RECENT_SIGN_IN_S)
        if not any(each.id == session_id and now - each.started_at <= max_age for each in sessions):
            raise Forbidden("Your sign-in is more than 15 minutes old. Sign out and in again to add a passkey.")

    def _attempts(self, credential: bytes, request: Request) -> list[LimitedAttempt]:
        return account_attempts(f"{self.organization_id}\npasskey {passkey_id(credential)}", request)
