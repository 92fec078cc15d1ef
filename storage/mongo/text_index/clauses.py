"""Clauses of a query: words and phrases, which match a text and are highlighted in it. Pure; no I/O."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from storage.mongo.text_index.tokenizer import TextWord, query_terms, stem, words

EXCERPT_CHARS = 200
"""Approximate length of an excerpt."""

LEAD_CHARS = 40
"""How much of the text an excerpt shows before the first match."""


class TextRange(NamedTuple):
    """A part of a text, as indexes of its first character and of the character after its last one."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ExcerptFragment:
    """A part of an excerpt."""

    text: str
    is_match: bool
    """Whether the part matches the query."""


@dataclass(frozen=True, slots=True)
class SearchClause:
    """A word or a phrase that a text must contain.

    A word matches words of the same stem. A phrase matches the same words in the same order. A run of a script without
    spaces matches everywhere inside of a run.
    """

    words: tuple[TextWord, ...]
    is_phrase: bool

    def terms(self) -> list[str]:
        """Returns terms that all matching texts have."""
        return list(dict.fromkeys(term for word in self.words for term in query_terms(word)))

    def matches(self, text_words: Sequence[TextWord]) -> Iterator[TextRange]:
        """Yields the parts of a text that match, in order. `text_words` are the words of the text."""
        if len(self.words) == 1:
            yield from self._matches_of_word(self.words[0], text_words)
            return
        for i in range(len(text_words) - len(self.words) + 1):
            if match := self._match_at(text_words[i : i + len(self.words)]):
                yield match

    def _matches_of_word(self, word: TextWord, text_words: Sequence[TextWord]) -> Iterator[TextRange]:
        for each in text_words:
            if word.is_run and each.is_run:
                yield from _occurrences(word.text, each)
            elif each.text == word.text or (not (self.is_phrase or word.is_run) and stem(each.text) == stem(word.text)):
                yield TextRange(each.start, each.end)

    def _match_at(self, text_words: Sequence[TextWord]) -> TextRange | None:
        """Returns the match of the whole phrase with these words. Its first and last run may be parts of runs."""
        first, *inner, last = zip(self.words, text_words, strict=True)
        if any(word.text != each.text for word, each in inner):
            return None
        if not (_ends_with(first[1], first[0]) and _begins_with(last[1], last[0])):
            return None
        begin = first[1].offsets[-len(first[0].text)][0]
        return TextRange(begin, last[1].offsets[len(last[0].text) - 1][1])


def clause(text: str, is_phrase: bool) -> SearchClause | None:
    """Returns the clause of a word or a quoted phrase; None without words.

    Several words without quotes, such as those of an address, are a phrase too.
    """
    found = tuple(words(text))
    return SearchClause(found, is_phrase or len(found) > 1) if found else None


def find_matches(clauses: Sequence[SearchClause], text: str) -> list[TextRange] | None:
    """Returns the parts of the text that match, in order and without overlaps; None unless each clause matches."""
    text_words = words(text)
    matches = [list(each.matches(text_words)) for each in clauses]
    return merged_ranges([match for found in matches for match in found]) if all(matches) else None


def excerpt(text: str, matches: Sequence[TextRange]) -> list[ExcerptFragment]:
    """Returns the text around the first match, in fragments. An ellipsis stands for text that is left out."""
    first = matches[0].start if matches else 0
    start = 0 if first <= LEAD_CHARS * 2 else _word_start(text, first - LEAD_CHARS)
    end = min(len(text), max(start + EXCERPT_CHARS, matches[0].end if matches else 0))
    fragments = [ExcerptFragment("…", False)] if start else []
    position = start
    for match in matches:
        if match.start >= end:
            break
        fragments += [
            ExcerptFragment(text[position : match.start], False),
            ExcerptFragment(text[match.start : match.end], True),
        ]
        position = match.end
    fragments.append(ExcerptFragment(text[position:end], False))
    if max(position, end) < len(text):
        fragments.append(ExcerptFragment("…", False))
    return [fragment for fragment in fragments if fragment.text]


def _word_start(text: str, position: int) -> int:
    """Returns the beginning of the next word within 20 characters, or the position itself."""
    space = text.find(" ", position, position + 20)
    return position if space < 0 else space + 1


def _occurrences(part: str, word: TextWord) -> Iterator[TextRange]:
    position = word.text.find(part)
    while position >= 0:
        yield TextRange(word.offsets[position][0], word.offsets[position + len(part) - 1][1])
        position = word.text.find(part, position + 1)


def _ends_with(word: TextWord, part: TextWord) -> bool:
    return word.text.endswith(part.text) if word.is_run and part.is_run else word.text == part.text


def _begins_with(word: TextWord, part: TextWord) -> bool:
    return word.text.startswith(part.text) if word.is_run and part.is_run else word.text == part.text


def merged_ranges(matches: Sequence[TextRange]) -> list[TextRange]:
    """Returns the parts in order, without overlaps."""
    merged: list[TextRange] = []
    for match in sorted(matches):
        if merged and match.start < merged[-1].end:
            merged[-1] = TextRange(merged[-1].start, max(merged[-1].end, match.end))
        else:
            merged.append(match)
    return merged
