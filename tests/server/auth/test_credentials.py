"""Session cookies are refused in requests that a page of another origin may have caused."""

import pytest
from starlette.datastructures import Headers

from server.auth.credentials import (
    SESSION_COOKIE,
    Credential,
    CredentialKind,
    RequestCredentials,
    SessionEnded,
    bearer_credential,
)
from server.auth.tokens import TokenInvalid
from storage.errors import Forbidden

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
