"""Splits texts into words, and words into the terms that are indexed. Pure; no I/O.

Texts are compared after NFKC normalisation and case folding. Words of languages that are written with spaces are
reduced to their stems. Runs of scripts without spaces, such as Japanese, have the terms of each two adjacent
characters.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import snowballstemmer

MAX_TERMS = 1000
"""Maximum number of terms of one text. Words after that are not found."""

MAX_TERM_CHARS = 40
"""Longer stems are cut. An address on the web is split at its punctuation, so few words are as long."""

CACHED_STEMS = 20_000

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
_SOUTHEAST_ASIAN = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1050-\u109f\u1780-\u17d3"
_SPACELESS = f"{_HAN}{_KANA}{_HANGUL}{_SOUTHEAST_ASIAN}"
# Marks are no word characters of `re`. Indic words consist of letters and marks.
_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0980-\u0df3"
_WORD = re.compile(f"[{_SPACELESS}]+|(?:[^\\W_{_SPACELESS}]|[{_MARKS}])+")
_IS_SPACELESS = re.compile(f"[{_SPACELESS}]")
_IS_HAN = re.compile(f"[{_HAN}]")

_STEMMER_BY_SCRIPT: tuple[tuple[str, str, str], ...] = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u04ff", "russian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
)
"""The stemmer of words that begin with a letter of a range. Words of other scripts have the English one, which changes
no letters but those of the Latin script."""


class TextWord(NamedTuple):
    """A word of a text, or a run of characters of scripts without spaces."""

    text: str
    """The word, normalized."""

    is_run: bool
    """Whether the word is a run of a script without spaces."""

    offsets: Sequence[tuple[int, int]]
    """Where each character of `text` begins and ends in the original text."""

    @property
    def start(self) -> int:
        """Where the word begins in the original text."""
        return self.offsets[0][0]

    @property
    def end(self) -> int:
        """Where the word ends in the original text."""
        return self.offsets[-1][1]


def normalized(text: str) -> str:
    """Returns the form of a text in which texts are compared."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def words(text: str) -> list[TextWord]:
    """Returns the words of a text, in order."""
    folded, offsets = with_offsets(text)
    return [
        TextWord(match[0], _IS_SPACELESS.match(match[0]) is not None, offsets[match.start() : match.end()])
        for match in _WORD.finditer(folded)
    ]


def terms(text: str) -> list[str]:
    """Returns the different terms of a text, in order, at most `MAX_TERMS`."""
    folded = text.lower() if text.isascii() else with_offsets(text)[0]
    found: dict[str, None] = {}
    for match in _WORD.finditer(folded):
        found.update(dict.fromkeys(terms_of_word(match[0])))
        if len(found) >= MAX_TERMS:
            break
    return list(found)[:MAX_TERMS]


def terms_of_word(word: str) -> Iterable[str]:
    """Returns the terms by which a normalized word is found.

    A run has each pair of adjacent characters, and each Han character alone. A run of one character has itself.
    """
    if _IS_SPACELESS.match(word) is None:
        return (stem(word),)
    if len(word) == 1:
        return (word,)
    return [word[i : i + 2] for i in range(len(word) - 1)] + _IS_HAN.findall(word)


def query_terms(word: TextWord) -> Sequence[str]:
    """Returns terms that all texts with this word have. Pairs of characters make single ones unnecessary."""
    if word.is_run and len(word.text) > 1:
        return [word.text[i : i + 2] for i in range(len(word.text) - 1)]
    return list(terms_of_word(word.text))


def is_spaceless(character: str) -> bool:
    """Returns whether a normalized character belongs to a script without spaces."""
    return _IS_SPACELESS.match(character) is not None


@lru_cache(CACHED_STEMS)
def stem(word: str) -> str:
    """Returns the stem of a normalized word."""
    first = word[0]
    language = next((name for low, high, name in _STEMMER_BY_SCRIPT if low <= first <= high), "english")
    # A stemmer may remove the whole of a short word.
    stemmed: str = _stemmer(language).stemWord(word[:MAX_TERM_CHARS]) or word[:MAX_TERM_CHARS]
    return stemmed


@lru_cache
def _stemmer(language: str) -> Any:
    return snowballstemmer.stemmer(language)


def with_offsets(text: str) -> tuple[str, Sequence[tuple[int, int]]]:
    """Returns the normalized text, and where each of its characters begins and ends in the original text."""
    folded = text.casefold()
    if len(folded) == len(text) and (text.isascii() or _is_normal(text, folded)):
        return folded, [(i, i + 1) for i in range(len(text))]
    parts: list[str] = []
    offsets: list[tuple[int, int]] = []
    start = 0
    for end in _segment_ends(text):
        part = normalized(text[start:end])
        parts.append(part)
        offsets += [(start, end)] * len(part)
        start = end
    return "".join(parts), offsets


def _is_normal(text: str, folded: str) -> bool:
    return unicodedata.is_normalized("NFKC", text) and unicodedata.is_normalized("NFKC", folded)


def _segment_ends(text: str) -> Iterable[int]:
    """Yields the end of each character with the marks and the parts of syllables that follow it."""
    for i in range(1, len(text)):
        if not _joins_previous(text[i]):
            yield i
    if text:
        yield len(text)


def _joins_previous(character: str) -> bool:
    """Returns whether normalisation may combine the character with the one before it."""
    if character.isascii():
        return False
    first = unicodedata.normalize("NFKD", character)[0]
    return unicodedata.combining(first) != 0 or "\u1160" <= first <= "\u11ff" or unicodedata.category(first) == "Mc"
