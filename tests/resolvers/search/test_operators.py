"""Parts of a search, and errors that name the part that is wrong."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvers.search.operators import MAX_CLAUSES, MAX_QUERY_CHARS, date_bounds, parse_search
from storage.errors import BadUserInput
from storage.timeline import MAX_TIMESTAMP

ALLOWED = ("from", "in", "has", "before", "after")


def clauses(query: str) -> list[tuple[str, bool]]:
    return [
        (" ".join(word.text for word in each.words), each.is_phrase) for each in parse_search(query, ALLOWED).clauses
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("red boat", [("red", False), ("boat", False)]),
        ('"red boat" river', [("red boat", True), ("river", False)]),
        ("“花火　大会” 今夜", [("花火 大会", True), ("今夜", False)]),
        ('12:30 note:"this one"', [("12 30", True), ("note", False), ("this one", True)]),
    ],
)
def test_query_is_parsed_into_words_and_phrases(query: str, expected: list[tuple[str, bool]]) -> None:
    assert clauses(query) == expected


def test_operators_have_values_with_and_without_quotes() -> None:
    parsed = parse_search('FROM：hana in:"River walks" has:link has:stamp boat', ALLOWED)
    assert parsed.operands == {"from": ["hana"], "in": ["River walks"], "has": ["link", "stamp"]}
    assert len(parsed.clauses) == 1


@pytest.mark.parametrize(
    ("query", "term"),
    [
        ('boat "red', '"red'),
        ("before:tomorrow", "before:tomorrow"),
        ("after:2026-13-01", "after:2026-13-01"),
        ("before:2026-01-01 before:2026-01-02", "before:2026-01-02"),
    ],
)
def test_error_names_the_wrong_part(query: str, term: str) -> None:
    with pytest.raises(BadUserInput) as error:
        date_bounds(parse_search(query, ALLOWED), "UTC")
    assert error.value.extensions["term"] == term


def test_operator_of_another_kind_of_search_is_refused() -> None:
    with pytest.raises(BadUserInput) as error:
        parse_search("in:river", ("from",))
    assert error.value.extensions["term"] == "in:river"


@pytest.mark.parametrize("query", ["", "a" * (MAX_QUERY_CHARS + 1), " ".join("ab" for _ in range(MAX_CLAUSES + 1))])
def test_query_has_limits(query: str) -> None:
    with pytest.raises(BadUserInput):
        parse_search(query, ALLOWED)


def test_days_of_before_and_after_are_left_out() -> None:
    low, high = date_bounds(parse_search("after:2026-11-22 before:2026-11-24", ALLOWED), "Asia/Tokyo")
    assert (low, high) == (1795359600 * 10**6, (1795359600 + 86400) * 10**6 - 1)
    assert date_bounds(parse_search("boat", ALLOWED), "UTC") == (0, MAX_TIMESTAMP)


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(query: str) -> None:
    with suppress(BadUserInput):
        assert len(parse_search(query, ALLOWED).clauses) <= MAX_CLAUSES
