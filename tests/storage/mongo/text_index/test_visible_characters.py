"""Texts without anything visible."""

import sys
import unicodedata

import pytest

from storage.mongo.text_index.visible_characters import has_visible_character

# Unlike other format characters, signs of numbers, verses and abbreviations in front of digits and words are shown.
PREPENDED = set("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "\u3000", "\n\t", "\x00", "\x7f\x85", "\xad", "\u200b", "\u200d\u200c", "\u2060\ufeff", "\u3164"),
        *("\uffa0", "\u115f\u1160", "\u2800", "\u034f", "\u180e", "\u17b4", "\ufe0f", "\ufe00", "\U000e0100"),
        *("\U000e0067\U000e007f", "\U0001d159", "\u061c", "\u202e", "\u206a", "\ufff9", "\ufff0", "\u2065", " \u200b "),
    ],
    ids=ascii,
)
def test_text_of_invisible_characters_is_not_visible(text: str) -> None:
    assert not has_visible_character(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a",
            "\u200ba",
            "👨\u200d👩\u200d👧",
            "❤\ufe0f",
            "1\ufe0f\u20e3",
            "ᄀ",
            "ㅤ안",
            "\u0301",
            ".",
            "क्\u200d",
            "می\u200cخواهم",
        ),
        *("\U0001faea", "\ufffd", "\ue000", "🏴\U000e0067\U000e007f", "⠁", "\u3000あ"),
    ],
    ids=ascii,
)
def test_text_with_one_visible_character_is_visible(text: str) -> None:
    assert has_visible_character(text)


def test_spaces_controls_and_formats_of_unicode_are_invisible() -> None:
    characters = map(chr, range(sys.maxunicode + 1))
    categories = {"Zs", "Zl", "Zp", "Cc", "Cf"}
    shown = {each for each in characters if unicodedata.category(each) in categories and has_visible_character(each)}
    assert shown == PREPENDED
