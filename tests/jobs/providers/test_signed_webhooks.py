"""Signatures of Standard Webhooks: the published test vector, rotation of secrets, and refused signatures."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.providers.signed_webhooks import ID, SIGNATURE, TIMESTAMP, SignatureRefused, sign, verify
from storage.secrets.webhook_keys import webhook_key

SECRET = "a secret without prefix"
BODY = b'{"callId": "c1", "sequence": 1}'
NOW = 1_700_000_000


def test_signature_matches_published_vector() -> None:
    """The vector is from the reference libraries of the specification."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    headers = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert headers[SIGNATURE] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=40), st.binary(max_size=200), st.integers(-300, 300))
def test_signature_is_accepted_for_five_minutes(secret: str, body: bytes, age_s: int) -> None:
    secret = secret.removeprefix("whsec_") or "x"
    signed = verify(secret, sign(secret, "id-1", NOW, body), body, NOW + age_s)
    assert (signed.id, signed.timestamp) == ("id-1", NOW)


@pytest.mark.parametrize("age_s", [-301, 301, 10**9])
def test_signature_outside_five_minutes_is_refused(age_s: int) -> None:
    with pytest.raises(SignatureRefused, match="300 s"):
        verify(SECRET, sign(SECRET, "id-1", NOW, BODY), BODY, NOW + age_s)


def test_changed_body_id_time_or_secret_is_refused() -> None:
    headers = sign(SECRET, "id-1", NOW, BODY)
    for secret, changed, body in [
        (SECRET, headers, BODY + b" "),
        (SECRET, headers | {ID: "id-2"}, BODY),
        (SECRET, headers | {TIMESTAMP: str(NOW + 1)}, BODY),
        ("another", headers, BODY),
    ]:
        with pytest.raises(SignatureRefused, match="matches"):
            verify(secret, changed, body, NOW)


@pytest.mark.parametrize("name", [ID, TIMESTAMP, SIGNATURE])
@pytest.mark.parametrize("value", [None, "", "nonsense", "v1", "v1,", "v1a,xx", "-1", "٣", "9" * 4000, "v1,\u00e9"])
def test_missing_or_malformed_header_is_refused(name: str, value: str | None) -> None:
    if (name, value) == (ID, "nonsense"):
        return
    headers = {key: text for key, text in sign(SECRET, "id-1", NOW, BODY).items() if key != name}
    if value is not None:
        headers[name] = value
    with pytest.raises(SignatureRefused):
        verify(SECRET, headers, BODY, NOW)


def test_one_valid_signature_of_several_suffices() -> None:
    old, new = (sign(secret, "id-1", NOW, BODY) for secret in ("old", "new"))
    headers = new | {SIGNATURE: f"v1a,other {old[SIGNATURE]} {new[SIGNATURE]}"}
    assert verify("new", headers, BODY, NOW).id == "id-1"
    assert verify("old", headers, BODY, NOW).id == "id-1"


def test_prefixed_secret_is_decoded_from_base64() -> None:
    assert webhook_key("whsec_" + base64.b64encode(b"\x00\xff").decode()) == b"\x00\xff"
    assert webhook_key("狼煙") == "狼煙".encode()
    with pytest.raises(ValueError, match="base64"):
        webhook_key("whsec_???")
