"""Standard Webhooks: what is valid, and every way in which it is not."""

import pytest

from jobs.providers.webhook_signature import is_signed, signed_headers

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'
ID, AT = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330


def test_the_published_example_is_signed_the_same() -> None:
    headers = signed_headers(SECRET, ID, AT, BODY)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    ("change", "valid"),
    [
        ({}, True),
        ({"signatures": "v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}, True),
        ({"content": b"{}"}, False),
        ({"secret": "whsec_AAAA"}, False),
        ({"id_": "msg_other"}, False),
        ({"now_s": AT + 301}, False),
        ({"now_s": AT - 301}, False),
        ({"now_s": AT + 299}, True),
        ({"timestamp": "soon"}, False),
        ({"timestamp": ""}, False),
        ({"signatures": ""}, False),
        ({"signatures": "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}, False),
    ],
)
def test_only_what_was_signed_lately_counts(change: dict[str, object], valid: bool) -> None:
    given = {
        "secret": SECRET,
        "id_": ID,
        "timestamp": str(AT),
        "signatures": signed_headers(SECRET, ID, AT, BODY)["webhook-signature"],
        "content": BODY,
        "now_s": AT,
    }
    assert is_signed(**(given | change)) is valid  # type: ignore[arg-type]
