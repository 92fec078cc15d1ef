"""Credentials are encrypted for one account each, with keys that can be rotated."""

import pytest

from storage.errors import Unavailable
from storage.secrets.credentials import CredentialCipher, CredentialsLost, SealedSecret

KEY, OTHER_KEY = b"1" * 32, b"2" * 32


def test_sealed_secret_is_encrypted_and_can_be_opened() -> None:
    cipher = CredentialCipher({"1": KEY})
    stored = cipher.seal("hush", "a")
    assert b"hush" not in stored["sealed"]
    assert cipher.open(stored, "a") == "hush"
    assert cipher.seal("hush", "a")["sealed"] != stored["sealed"]


def test_other_account_key_or_ciphertext_raises_credentials_lost() -> None:
    cipher = CredentialCipher({"1": KEY})
    stored = cipher.seal("hush", "a")
    changed: SealedSecret = {**stored, "sealed": bytes([stored["sealed"][0] ^ 1]) + stored["sealed"][1:]}
    for opener, document, account in (
        (cipher, stored, "b"),
        (cipher, changed, "a"),
        (CredentialCipher({"1": OTHER_KEY}), stored, "a"),
        (CredentialCipher({"2": KEY}), stored, "a"),
    ):
        with pytest.raises(CredentialsLost):
            opener.open(document, account)


def test_newest_key_seals_and_older_keys_still_open() -> None:
    stored = CredentialCipher({"1": KEY}).seal("hush", "a")
    rotated_cipher = CredentialCipher({"2": OTHER_KEY, "1": KEY})
    assert rotated_cipher.open(stored, "a") == "hush"
    assert rotated_cipher.seal("hush", "a")["version"] == "2"


def test_seal_without_a_key_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        CredentialCipher({}).seal("hush", "a")


def test_fingerprint_depends_on_secret_and_key() -> None:
    one, two = CredentialCipher({"1": KEY}), CredentialCipher({"1": OTHER_KEY})
    assert one.fingerprint("hush") == one.fingerprint("hush") != one.fingerprint("other")
    assert one.fingerprint("hush") != two.fingerprint("hush")
