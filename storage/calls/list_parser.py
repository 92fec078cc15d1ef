"""Parses lists of phone numbers row by row: a header, phone numbers and variables. Pure; no I/O.

Cells are separated by commas, semicolons or tabs, as in the files of spreadsheet programs in different countries.

To save memory, the text is never split as a whole. Only the numbers of earlier rows are kept, to find duplicates.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from storage.calls.phone_numbers import parse_phone_number
from storage.calls.records import CallHeaderError, CallRowError
from storage.errors import BadUserInput

MAX_BYTES = 10 * 1024 * 1024
MAX_ROWS = 100_000
MAX_COLUMNS = 50
MAX_NAME_CHARS = 100
MAX_VALUE_CHARS = 2000
PHONE_NUMBER = "phone_number"
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")


@dataclass(frozen=True, slots=True)
class ListRow:
    """A valid row. `row` is the line on which it begins, counted from 1. Duplicates are not called."""

    row: int
    phone_number: str
    variables: Sequence[tuple[str, str]]
    is_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class _Columns:
    """How the rows below a header are read."""

    names: list[str]
    separator: str
    region: str | None
    """Country of numbers without a country code."""


class _InvalidRow(Exception):
    """A row, or the header, is invalid. `column` is the name of the bad column, or None for the whole row."""

    def __init__(self, message: str, column: str | None = None) -> None:
        super().__init__(message)
        self.column = column


def parse_list(text: str, region: str | None = None) -> Iterator[ListRow | CallRowError]:
    """Yields the rows in order: valid rows, or the first error of each invalid row. A CallHeaderError is the only item.

    If several rows have one number, all except the first are duplicates. Numbers without a country code are those of
    the region, and errors without a region.

    Raises: BadUserInput for more than 10 MB, or when the iteration passes 100,000 rows.
    """
    _check_size(text)
    return _parse_rows(text.removeprefix("\ufeff"), region)


def _check_size(text: str) -> None:
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise BadUserInput("csv", f"a list of at most {MAX_BYTES // 1024 // 1024} MB")


def _parse_rows(text: str, region: str | None) -> Iterator[ListRow | CallRowError]:
    separator = _separator(text)
    rows = _rows(text, separator)
    try:
        line, cells = next(rows, (1, _InvalidRow("The list is empty. Its first line must name the columns.")))
        columns = _Columns(_header(cells, separator), separator, region)
    except _InvalidRow as error:
        yield CallHeaderError(line, error.column, str(error))
        return
    earlier: set[str] = set()
    count = 0
    for count, (line, cells) in enumerate(rows, 1):
        if count > MAX_ROWS:
            raise BadUserInput("csv", f"a list of at most {MAX_ROWS} rows")
        try:
            row = _row(line, columns, cells)
        except _InvalidRow as error:
            yield CallRowError(line, error.column, str(error))
            continue
        yield replace(row, is_duplicate=True) if row.phone_number in earlier else row
        earlier.add(row.phone_number)
    if not count:
        yield CallHeaderError(line, None, "The list has a header but no rows. Add at least one number.")


def _separator(text: str) -> str:
    """Returns the separator with which the header names the phone numbers, else the one with which it has most cells.

    A header without a separator, as of a list of numbers only, has commas.
    """

    def fit(separator: str) -> tuple[bool, int]:
        _, cells = next(_rows(text, separator), (1, []))
        return (False, 0) if isinstance(cells, _InvalidRow) else (PHONE_NUMBER in _column_names(cells), len(cells))

    return max(SEPARATORS, key=fit)


def _rows(text: str, separator: str) -> Iterator[tuple[int, list[str] | _InvalidRow]]:
    """Yields each row that is not blank, or the CSV reader's error, with the line on which it begins."""
    lines = (match[0] for match in _LINE.finditer(text) if match[0])
    reader = csv.reader(lines, delimiter=separator, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, _InvalidRow(f"The row is not valid CSV with {SEPARATORS[separator]} between cells: {error}.")
            continue
        if any(map(str.strip, cells)):
            yield line, cells


def _column_names(cells: list[str]) -> list[str]:
    """Returns the names in a header. Spreadsheet programs add empty cells at its end."""
    names = [name.strip() for name in cells]
    while names and not names[-1]:
        names.pop()
    return [PHONE_NUMBER if name.casefold() == PHONE_NUMBER else name for name in names]


def _header(cells: list[str] | _InvalidRow, separator: str) -> list[str]:
    """Returns the names of the columns. Raises: _InvalidRow."""
    if isinstance(cells, _InvalidRow):
        raise cells
    names = [_storable(name, None) for name in _column_names(cells)]
    if len(names) > MAX_COLUMNS:
        raise _InvalidRow(f"The list has {len(names)} columns. At most {MAX_COLUMNS} are allowed.")
    for index, name in enumerate(names):
        if not 1 <= len(name) <= MAX_NAME_CHARS:
            raise _InvalidRow(f"Column {index + 1} needs a name of 1 to {MAX_NAME_CHARS} characters.")
        if name in names[:index]:
            raise _InvalidRow("Two columns have this name. Rename one of them.", name)
    if PHONE_NUMBER not in names:
        found = f"which has {_count(len(names), 'cell')}, separated by {SEPARATORS[separator]}"
        raise _InvalidRow(f"The column {PHONE_NUMBER} is missing. Add it to the first line, {found}.", PHONE_NUMBER)
    return names


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _row(line: int, columns: _Columns, cells: list[str] | _InvalidRow) -> ListRow:
    if isinstance(cells, _InvalidRow):
        raise cells
    names = columns.names
    if len(cells) < len(names) or any(map(str.strip, cells[len(names) :])):
        found = f"The row has {_count(len(cells), 'cell')}, separated by {SEPARATORS[columns.separator]}"
        raise _InvalidRow(f"{found}, but the header has {_count(len(names), 'column')}.")
    number, variables = "", []
    # Further cells are empty. Spreadsheet programs add them.
    for name, cell in zip(names, cells, strict=False):
        if name == PHONE_NUMBER:
            number = _number(cell, columns.region)
        elif len(cell) > MAX_VALUE_CHARS:
            raise _InvalidRow(f"The value has {len(cell)} characters. At most {MAX_VALUE_CHARS} are allowed.", name)
        else:
            variables.append((name, _storable(cell, name)))
    return ListRow(line, number, variables)


def _number(cell: str, region: str | None) -> str:
    try:
        return parse_phone_number(cell, region)
    except ValueError as error:
        raise _InvalidRow(str(error), PHONE_NUMBER) from None


def _storable(text: str, column: str | None) -> str:
    """Returns the text. Raises: _InvalidRow for an unpaired surrogate, which UTF-8 cannot encode."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _InvalidRow("The text contains an invalid Unicode character. Remove it.", column) from None
    return text
