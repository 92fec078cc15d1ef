"""Encryption of credentials: keys by version, bound to their account."""

import pytest

from storage.errors import Unavailable
from storage.secrets.credentials import CredentialCipher, CredentialsLost

ONE, TWO = b"1" * 32, b"2" * 32


def test_what_is_sealed_can_be_opened_and_not_read() -> None:
    credentials = CredentialCipher({"1": ONE})
    stored = credentials.seal("hush", "a")
    assert b"hush" not in stored["sealed"]
    assert credentials.open(stored, "a") == "hush"
    assert credentials.seal("hush", "a")["sealed"] != stored["sealed"]


def test_it_opens_only_for_its_account_with_its_key_unchanged() -> None:
    credentials = CredentialCipher({"1": ONE})
    stored = credentials.seal("hush", "a")
    spoiled = {**stored, "sealed": bytes([stored["sealed"][0] ^ 1]) + stored["sealed"][1:]}
    for opener, document, account in (
        (credentials, stored, "b"),
        (credentials, spoiled, "a"),
        (CredentialCipher({"1": TWO}), stored, "a"),
        (CredentialCipher({"2": ONE}), stored, "a"),
    ):
        with pytest.raises(CredentialsLost):
            opener.open(document, account)


def test_the_newest_key_seals_and_older_ones_still_open() -> None:
    old = CredentialCipher({"1": ONE}).seal("hush", "a")
    rotated = CredentialCipher({"2": TWO, "1": ONE})
    assert rotated.open(old, "a") == "hush"
    assert rotated.seal("hush", "a")["version"] == "2"


def test_without_a_key_nothing_is_sealed() -> None:
    with pytest.raises(Unavailable):
        CredentialCipher({}).seal("hush", "a")


def test_fingerprints_tell_secrets_apart_under_a_key() -> None:
    one, two = CredentialCipher({"1": ONE}), CredentialCipher({"1": TWO})
    assert one.fingerprint("hush") == one.fingerprint("hush") != one.fingerprint("other")
    assert one.fingerprint("hush") != two.fingerprint("hush")
