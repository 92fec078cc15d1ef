"""Parsing of versioned keys from the settings."""

import base64

import pytest

from storage.secrets.versioned_keys import versioned_keys


def test_keys_keep_their_order_in_either_alphabet() -> None:
    key = bytes(range(224, 256))
    standard, url_safe = base64.b64encode(key).decode(), base64.urlsafe_b64encode(key).decode().rstrip("=")
    assert versioned_keys(f"2:{url_safe}, 1:{standard}") == {"2": key, "1": key}
    assert list(versioned_keys(f"2:{url_safe},1:{standard}")) == ["2", "1"]
    assert versioned_keys("") == {}


@pytest.mark.parametrize("pairs", ["x", "1:", "1:!!!!", "1:c2hvcnQ=", ":AAAA", "1:{k},1:{k}"])
def test_invalid_pairs_are_refused_without_showing_a_key(pairs: str) -> None:
    key = base64.b64encode(bytes(32)).decode()
    with pytest.raises(ValueError) as refusal:
        versioned_keys(pairs.replace("{k}", key))
    assert key not in str(refusal.value)
