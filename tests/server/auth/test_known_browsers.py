"""Cookies of known browsers: for which accounts, how long, and with which password they count."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from server.auth import known_browsers
from server.auth.known_browsers import MAX_ACCOUNTS_OF_BROWSER, KnownBrowsers
from storage.identity.accounts.local_accounts import LocalAccount, MailLanguage

BROWSERS = KnownBrowsers(bytes(32))
NOW = datetime(2026, 11, 28, 12, 0, 0, 123_000, UTC)
ANN = LocalAccount("acme", "ann", "ann@example.org", "hash", NOW, MailLanguage.EN)
BOB = replace(ANN, user_id="bob", address="bob@example.org")


def test_cookie_counts_for_its_account_only() -> None:
    cookie = BROWSERS.cookie(ANN, None)
    assert BROWSERS.browser_id(ANN, cookie) is not None
    assert BROWSERS.browser_id(BOB, cookie) is None
    assert BROWSERS.browser_id(replace(ANN, organization_id="other"), cookie) is None


def test_two_browsers_of_an_account_have_different_ids() -> None:
    ids = {BROWSERS.browser_id(ANN, BROWSERS.cookie(ANN, None)) for _ in range(2)}
    assert len(ids) == 2
    assert None not in ids


def test_cookie_of_an_earlier_password_does_not_count() -> None:
    cookie = BROWSERS.cookie(ANN, None)
    changed = replace(ANN, password_at=NOW + timedelta(milliseconds=1))
    assert BROWSERS.browser_id(changed, cookie) is None
    assert BROWSERS.browser_id(replace(ANN, password_hash="rehashed"), cookie) is not None


@pytest.mark.parametrize("cookie", [None, "", "nonsense", "é", KnownBrowsers(bytes([1]) * 32).cookie(ANN, None)])
def test_missing_or_forged_cookie_does_not_count(cookie: str | None) -> None:
    assert BROWSERS.browser_id(ANN, cookie) is None
    assert not BROWSERS.is_of_any_account(cookie)
    assert BROWSERS.browser_id(ANN, BROWSERS.cookie(ANN, cookie)) is not None


def test_cookie_expires_although_others_sign_in_later(monkeypatch: pytest.MonkeyPatch) -> None:
    cookie = BROWSERS.cookie(ANN, None)
    monkeypatch.setattr(known_browsers, "KNOWN_FOR_S", -1)
    assert not BROWSERS.is_of_any_account(cookie)
    cookie = BROWSERS.cookie(BOB, cookie)
    monkeypatch.undo()
    assert BROWSERS.browser_id(ANN, cookie) is None
    assert BROWSERS.browser_id(BOB, cookie) is not None


def test_browser_is_known_for_the_last_accounts() -> None:
    people, cookie = [replace(ANN, user_id=f"user-{n}") for n in range(MAX_ACCOUNTS_OF_BROWSER + 1)], None
    for person in [*people, *reversed(people[1:])]:
        cookie = BROWSERS.cookie(person, cookie)
    assert [BROWSERS.browser_id(each, cookie) is not None for each in people] == [False] + [True] * 5
