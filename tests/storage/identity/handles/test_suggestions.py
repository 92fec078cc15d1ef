"""Handles of new users: valid, readable for Japanese names, and free."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.identity.handles.suggestions import (
    MAX_HANDLE,
    VIEWER_WORD,
    free_handle,
    is_handle,
    normalize_handle,
    suggest_handle,
)
from storage.stores import Stores

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("text", "handle"),
    [
        ("Ann", "ann"),
        ("José Ångström", "jose_angstrom"),
        ("a.b-c", "a_b_c"),
        ("山田", ""),
        ("", ""),
        ("_ok_", "_ok_"),
        ("ME", "me"),
        ("x" * 50, "x" * MAX_HANDLE),
    ],
)
def test_normalize_handle_gives_ascii_or_nothing(text: str, handle: str) -> None:
    assert normalize_handle(text) == handle


@given(st.text())
def test_normalize_handle_is_idempotent_for_any_text(text: str) -> None:
    handle = normalize_handle(text)
    assert is_handle(handle) or handle in ("", VIEWER_WORD)
    assert normalize_handle(handle) == handle


@pytest.mark.parametrize(
    ("texts", "handle"),
    [
        (("taro", "山田 太郎"), "taro"),
        (("やまだ はな",), "yamada_hana"),
        (("ジョン・スミス",), "jon_sumisu"),
        (("佐藤さくら",), "sakura"),
        (("山田 Taro",), "taro"),
        (("me", "Ann"), "ann"),
        (("山田", None, "はな"), "hana"),
        (("キ" * 50,), "ki" * 15),
    ],
)
def test_first_readable_text_becomes_the_handle(texts: tuple[str | None, ...], handle: str) -> None:
    assert suggest_handle(*texts) == handle


@pytest.mark.parametrize("text", ["山田 太郎", "一ノ瀬", "Анна", "🦊", "", "ー"])
def test_unreadable_name_gives_a_neutral_handle(text: str) -> None:
    handles = {suggest_handle(text) for _ in range(5)}
    assert all(re.fullmatch("member_[2-9b-z]{4}", handle) for handle in handles)
    assert len(handles) > 1


@given(st.text())
def test_every_suggestion_is_a_handle(text: str) -> None:
    assert is_handle(suggest_handle(text))


async def test_free_handle_has_the_smallest_free_number(shared_stores: Stores, org: str) -> None:
    users, mongo = shared_stores.users, shared_stores.mongo
    for number in range(12):
        await users.sign_in(org, f"id{number}", (), None, "newt")
    assert await mongo.transact(lambda session: free_handle(mongo, org, "newt", session)) == "newt-13"
    assert await mongo.transact(lambda session: free_handle(mongo, org, "frog", session)) == "frog"
