"""Signed image URLs: only URLs that the server signed are verified."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.secrets.image_urls import ImageUrls

SECRET = b"a secret of the tests, long enough"
IMAGES = ImageUrls("https://noroshi.example/", SECRET)
REMOTE = "https://example.com/狼煙.png?a=b"


def signature_and_encoded_url(url: str) -> tuple[str, str]:
    signature, encoded = url.split("/")[-2:]
    return signature, encoded


def test_signed_url_has_the_form_of_the_route() -> None:
    signed = IMAGES.sign(REMOTE)
    assert re.fullmatch(r"https://noroshi\.example/images/[\w-]{22}/[\w-]+", signed, re.ASCII)
    assert signed == IMAGES.sign(REMOTE)


def test_signed_url_is_the_same_in_every_release() -> None:
    # Clients and caches store these URLs, so a new key or format would break them.
    assert ImageUrls("", b"secret").sign("https://example.com/a.png") == (
        "/images/OgGNoDX5kDu9eAPUmm69NQ/aHR0cHM6Ly9leGFtcGxlLmNvbS9hLnBuZw"
    )


def with_changed_character(text: str, index: int) -> str:
    return text[:index] + ("A" if text[index] != "A" else "B") + text[index + 1 :]


@given(st.text())
def test_verify_returns_the_signed_url(remote_url: str) -> None:
    assert IMAGES.verify(*signature_and_encoded_url(IMAGES.sign(remote_url))) == remote_url


@given(st.text(), st.text())
def test_verify_without_a_valid_signature_returns_none(signature: str, encoded: str) -> None:
    assert IMAGES.verify(signature, encoded) is None
    assert IMAGES.verify(signature, signature_and_encoded_url(IMAGES.sign(REMOTE))[1]) is None
    assert IMAGES.verify(signature_and_encoded_url(IMAGES.sign(REMOTE))[0], encoded) is None


@pytest.mark.parametrize("index", [0, 10, 21])
def test_verify_after_one_changed_character_returns_none(index: int) -> None:
    signature, encoded = signature_and_encoded_url(IMAGES.sign(REMOTE))
    assert IMAGES.verify(with_changed_character(signature, index), encoded) is None
    assert IMAGES.verify(signature, with_changed_character(encoded, index)) is None
    assert IMAGES.verify(signature, encoded + "=") is None
    assert IMAGES.verify(signature[:index], encoded) is None


def test_other_secret_or_derived_key_as_secret_verifies_nothing() -> None:
    signature, encoded = signature_and_encoded_url(IMAGES.sign(REMOTE))
    assert ImageUrls("", b"another secret").verify(signature, encoded) is None
    derived_key = ImageUrls("", SECRET)._key
    assert derived_key != SECRET
    assert ImageUrls("", derived_key).verify(signature, encoded) is None


@given(st.text(), st.from_regex(r"[0-9a-f]{32}", fullmatch=True))
def test_copy_belongs_to_the_signature(remote_url: str, copy_id: str) -> None:
    *_, signature, encoded, signed_copy = IMAGES.sign(remote_url, copy_id).split("/")
    assert signed_copy == copy_id
    assert IMAGES.verify(signature, encoded, copy_id) == remote_url
    for other in ("", with_changed_character(copy_id, 5)):
        assert IMAGES.verify(signature, encoded, other) is None
    plain_signature, _ = signature_and_encoded_url(IMAGES.sign(remote_url))
    assert IMAGES.verify(plain_signature, encoded, copy_id) is None
