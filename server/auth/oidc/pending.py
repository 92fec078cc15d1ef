"""Sign-ins that wait for the provider's answer. The browser holds them in an encrypted cookie, for 10 minutes."""

import re
import secrets
from dataclasses import dataclass

from server.auth.oidc.failures import SignInFailed, SignInFailure
from server.auth.sealed_cookies import SealedCookies
from storage.secrets import pkce

PENDING_COOKIE = "__Host-noroshi-sign-in"
PENDING_S = 600
MAX_PATH_CHARS = 1000
_LOCAL_PATH = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*")


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """A sign-in for which the server awaits the provider's answer."""

    state: str
    nonce: str
    verifier: str
    """The secret of PKCE. The provider gets its hash first, and the secret with the code."""

    next: str
    """The local path to open after the sign-in."""

    invitation: str | None = None
    """The token of the invitation that the person accepts by signing in."""

    @property
    def challenge(self) -> str:
        """The hash of the verifier, for the method S256."""
        return pkce.challenge(self.verifier)


class PendingSignIns:
    """Begins sign-ins, and encrypts them with a key that all processes share."""

    def __init__(self, key: bytes) -> None:
        """Takes a key of 32 bytes."""
        self._cookies = SealedCookies(key, PENDING_S)

    def begin(self, next_path: str | None, invitation: str | None = None) -> tuple[PendingSignIn, str]:
        """Returns a new sign-in, by which the person may accept an invitation, and the value of its cookie."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        pending = PendingSignIn(state, nonce, verifier, local_path(next_path), invitation)
        return pending, self._cookies.seal([state, nonce, verifier, pending.next, invitation])

    def open(self, cookie: str | None) -> PendingSignIn:
        """Returns the sign-in of a cookie. Raises: SignInFailed without a cookie, and for a cookie that is too old."""
        values = self._cookies.open(cookie)
        if values is None:
            raise SignInFailed(SignInFailure.EXPIRED, "no sign-in is pending in this browser")
        return PendingSignIn(*values)


def local_path(path: str | None) -> str:
    """Returns the path if it stays on this server, else `/`."""
    if path is None or len(path) > MAX_PATH_CHARS or not _LOCAL_PATH.fullmatch(path):
        return "/"
    return path
