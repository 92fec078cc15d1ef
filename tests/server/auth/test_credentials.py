"""Session cookies are refused in requests that a page of another origin may have caused."""

import base64

import pytest
from starlette.datastructures import Headers

from server.auth.credentials import (
    SESSION_COOKIE,
    Credential,
    CredentialKind,
    RequestCredentials,
    SessionEnded,
    bearer_credential,
    service_credential,
)
from server.auth.tokens import TokenInvalid
from storage.errors import Forbidden, Unauthenticated

TOKEN = "t" * 43
COOKIE = {"cookie": f"theme=dark; {SESSION_COOKIE}={TOKEN}; other=1", "host": "chat.example.org"}
CLIENT = {"noroshi-client": "web"}
OWN, ALLOWED = {"origin": "https://chat.example.org"}, {"origin": "https://app.example.org"}
SESSION = Credential(CredentialKind.SESSION, TOKEN)

credentials = RequestCredentials(["https://app.example.org"])


def test_cookie_with_client_header_is_a_session() -> None:
    for origin in ({}, OWN, ALLOWED):
        assert credentials.of_request(Headers({**COOKIE, **CLIENT, **origin})) == SESSION


@pytest.mark.parametrize(
    "headers",
    [
        {},
        OWN,
        *(
            {**CLIENT, "origin": origin}
            for origin in (
                "https://evil.example.org",
                "null",
                "",
                "http://app.example.org",
                "https://chat.example.org:8",
            )
        ),
    ],
)
def test_cookie_of_a_foreign_page_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Forbidden):
        credentials.of_request(Headers({**COOKIE, **headers}))


@pytest.mark.parametrize("headers", [{}, {"origin": "https://evil.example.org"}, {"origin": "null"}])
def test_cookie_of_a_foreign_socket_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Forbidden):
        credentials.of_socket(None, Headers({**COOKIE, **CLIENT, **headers}))


def test_socket_of_own_page_needs_no_client_header() -> None:
    for origin in (OWN, ALLOWED):
        assert credentials.of_socket(None, Headers({**COOKIE, **origin})) == SESSION


def test_authorization_wins_over_the_cookie() -> None:
    header = {"authorization": "Bearer abc"}
    expected = Credential(CredentialKind.TOKEN, "abc")
    assert credentials.of_request(Headers({**COOKIE, **header})) == expected
    assert credentials.of_socket("Bearer abc", Headers(COOKIE)) == expected
    assert credentials.of_socket(None, Headers({**COOKIE, **header})) == expected


def test_request_with_other_cookies_only_has_no_credential() -> None:
    assert credentials.of_request(Headers({"cookie": f"a=b; x{SESSION_COOKIE}={TOKEN}"})) is None


@pytest.mark.parametrize("value", ["", "short", TOKEN + "x", "ü" * 43])
def test_malformed_cookie_is_an_ended_session(value: str) -> None:
    raw = [(b"cookie", f"{SESSION_COOKIE}={value}".encode()), (b"noroshi-client", b"web")]
    with pytest.raises(SessionEnded):
        credentials.of_request(Headers(raw=raw))


def test_bearer_tokens_and_service_keys_differ_by_prefix() -> None:
    assert bearer_credential("Bearer nrk_abc") == Credential(CredentialKind.SERVICE_KEY, "nrk_abc")
    assert bearer_credential("bearer abc") == Credential(CredentialKind.TOKEN, "abc")
    with pytest.raises(TokenInvalid):
        bearer_credential("Basic abc")


def test_secret_is_not_in_the_representation() -> None:
    assert TOKEN not in repr(SESSION)


def test_password_of_basic_authentication_is_service_key() -> None:
    key = "nrk_" + "k" * 75
    header = base64.b64encode(f"sns:{key}".encode()).decode()
    expected = Credential(CredentialKind.SERVICE_KEY, key)
    assert service_credential(f"Basic {header}") == service_credential(f" basic  {header} ") == expected
    assert service_credential(f"Bearer {TOKEN}") == Credential(CredentialKind.TOKEN, TOKEN)
    assert service_credential(None) is None


@pytest.mark.parametrize("pair", [TOKEN, f":{TOKEN}", f"nrk_{TOKEN}:", "\xff:nrk_"])
def test_other_basic_authentication_is_refused(pair: str) -> None:
    with pytest.raises(Unauthenticated):
        service_credential(f"Basic {base64.b64encode(pair.encode('latin-1')).decode()}")
