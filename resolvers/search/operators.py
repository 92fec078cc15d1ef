"""Parses the text of a search: words, phrases in quotes, and operators such as `from:`. Pure; no I/O."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from storage.errors import BadUserInput
from storage.mongo.text_index.clauses import SearchClause, clause
from storage.timeline import MAX_TIMESTAMP

MAX_QUERY_CHARS = 200
MAX_CLAUSES = 16
"""Maximum number of words and phrases."""

EXAMPLE = "2026-11-23"
_QUOTES = str.maketrans("“”„‟", '""""')
_PART = re.compile(r'(?:(?P<operator>[A-Za-z]+):)?(?:"(?P<quoted>[^"]*)"|(?P<plain>[^\s"]+))')
_OPERATORS = frozenset({"from", "in", "has", "before", "after"})


@dataclass(slots=True)
class ParsedSearch:
    """The parts of a search."""

    clauses: list[SearchClause] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """The words and phrases as written, also those without letters."""

    operands: dict[str, list[str]] = field(default_factory=dict)
    """The values of each operator, in order."""

    def single(self, operator: str) -> str | None:
        """Returns the value of an operator, or None. Raises: BadUserInput for several values."""
        values = self.operands.get(operator, [])
        if len(values) > 1:
            raise bad_term(f"{operator}:{values[1]}", f"{operator}: only once")
        return values[0] if values else None


def parse_search(query: str, allowed: Sequence[str]) -> ParsedSearch:
    """Returns the parts of a search with the allowed operators.

    Raises: BadUserInput for a long query, for an unclosed quote, and for too many words. `term` in the extensions is
    the part of the query that is wrong.
    """
    if not 1 <= len(query) <= MAX_QUERY_CHARS:
        raise BadUserInput("query", f"1 to {MAX_QUERY_CHARS} characters (it has {len(query)})")
    text = unicodedata.normalize("NFKC", query).translate(_QUOTES)
    if text.count('"') % 2:
        raise bad_term(text[text.rindex('"') :], "a second quote at the end of the phrase")
    parsed = ParsedSearch()
    for match in _PART.finditer(text):
        _add(parsed, match, allowed)
    if len(parsed.clauses) > MAX_CLAUSES:
        raise BadUserInput("query", f"at most {MAX_CLAUSES} words and phrases (there are {len(parsed.clauses)})")
    return parsed


def _add(parsed: ParsedSearch, match: re.Match[str], allowed: Sequence[str]) -> None:
    operator, quoted = (match["operator"] or "").lower(), match["quoted"]
    value = match["plain"] if quoted is None else quoted
    if operator in _OPERATORS:
        if operator not in allowed:
            raise bad_term(match[0], f"one of the operators {', '.join(f'{each}:' for each in allowed)}")
        parsed.operands.setdefault(operator, []).append(value)
        return
    # A colon after another word is punctuation, as in an address or a time.
    whole = match[0] if quoted is None else value
    found = [clause(match["operator"], False)] if match["operator"] and quoted is not None else []
    found.append(clause(whole, quoted is not None))
    parsed.clauses += [each for each in found if each is not None]
    parsed.words += [match["operator"], value] if match["operator"] and quoted is not None else [whole]


def bad_term(term: str, expected: str) -> BadUserInput:
    """Returns the error for a part of a query, with the part as `term`."""
    error = BadUserInput("query", expected, f'query: in "{term}", expected {expected}.')
    error.details["term"] = term
    return error


def date_bounds(parsed: ParsedSearch, time_zone: str) -> tuple[int, int]:
    """Returns the first and the last timestamp that `after:` and `before:` allow.

    The days themselves are left out. Raises: BadUserInput.
    """
    after, before = _day(parsed, "after"), _day(parsed, "before")
    low = 0 if after is None else _midnight(after + timedelta(days=1), time_zone)
    high = MAX_TIMESTAMP if before is None else _midnight(before, time_zone) - 1
    return low, high


def _day(parsed: ParsedSearch, operator: str) -> date | None:
    value = parsed.single(operator)
    if value is None:
        return None
    try:
        day = date.fromisoformat(value) if len(value) == len(EXAMPLE) else None
    except ValueError:
        day = None
    if day is None or not 1970 < day.year < 2286:
        raise bad_term(f"{operator}:{value}", f"a date such as {EXAMPLE}")
    return day


def _midnight(day: date, time_zone: str) -> int:
    """Returns the first microsecond of the day."""
    return int(datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(time_zone)).timestamp()) * 1_000_000
