"""Splits a body into the texts of its items: the lines of NDJSON or of a log, or the elements of a JSON array."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice

from storage.errors import BadUserInput

BATCH = 1000
"""The number of items after which other requests have a turn."""

MAX_ITEMS = 250_000

Item = tuple[int, bytes]
"""The index of an item in the body, and its text."""

_ARRAY = re.compile(rb"\s*\[")
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


async def item_batches(body: bytes) -> AsyncIterator[Sequence[Item]]:
    """Yields the items in batches, without blank lines, whose indexes count.

    The elements of an array are found before the first batch, so that a malformed array gives none. Raises:
    BadUserInput for a malformed array, and for more than 250,000 lines or elements.
    """
    items = await _array_items(body) if _ARRAY.match(body) else _line_items(body)
    while batch := list(islice(items, BATCH)):
        yield batch


def _line_items(body: bytes) -> Iterator[Item]:
    if body.count(b"\n") > MAX_ITEMS:
        raise _too_many_items()
    return ((index, line) for index, line in enumerate(_lines(body)) if line.strip())


def _lines(body: bytes) -> Iterator[bytes]:
    start = 0
    while (end := body.find(b"\n", start)) >= 0:
        yield body[start:end]
        start = end + 1
    yield body[start:]


async def _array_items(body: bytes) -> Iterator[Item]:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise BadUserInput("body", "JSON in UTF-8") from None
    spans = await _element_spans(text)
    return ((index, text[start:end].encode()) for index, (start, end) in enumerate(spans))


async def _element_spans(text: str) -> list[tuple[int, int]]:
    """Returns the positions of the elements of an array, which may be of any type."""
    spans: list[tuple[int, int]] = []
    position = _after_space(text, text.index("[") + 1)
    separator = "]" if text.startswith("]", position) else ","
    while separator == ",":
        end = _end_of_value(text, position)
        spans.append((position, end))
        if len(spans) > MAX_ITEMS:
            raise _too_many_items()
        if len(spans) % BATCH == 0:
            await asyncio.sleep(0)
        end = _after_space(text, end)
        separator, position = text[end : end + 1], _after_space(text, end + 1)
    if separator == "]" and spans == []:
        position = _after_space(text, position + 1)
    if separator != "]" or position < len(text):
        raise _malformed()
    return spans


def _end_of_value(text: str, position: int) -> int:
    try:
        return _DECODER.raw_decode(text, position)[1]
    except (ValueError, RecursionError):
        raise _malformed() from None


def _after_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _malformed() -> BadUserInput:
    return BadUserInput("body", "a whole JSON array and nothing after it")


def _too_many_items() -> BadUserInput:
    return BadUserInput("body", f"at most {MAX_ITEMS:,} lines or elements")
