"""Credentials of requests: a bearer token, a service key, or the cookie of a session.

A browser also sends cookies with requests that pages of other origins cause. A request with the cookie of a session
therefore needs a header that other origins can't send without CORS. If the request has an Origin, it must be allowed. A
socket with the cookie always needs an allowed Origin.
"""

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from starlette.datastructures import Headers

# Strawberry checks the sockets of a browser with the same functions.
from strawberry.http.websocket_origin import is_same_origin, normalize_allowed_origins, normalize_origin

from server.auth.tokens import bearer_token
from storage.errors import Forbidden, Unauthenticated
from storage.identity.keys.secrets import PREFIX

SESSION_COOKIE = "__Host-noroshi"
CLIENT_HEADER = "Noroshi-Client"
_SESSION_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


class CredentialKind(Enum):
    """Kind of a credential. Each kind has an authenticator of its own."""

    TOKEN = "TOKEN"  # noqa: S105 - not a password
    SERVICE_KEY = "SERVICE_KEY"
    SESSION = "SESSION"


@dataclass(frozen=True, slots=True)
class Credential:
    """The credential of a request: its kind, and the token, key or cookie value."""

    kind: CredentialKind
    secret: str = field(repr=False)


class SessionEnded(Unauthenticated):
    """The session of the cookie has ended, or never existed."""

    def __init__(self) -> None:
        super().__init__("The session has ended. Sign in again.")


def bearer_credential(authorization: str | None) -> Credential | None:
    """Returns the credential of an Authorization header; None without a header. Raises: TokenInvalid."""
    token = bearer_token(authorization)
    if token is None:
        return None
    is_key = token.startswith(PREFIX)
    return Credential(CredentialKind.SERVICE_KEY if is_key else CredentialKind.TOKEN, token)


def service_credential(authorization: str | None) -> Credential | None:
    """Returns the credential of a service: a bearer token, or a service key as the password of Basic authentication.

    Services that can't set headers send the user and password of a URL. The user may have any name. None without a
    header. Raises: Unauthenticated.
    """
    scheme, _, encoded = (authorization or "").strip().partition(" ")
    if scheme.lower() != "basic":
        return bearer_credential(authorization)
    try:
        _, _, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except ValueError:
        password = ""
    if not password.startswith(PREFIX):
        raise Unauthenticated("The password of Basic authentication is not a service key.")
    return Credential(CredentialKind.SERVICE_KEY, password)


def session_token(headers: Headers) -> str | None:
    """Returns the token of the session's cookie, or None. Raises: SessionEnded if it can't be a token."""
    for pair in ";".join(headers.getlist("cookie")).split(";"):
        name, _, value = pair.partition("=")
        if name.strip() != SESSION_COOKIE:
            continue
        if not _SESSION_TOKEN.fullmatch(value.strip()):
            raise SessionEnded
        return value.strip()
    return None


class RequestCredentials:
    """Finds the credential of a request, and refuses requests that pages of other origins cause."""

    def __init__(self, allowed_origins: Iterable[str] = ()) -> None:
        self._allowed_origins = normalize_allowed_origins(allowed_origins)

    def of_request(self, headers: Headers) -> Credential | None:
        """Returns the credential of the header Authorization, or of the cookie, or None.

        Raises: Unauthenticated, Forbidden.
        """
        if (authorization := headers.get("authorization")) is not None:
            return bearer_credential(authorization)
        token = session_token(headers) if "cookie" in headers else None
        if token is None:
            return None
        self.check_browser(headers)
        return Credential(CredentialKind.SESSION, token)

    def of_download(self, headers: Headers) -> Credential | None:
        """Returns the credential of a request that only reads a file, which an element such as `img` may cause.

        Such a request has no header Noroshi-Client. A cookie therefore counts if no page of another origin has caused
        the request. Raises: Unauthenticated, Forbidden.
        """
        if headers.get("authorization") is not None or CLIENT_HEADER in headers:
            return self.of_request(headers)
        token = session_token(headers) if "cookie" in headers else None
        if token is None:
            return None
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise Forbidden("Pages of other origins can't use the cookie of a session.")
        return Credential(CredentialKind.SESSION, token)

    def of_socket(self, authorization: str | None, headers: Headers) -> Credential | None:
        """Returns the credential of `connection_init` or of the handshake. A cookie counts only with an allowed Origin.

        Raises: Unauthenticated, Forbidden.
        """
        if (header := authorization or headers.get("authorization")) is not None:
            return bearer_credential(header)
        token = session_token(headers)
        if token is None:
            return None
        if "origin" not in headers:
            raise Forbidden("A socket with the cookie of a session needs the header Origin.")
        self._check_origin(headers)
        return Credential(CredentialKind.SESSION, token)

    def check_browser(self, headers: Headers) -> None:
        """Raises Forbidden if a page of another origin may have caused the request."""
        if CLIENT_HEADER not in headers:
            raise Forbidden(f"Send the header {CLIENT_HEADER} with any value, which other origins can't send.")
        self._check_origin(headers)

    def _check_origin(self, headers: Headers) -> None:
        origin = headers.get("origin")
        if origin is None or is_same_origin(origin, headers.get("host")):
            return
        if normalize_origin(origin) not in self._allowed_origins:
            raise Forbidden(
                f"The origin {origin[:100]!r} may not use sessions here; NOROSHI_PUBLIC_URL and "
                "NOROSHI_ALLOWED_ORIGINS name those that may."
            )
