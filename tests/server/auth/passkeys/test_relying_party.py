"""The relying party of a public address. tests/server/http/test_passkeys.py tests the answers that it checks."""

import pytest

from server.auth.passkeys.relying_party import RelyingParty, credential_of, relying_party


@pytest.mark.parametrize(
    ("base_url", "party"),
    [
        ("https://Chat.example.org", RelyingParty("chat.example.org", "https://chat.example.org")),
        ("https://chat.example.org:443", RelyingParty("chat.example.org", "https://chat.example.org")),
        ("https://chat.example.org:8443/x", RelyingParty("chat.example.org", "https://chat.example.org:8443")),
        ("http://localhost:8000", RelyingParty("localhost", "http://localhost:8000")),
        ("http://chat.example.org", None),
        ("http://127.0.0.1:8000", None),
        ("https://192.0.2.7", None),
        ("https://[2001:db8::1]", None),
    ],
)
def test_passkeys_need_a_secure_host_name(base_url: str, party: RelyingParty | None) -> None:
    assert relying_party(base_url) == party


@pytest.mark.parametrize(("id_", "credential"), [("AAEC", b"\0\1\2"), ("é", None), (7, None), (None, None)])
def test_credential_is_read_from_the_answer(id_: object, credential: bytes | None) -> None:
    assert credential_of({"id": id_}) == credential
