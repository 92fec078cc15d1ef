"""Lifetimes of credentials: when they end, and when they are renewed."""

from datetime import UTC, datetime, timedelta

import pytest

from storage.publishing.credentials.lifetimes import (
    UNKNOWN_LIFETIME,
    CredentialLifetime,
    lifetime_fields,
    refresh_token_subject,
)
from storage.publishing.networks import Network
from storage.secrets.credentials import CredentialCipher

CIPHER = CredentialCipher({"1": b"k" * 32})
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
HOUR, DAY = 3600.0, 86_400.0


@pytest.mark.parametrize(
    ("network", "expires_in_s", "renewed_after_s"),
    [
        (Network.X, 2 * HOUR, 1.75 * HOUR),
        (Network.INSTAGRAM, 60 * DAY, 50 * DAY),
        (Network.X, 600.0, 300.0),
    ],
)
def test_credentials_are_renewed_ahead(network: Network, expires_in_s: float, renewed_after_s: float) -> None:
    fields = lifetime_fields(CIPHER, "a", network, CredentialLifetime(expires_in_s, is_renewable=True), NOW)
    assert fields == {
        "expires_at": NOW + timedelta(seconds=expires_in_s),
        "renew_at": NOW + timedelta(seconds=renewed_after_s),
    }


def test_credentials_without_end_are_not_renewed() -> None:
    assert lifetime_fields(CIPHER, "a", Network.MASTODON, UNKNOWN_LIFETIME, NOW) == {}
    ending = lifetime_fields(CIPHER, "a", Network.X, CredentialLifetime(HOUR), NOW)
    assert ending == {"expires_at": NOW + timedelta(hours=1)}


def test_refresh_token_is_encrypted_for_its_own_subject() -> None:
    lifetime = CredentialLifetime(HOUR, "refresh-token", is_renewable=True)
    assert "refresh-token" not in repr(lifetime)
    sealed = lifetime_fields(CIPHER, "a", Network.X, lifetime, NOW)["refresh_token"]
    assert CIPHER.open(sealed, refresh_token_subject("a")) == "refresh-token"
    assert refresh_token_subject("a") != "a"
