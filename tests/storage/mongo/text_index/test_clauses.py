"""Words and phrases that match a text, and excerpts of the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.mongo.text_index.clauses import SearchClause, clause, excerpt, find_matches


def parsed(text: str, is_phrase: bool = False) -> SearchClause:
    found = clause(text, is_phrase)
    assert found is not None
    return found


def matched(text: str, *clauses: SearchClause) -> list[str] | None:
    found = find_matches(clauses, text)
    return None if found is None else [text[match.start : match.end] for match in found]


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("Fireworks and a FIREWORK", "firework", ["Fireworks", "FIREWORK"]),
        ("明日の花火大会、花火", "花火", ["花火", "花火"]),
        ("明日の花火大会", "花大", None),
        ("花、火", "花火", None),
        ("ｶﾞﾝﾊﾞﾚ!", "ガンバレ", ["ｶﾞﾝﾊﾞﾚ"]),
        ("river side", "riverside", None),
        ("see https://example.com/a", "example.com", ["example.com"]),
        ("com example", "example.com", None),
    ],
)
def test_word_matches(text: str, word: str, expected: list[str] | None) -> None:
    assert matched(text, parsed(word)) == expected


@pytest.mark.parametrize(
    ("text", "phrase", "expected"),
    [
        ("The river side, by night", "side by", ["side, by"]),
        ("the rivers side", "river side", None),
        ("fireworks", "firework", None),
        ("大花火 tonight まつり", "花火 tonight まつ", ["花火 tonight まつ"]),
        ("花火大会 tonight", "花火 tonight", None),
    ],
)
def test_phrase_matches(text: str, phrase: str, expected: list[str] | None) -> None:
    assert matched(text, parsed(phrase, True)) == expected


def test_text_matches_only_if_every_clause_does() -> None:
    assert matched("red boat", parsed("boat"), parsed("red")) == ["red", "boat"]
    assert matched("red boat", parsed("boat"), parsed("blue")) is None
    assert matched("red boat") == []


def test_text_without_words_is_no_clause() -> None:
    assert clause("…!?", True) is None


def test_long_text_has_an_excerpt_around_the_match() -> None:
    text = "far " * 200 + "boat " + "away " * 200
    found = find_matches([parsed("boat")], text)
    fragments = excerpt(text, found or [])
    assert [fragment.text for fragment in fragments if fragment.is_match] == ["boat"]
    assert fragments[0].text == fragments[-1].text == "…"
    assert 150 < sum(len(fragment.text) for fragment in fragments) < 250


@given(st.text("ab花火 。", max_size=400), st.text("ab花火", min_size=1, max_size=3))
def test_excerpt_is_a_part_of_the_text(text: str, word: str) -> None:
    found = find_matches([parsed(word)], text)
    fragments = excerpt(text, found or [])
    assert "".join(fragment.text for fragment in fragments).strip("…") in text
    assert any(fragment.is_match for fragment in fragments) == bool(found)
