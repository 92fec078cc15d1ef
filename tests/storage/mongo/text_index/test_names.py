"""Names: the strings by whose prefixes people are found, and the highlighted parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.mongo.text_index.names import MAX_NAME_ENDS, fold_for_comparison, highlighted_name, search_terms

NAMES = st.text("ab éＡ佐藤花ｶﾞ김", min_size=1, max_size=12).filter(str.strip)


def marked(text: str, *prefixes: str) -> str:
    """Returns the text with its matches in brackets."""
    fragments = highlighted_name(text, [fold_for_comparison(each) for each in prefixes])
    return "".join(f"[{each.text}]" if each.is_match else each.text for each in fragments)


def test_search_terms_are_handle_name_and_its_words() -> None:
    assert search_terms("ann-2", "Ann  Ｌｅｅ") == ["ann-2", "ann  lee", "ann", "lee"]
    assert len(search_terms("x", " ".join(map(str, range(100))))) == 8


def test_japanese_name_is_found_from_each_character() -> None:
    assert search_terms("hana", "佐藤花子") == ["hana", "佐藤花子", "藤花子", "花子", "子"]
    assert {"佐藤花子", "花子", "子"} <= set(search_terms("hana", "佐藤 花子"))
    assert "花子" in search_terms("hana", "Sato花子")
    assert len(search_terms("x", "花" * 500)) <= MAX_NAME_ENDS + 3


@pytest.mark.parametrize(
    ("text", "prefixes", "expected"),
    [
        ("Ann Lee", ("le",), "Ann [Le]e"),
        ("Ann Lee", ("an", "L"), "[An]n [L]ee"),
        ("Ann Lee", ("ee",), "Ann Lee"),
        ("Ann Lee", ("ann lee",), "[Ann Lee]"),
        ("ann-2", ("ann",), "[ann]-2"),
        ("Ｍｉｋｅ", ("mi",), "[Ｍｉ]ｋｅ"),
        ("佐藤花子", ("花子",), "佐藤[花子]"),
        ("佐藤 花子", ("佐藤花",), "[佐藤 花]子"),
        ("ｶﾞﾙｼｱ", ("ガ",), "[ｶﾞ]ﾙｼｱ"),
        ("", ("x",), ""),
    ],
)
def test_beginnings_of_words_are_highlighted(text: str, prefixes: tuple[str, ...], expected: str) -> None:
    assert marked(text, *prefixes) == expected


@given(NAMES, st.integers(0, 40), st.integers(1, 12))
def test_whatever_is_found_is_highlighted(name: str, which: int, length: int) -> None:
    terms = search_terms("", name)
    prefix = terms[which % len(terms)][:length].strip()
    if prefix:
        assert any(each.is_match for each in highlighted_name(name, [prefix])), (name, prefix)


@given(NAMES)
def test_fragments_of_a_name_are_the_name(name: str) -> None:
    assert "".join(each.text for each in highlighted_name(name, ["a", "藤", "b a"])) == name
