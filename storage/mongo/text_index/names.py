"""Names of people: the strings by whose prefixes people are found, and the parts of a name that match. Pure; no I/O."""

import unicodedata
from collections.abc import Iterator, Sequence

from storage.mongo.text_index.clauses import ExcerptFragment, TextRange, excerpt, merged_ranges
from storage.mongo.text_index.tokenizer import is_spaceless, with_offsets

MAX_SEARCH_TERMS = 8
MAX_NAME_ENDS = 24
"""Maximum number of characters of a name in scripts without spaces with which a prefix may begin."""

MAX_NAME_END_CHARS = 30


def fold_for_comparison(text: str) -> str:
    """Returns the form in which searches and sorted lists compare texts: NFKC, case-folded, stripped."""
    return unicodedata.normalize("NFKC", text).casefold().strip()


def search_terms(handle: str, name: str) -> list[str]:
    """Returns the strings whose prefixes find the user.

    These are the handle, the name and its words, at most 8. A name in a script without spaces, such as Japanese, is
    also found from each of its characters on, with and without its spaces.
    """
    folded = fold_for_comparison(name)
    found = list(dict.fromkeys([handle, folded, *folded.split()]))[:MAX_SEARCH_TERMS]
    return list(dict.fromkeys([*found, *_name_ends(folded)]))


def _name_ends(folded: str) -> list[str]:
    joined = "".join(folded.split())
    starts = [i for i, character in enumerate(joined) if is_spaceless(character)]
    if starts and starts[0] > 0:
        starts.insert(0, 0)
    return [joined[i : i + MAX_NAME_END_CHARS] for i in starts[:MAX_NAME_ENDS]]


def highlighted_name(text: str, prefixes: Sequence[str]) -> list[ExcerptFragment]:
    """Returns a name or handle in fragments. The parts that match one of the folded prefixes are matches."""
    folded, offsets = with_offsets(text)
    characters = [(character, *offset) for character, offset in zip(folded, offsets, strict=True)]
    matches = [match for prefix in prefixes for match in _matches(characters, prefix)]
    return excerpt(text, merged_ranges(matches))


def _matches(characters: Sequence[tuple[str, int, int]], prefix: str) -> Iterator[TextRange]:
    """Yields the parts of a name, given by its characters and their places, that match the prefix."""
    has_spaceless = any(is_spaceless(character) for character, *_ in characters)
    readings = [list(characters)]
    if has_spaceless:
        readings.append([each for each in characters if not each[0].isspace()])
    for reading in readings:
        text = "".join(character for character, *_ in reading)
        position = text.find(prefix)
        while position >= 0:
            if position == 0 or text[position - 1].isspace() or is_spaceless(text[position]):
                yield TextRange(reading[position][1], reading[position + len(prefix) - 1][2])
            position = text.find(prefix, position + 1)
