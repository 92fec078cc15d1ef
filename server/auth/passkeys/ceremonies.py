"""Ceremonies that wait for a browser's answer. The browser holds them in an encrypted cookie, for 5 minutes.

An answer is therefore accepted only from the browser that asked for the challenge. Each challenge is accepted once.
"""

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from server.auth.passkeys.relying_party import ANSWER_S, BrowserAnswer, RelyingParty
from server.auth.sealed_cookies import SealedCookies
from storage.identity.passkeys.records import NewPasskey, Passkey, PasskeyRefused, PasskeyUse, WrongPasskey, user_handle
from storage.ids import UserKey

PASSKEY_COOKIE = "__Host-noroshi-passkey"
CHALLENGE_BYTES = 32


class CeremonyPurpose(Enum):
    """Purpose of an answer, which has no effect for another purpose."""

    SIGN_IN = "SIGN_IN"
    ADD = "ADD"
    NEW_ACCOUNT = "NEW_ACCOUNT"


@dataclass(frozen=True, slots=True)
class BegunCeremony:
    """A ceremony that has begun: the options for the browser, and the value of the cookie."""

    options: dict[str, Any]
    cookie: str


class PasskeyCeremonies:
    """Begins ceremonies and verifies their answers, with a key that all processes share."""

    def __init__(self, party: RelyingParty, key: bytes) -> None:
        """Takes a key of 32 bytes."""
        self.party = party
        self._cookies = SealedCookies(key, ANSWER_S)

    def begin_sign_in(self) -> BegunCeremony:
        """Begins a sign-in. The person, who is not known yet, chooses a passkey in the browser."""
        challenge = secrets.token_bytes(CHALLENGE_BYTES)
        return BegunCeremony(self.party.sign_in_options(challenge), self._seal(CeremonyPurpose.SIGN_IN, challenge, ""))

    def begin_registration(
        self, purpose: CeremonyPurpose, user: UserKey, address: str, name: str, existing: Sequence[Passkey] = ()
    ) -> BegunCeremony:
        """Begins the creation of a passkey of a user, who may not exist yet."""
        challenge = secrets.token_bytes(CHALLENGE_BYTES)
        options = self.party.registration_options(challenge, user_handle(user), address, name, existing)
        return BegunCeremony(options, self._seal(purpose, challenge, user.user_id))

    def use(self, cookie: str | None, answer: BrowserAnswer, passkey: Passkey | None) -> PasskeyUse:
        """Returns the use of a passkey that an answer proves. Raises: WrongPasskey."""
        opened = self._open(CeremonyPurpose.SIGN_IN, cookie)
        if opened is None or passkey is None:
            raise WrongPasskey
        return self.party.verify_use(answer, opened[0], passkey)

    def new_passkey(
        self, purpose: CeremonyPurpose, cookie: str | None, answer: BrowserAnswer, name: str
    ) -> tuple[str, NewPasskey]:
        """Returns the id of the user and the passkey that the browser created. Raises: PasskeyRefused."""
        opened = self._open(purpose, cookie)
        if opened is None:
            raise PasskeyRefused
        challenge, user_id = opened
        return user_id, self.party.verify_new(answer, challenge, name)

    def _seal(self, purpose: CeremonyPurpose, challenge: bytes, user_id: str) -> str:
        return self._cookies.seal([purpose.value, base64.b64encode(challenge).decode(), user_id])

    def _open(self, purpose: CeremonyPurpose, cookie: str | None) -> tuple[bytes, str] | None:
        """Returns the challenge and the user id of a cookie.

        Returns None without a cookie, and for a cookie that is forged, too old or for another purpose.
        """
        values = self._cookies.open(cookie)
        if values is None or values[0] != purpose.value:
            return None
        return base64.b64decode(values[1]), values[2]
