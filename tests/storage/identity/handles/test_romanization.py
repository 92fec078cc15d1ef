"""Kana in Latin letters, by the Hepburn system."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.identity.handles.romanization import romanize


@pytest.mark.parametrize(
    ("kana", "romanized"),
    [
        ("やまだ はな", "yamada hana"),
        ("しちつふじぢづを", "shichitsufujijizuo"),
        ("きゃしゅちょじゃりょう", "kyashuchojaryou"),
        ("いのうえ しんいち", "inoue shinichi"),
        ("はっとり まっちゃ あっ", "hattori matcha a"),
        ("シーザー ティファ チェコ ジェーン", "shiza tifa cheko jen"),
        ("ヴァン ウィリアム グァム ファン", "van wiriamu gwamu fan"),
        ("ﾀﾅｶ ｼﾞｭﾝ", "tanaka jun"),
        ("ジョン・スミス", "jon sumisu"),
        ("ゐゑヷヶ", "ievake"),
    ],
)
def test_kana_are_written_by_the_hepburn_system(kana: str, romanized: str) -> None:
    assert romanize(kana) == romanized


@pytest.mark.parametrize(
    ("text", "romanized"),
    [
        ("佐藤さくら", "佐藤sakura"),
        ("一ノ瀬", "一 瀬"),
        ("三ツ矢", "三 矢"),
        ("鈴木まり子", "鈴木mari子"),
        ("Ann", "Ann"),
    ],
)
def test_single_kana_beside_kanji_is_left_out(text: str, romanized: str) -> None:
    assert romanize(text) == romanized


@given(st.text(st.characters(min_codepoint=0x3041, max_codepoint=0x30FF)))
def test_any_kana_leave_none(text: str) -> None:
    assert not re.search("[ぁ-ゖァ-ヺー]", romanize(text))
