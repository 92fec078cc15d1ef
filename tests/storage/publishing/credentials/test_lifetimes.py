"""Lifetimes of credentials: when they end, and when they are renewed."""

from datetime import UTC, datetime, timedelta

import pytest

from storage.publishing.credentials.lifetimes import (
    UNKNOWN_LIFETIME,
    CredentialLifetime,
    due_warning,
    lifetime_fields,
    next_warning_at,
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
        "warn_at": NOW + timedelta(seconds=renewed_after_s + DAY),
    }


def test_credentials_without_end_are_not_renewed() -> None:
    assert lifetime_fields(CIPHER, "a", Network.MASTODON, UNKNOWN_LIFETIME, NOW) == {}
    ending = lifetime_fields(CIPHER, "a", Network.X, CredentialLifetime(HOUR), NOW)
    assert ending == dict.fromkeys(("expires_at", "warn_at"), NOW + timedelta(hours=1))


def test_pasted_instagram_token_is_renewed_when_it_is_a_day_old() -> None:
    fields = lifetime_fields(CIPHER, "a", Network.INSTAGRAM, UNKNOWN_LIFETIME, NOW)
    assert fields == {"renew_at": NOW + timedelta(hours=25)}
    for network in set(Network) - {Network.INSTAGRAM}:
        assert lifetime_fields(CIPHER, "a", network, UNKNOWN_LIFETIME, NOW) == {}


@pytest.mark.parametrize(
    ("days_left", "due", "next_days_left"),
    [(20, None, 14), (14, 14, 3), (4, 14, 3), (3, 3, 0), (0.1, 3, 0), (0, 0, None), (-9, 0, None)],
)
def test_warnings_are_due_in_turn(days_left: float, due: int | None, next_days_left: int | None) -> None:
    ends = NOW + timedelta(days=days_left)
    assert due_warning(ends, NOW) == due
    expected = None if next_days_left is None else ends - timedelta(days=next_days_left)
    assert next_warning_at(ends, NOW) == expected


def test_refresh_token_is_encrypted_for_its_own_subject() -> None:
    lifetime = CredentialLifetime(HOUR, "refresh-token", is_renewable=True)
    assert "refresh-token" not in repr(lifetime)
    sealed = lifetime_fields(CIPHER, "a", Network.X, lifetime, NOW)["refresh_token"]
    assert CIPHER.open(sealed, refresh_token_subject("a")) == "refresh-token"
    assert refresh_token_subject("a") != "a"
