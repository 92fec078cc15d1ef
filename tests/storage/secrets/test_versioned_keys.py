"""Keys as operators write them down."""

import base64

import pytest

from storage.secrets.versioned_keys import versioned_keys


def test_keys_are_read_newest_first_in_either_alphabet() -> None:
    key = bytes(range(224, 256))
    plain, web = base64.b64encode(key).decode(), base64.urlsafe_b64encode(key).decode().rstrip("=")
    assert versioned_keys(f"2:{web}, 1:{plain}") == {"2": key, "1": key}
    assert list(versioned_keys(f"2:{web},1:{plain}")) == ["2", "1"]
    assert versioned_keys("") == {}


@pytest.mark.parametrize("pairs", ["x", "1:", "1:!!!!", "1:c2hvcnQ=", ":AAAA", "1:{k},1:{k}"])
def test_what_is_no_key_is_refused_without_repeating_it(pairs: str) -> None:
    key = base64.b64encode(bytes(32)).decode()
    with pytest.raises(ValueError) as refused:
        versioned_keys(pairs.replace("{k}", key))
    assert key not in str(refused.value)
