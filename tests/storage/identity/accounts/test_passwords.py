"""Passwords: which are refused, and how hashes are compared."""

import asyncio

import pytest
import zxcvbn

from storage.errors import BadUserInput, RateLimited
from storage.identity.accounts.passwords import LEETSPEAK as READ_AS_LETTERS
from storage.identity.accounts.passwords import (
    MAX_RUNNING_CHOICES,
    MAX_WAITING_CHOICES,
    UNKNOWN_HASH,
    PasswordHashes,
    check_new_password,
)

pytestmark = pytest.mark.anyio

LEETSPEAK = "71$4<6[!{+(@|9520%38"


@pytest.mark.parametrize(
    "password",
    [
        "short pass"[:9],
        "x" * 257,
        "password123",
        "1234567890",
        "Qwertyuiop",
        "aaaaaaaaaaaa",
        "Ann.Lee2026!",
        "ann.lee@example.org",
        "leeannleeann",
        "password123password123",
        "administratoradministrator",
        "1234567890ab1234567890ab",
        "\ud800 lone surrogate",
    ],
)
def test_short_common_or_own_name_password_is_refused(password: str) -> None:
    with pytest.raises(BadUserInput) as refused:
        check_new_password(password, "Ann Lee", "ann.lee@example.org")
    assert refused.value.extensions["field"] == "password"


@pytest.mark.parametrize(
    "password",
    ["the hills at dawn", "のろしが上がる夜明けの丘", "k2v9-x7qm-p4", "a" + " long" * 50],
)
def test_long_password_of_any_characters_is_allowed(password: str) -> None:
    check_new_password(password, "Ann Lee", "ann.lee@example.org")


async def test_hash_matches_the_password_in_every_unicode_form() -> None:
    hashes = PasswordHashes()
    stored = await hashes.hash_new("caf\u00e9 on the hill", "Ann", "ann@example.org")
    assert await hashes.verify(stored, "cafe\u0301 on the hill")
    assert not await hashes.verify(stored, "cafe on the hill")
    assert not await hashes.verify(None, "caf\u00e9 on the hill")
    assert not await hashes.verify("malformed", "caf\u00e9 on the hill")


def test_hash_of_unknown_accounts_costs_as_much_as_others() -> None:
    assert not PasswordHashes().is_outdated(UNKNOWN_HASH)


async def test_hashes_beyond_the_bound_are_refused() -> None:
    hashes = PasswordHashes(max_running=1, max_waiting=2)
    results = await asyncio.gather(*(hashes.verify(None, "x") for _ in range(6)), return_exceptions=True)
    assert [isinstance(each, RateLimited) for each in results] == [False] * 3 + [True] * 3
    assert await hashes.verify(None, "x") is False


async def test_cancelled_caller_keeps_its_slot_until_the_thread_ends() -> None:
    hashes = PasswordHashes(max_running=1, max_waiting=0)
    task = asyncio.create_task(hashes.verify(None, "x"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    with pytest.raises(RateLimited):
        await hashes.verify(None, "x")


async def test_estimate_takes_no_slot_of_sign_ins() -> None:
    hashes = PasswordHashes(max_running=1, max_waiting=0)
    sign_in = asyncio.create_task(hashes.verify(None, "x"))
    await asyncio.sleep(0)
    with pytest.raises(BadUserInput):
        await hashes.hash_new("password123", "Ann", "ann@example.org")
    assert await sign_in is False


async def test_strangers_take_no_slot_of_known_browsers() -> None:
    hashes = PasswordHashes(max_running=1, max_waiting=0)
    guess = asyncio.create_task(hashes.verify(None, "x"))
    await asyncio.sleep(0)
    with pytest.raises(RateLimited):
        await hashes.verify(None, "x")
    assert await hashes.verify(None, "x", is_known_browser=True) is False
    assert await guess is False


async def test_new_passwords_beyond_the_bound_are_refused() -> None:
    hashes, excess = PasswordHashes(), 3
    choices = (
        hashes.hash_new("password123", "Ann", "ann@example.org")
        for _ in range(MAX_RUNNING_CHOICES + MAX_WAITING_CHOICES + excess)
    )
    results = await asyncio.gather(*choices, hashes.verify(None, "x"), return_exceptions=True)
    assert results.pop() is False
    assert sum(isinstance(each, RateLimited) for each in results) == excess
    assert sum(isinstance(each, BadUserInput) for each in results) == len(results) - excess


@pytest.mark.parametrize(
    ("password", "expected"),
    [(LEETSPEAK[:8] * 30, 72), (LEETSPEAK[:9] * 28, 16), ("a" * 71 + LEETSPEAK, 72), ("a" * 40 + LEETSPEAK, 16)],
)
def test_estimate_reads_few_characters_of_leetspeak(
    password: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of an estimate grows with the characters, and with the kinds of leetspeak among them."""
    lengths = []

    def recording(password: str, user_inputs: list[str]) -> dict[str, object]:
        lengths.append(len(password))
        return {"guesses": 0}

    monkeypatch.setattr(zxcvbn, "zxcvbn", recording)
    with pytest.raises(BadUserInput):
        check_new_password(password, "Ann", "ann@example.org")
    assert lengths == [expected]


def test_leetspeak_is_the_estimators_own() -> None:
    assert {
        character for characters in zxcvbn.matching.L33T_TABLE.values() for character in characters
    } == READ_AS_LETTERS
