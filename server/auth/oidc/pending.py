"""Sign-ins that wait for the provider's answer. The browser holds them in an encrypted cookie, for 10 minutes."""

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass

import orjson
from cryptography.fernet import Fernet, InvalidToken

from server.auth.oidc.failures import SignInFailed, SignInFailure

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
    """The secret of PKCE, of which the provider first gets only the hash."""

    next: str
    """The local path to open after the sign-in."""

    @property
    def challenge(self) -> str:
        """The hash of the verifier, for the method S256."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class PendingSignIns:
    """Begins sign-ins, and encrypts them with a key that all processes share."""

    def __init__(self, key: bytes) -> None:
        """Takes a key of 32 bytes."""
        self._fernet = Fernet(base64.urlsafe_b64encode(key))

    def begin(self, next_path: str | None) -> tuple[PendingSignIn, str]:
        """Returns a new sign-in, and the value of its cookie."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        pending = PendingSignIn(state, nonce, verifier, local_path(next_path))
        return pending, self._fernet.encrypt(orjson.dumps([state, nonce, verifier, pending.next])).decode()

    def open(self, cookie: str | None) -> PendingSignIn:
        """Returns the sign-in of a cookie. Raises: SignInFailed without a cookie, and for one that is too old."""
        try:
            values = orjson.loads(self._fernet.decrypt((cookie or "").encode("utf-8", "replace"), ttl=PENDING_S))
        except InvalidToken:
            raise SignInFailed(SignInFailure.EXPIRED, "no sign-in is pending in this browser") from None
        return PendingSignIn(*values)


def local_path(path: str | None) -> str:
    """Returns the path if it stays on this server, else `/`."""
    if path is None or len(path) > MAX_PATH_CHARS or not _LOCAL_PATH.fullmatch(path):
        return "/"
    return path
