"""Authorization at a network: apps, the dialog in which a person allows access, and codes that are used once."""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request

PKCE = {"code_challenge", "code_challenge_method"}
PARAMETERS = {"response_type", "client_id", "redirect_uri", "scope", "state"}


@dataclass(frozen=True)
class AppTwin:
    """An app that is registered at the network."""

    client_secret: str | None
    redirect_uri: str
    scopes: str


class AuthorizationTwin:
    """The dialog of a network, and its codes. Every parameter is compared with the network's documentation."""

    def __init__(self, address: Callable[[], str], path: str, *, has_pkce: bool = True) -> None:
        """`address` returns that of the dialog's site; `path` is that of the dialog."""
        self._address, self._path = address, path
        self._parameters = PARAMETERS | (PKCE if has_pkce else set())
        self._apps: dict[str, AppTwin] = {}
        self._codes: dict[str, dict[str, str]] = {}

    def add_app(self, client_id: str, client_secret: str | None, redirect_uri: str, scopes: str) -> None:
        self._apps[client_id] = AppTwin(client_secret, redirect_uri, scopes)

    def knows_app(self, client_id: str, client_secret: str | None) -> bool:
        return client_id in self._apps and self._apps[client_id].client_secret == client_secret

    def allow(self, url: str) -> str:
        """Allows access as a person does in the dialog. Returns the address to which the browser is sent back."""
        parameters = self.check(url)
        code = f"code-{len(self._codes)}"
        self._codes[code] = parameters
        return f"{parameters['redirect_uri']}?{urlencode({'code': code, 'state': parameters['state']})}"

    def deny(self, url: str) -> str:
        """Denies access. Returns the address to which the browser is sent back (RFC 6749, 4.1.2.1)."""
        parameters = self.check(url)
        text = "The resource owner or authorization server denied the request."
        answer = {"error": "access_denied", "error_description": text, "state": parameters["state"]}
        return f"{parameters['redirect_uri']}?{urlencode(answer)}"

    def check(self, url: str) -> dict[str, str]:
        """Returns the parameters of the dialog's address. Raises: AssertionError for undocumented ones."""
        parts = urlsplit(url)
        assert f"{parts.scheme}://{parts.netloc}" == self._address()
        assert parts.path == self._path
        assert "+" not in parts.query, "X reads a space only from %20"
        pairs = parse_qsl(parts.query, strict_parsing=True)
        parameters = dict(pairs)
        assert len(pairs) == len(parameters)
        assert parameters.keys() == self._parameters
        app = self._apps[parameters["client_id"]]
        assert parameters["response_type"] == "code"
        assert parameters["redirect_uri"] == app.redirect_uri
        assert parameters["scope"] == app.scopes
        assert len(parameters["state"]) >= 32
        assert parameters.get("code_challenge_method", "S256") == "S256"
        return parameters

    def use_code(self, form: dict[str, str], client_id: str) -> str | None:
        """Returns the scopes of a code, which is valid once. None if the code, app, address or verifier is wrong."""
        authorization = self._codes.pop(form["code"], None)
        if authorization is None or authorization["client_id"] != client_id:
            return None
        if authorization["redirect_uri"] != form["redirect_uri"]:
            return None
        challenge = authorization.get("code_challenge")
        if challenge is not None and challenge != _challenge(form["code_verifier"]):
            return None
        return authorization["scope"]


def _challenge(verifier: str) -> str:
    assert 43 <= len(verifier) <= 128, "RFC 7636, 4.1"
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


async def form_of(request: Request) -> dict[str, str]:
    """Returns the fields of a form, each of which is given once."""
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    pairs = parse_qsl((await request.body()).decode(), keep_blank_values=True, strict_parsing=True)
    fields = dict(pairs)
    assert len(fields) == len(pairs)
    return fields


def basic_credentials(request: Request) -> tuple[str, str] | None:
    """Returns the user and the password of Basic authentication, or None."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme != "Basic":
        return None
    user, _, password = base64.b64decode(value).decode().partition(":")
    return user, password
