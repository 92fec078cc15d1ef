"""Parses lists of phone numbers row by row: CSV with a header, E.164 numbers and variables. Pure; no I/O.

To save memory, the text is never split as a whole. Only the numbers of earlier rows are kept, to find duplicates.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import phonenumbers
from phonenumbers import NumberParseException, PhoneNumberFormat, ValidationResult

from storage.calls.records import CallHeaderError, CallRowError
from storage.errors import BadUserInput

MAX_BYTES = 10 * 1024 * 1024
MAX_ROWS = 100_000
MAX_COLUMNS = 50
MAX_NAME_CHARS = 100
MAX_VALUE_CHARS = 2000
MAX_NUMBER_CHARS = 40
PHONE_NUMBER = "phone_number"
EXPECTED_PHONE_NUMBER = "E.164 form, beginning with + and the country code, such as +819012345678"

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_MISSING = "The phone number is missing."
_INVALID = f"Invalid phone number: expected {EXPECTED_PHONE_NUMBER}."
_IMPOSSIBLE = f"{_INVALID} Check its digits."


@dataclass(frozen=True, slots=True)
class ListRow:
    """A valid row. `row` is the line on which it begins, counted from 1. Duplicates are not called."""

    row: int
    phone_number: str
    variables: Sequence[tuple[str, str]]
    is_duplicate: bool = False


class _InvalidRow(Exception):
    """A row, or the header, is invalid. `column` is the name of the bad column, or None for the whole row."""

    def __init__(self, message: str, column: str | None = None) -> None:
        super().__init__(message)
        self.column = column


def parse_list(text: str) -> Iterator[ListRow | CallRowError]:
    """Yields the rows in order: valid rows, or the first error of each invalid row. A CallHeaderError is the only item.

    If several rows have one number, all except the first are duplicates.

    Raises: BadUserInput for more than 10 MB, or when the iteration passes 100,000 rows.
    """
    _check_size(text)
    return _parse_rows(text.removeprefix("\ufeff"))


def _check_size(text: str) -> None:
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise BadUserInput("csv", f"a list of at most {MAX_BYTES // 1024 // 1024} MB")


def _parse_rows(text: str) -> Iterator[ListRow | CallRowError]:
    rows = _rows(text)
    try:
        line, cells = next(rows, (1, _InvalidRow("The list is empty. Its first line must name the columns.")))
        names = _header(cells)
    except _InvalidRow as error:
        yield CallHeaderError(line, error.column, str(error))
        return
    earlier: set[str] = set()
    count = 0
    for count, (line, cells) in enumerate(rows, 1):
        if count > MAX_ROWS:
            raise BadUserInput("csv", f"a list of at most {MAX_ROWS} rows")
        try:
            row = _row(line, names, cells)
        except _InvalidRow as error:
            yield CallRowError(line, error.column, str(error))
            continue
        yield replace(row, is_duplicate=True) if row.phone_number in earlier else row
        earlier.add(row.phone_number)
    if not count:
        yield CallHeaderError(line, None, "The list has a header but no rows. Add at least one number.")


def _rows(text: str) -> Iterator[tuple[int, list[str] | _InvalidRow]]:
    """Yields each row that is not blank, or the CSV reader's error, with the line on which it begins."""
    reader = csv.reader((match[0] for match in _LINE.finditer(text) if match[0]), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, _InvalidRow(f"The row is not valid CSV: {error}.")
            continue
        if cells:
            yield line, cells


def _header(cells: list[str] | _InvalidRow) -> list[str]:
    """Returns the names of the columns. Raises: _InvalidRow."""
    if isinstance(cells, _InvalidRow):
        raise cells
    names = [_storable(cell.strip(), None) for cell in cells]
    if len(names) > MAX_COLUMNS:
        raise _InvalidRow(f"The list has {len(names)} columns. At most {MAX_COLUMNS} are allowed.")
    for index, name in enumerate(names):
        if not 1 <= len(name) <= MAX_NAME_CHARS:
            raise _InvalidRow(f"Column {index + 1} needs a name of 1 to {MAX_NAME_CHARS} characters.")
        if name in names[:index]:
            raise _InvalidRow("Two columns have this name. Rename one of them.", name)
    if PHONE_NUMBER not in names:
        raise _InvalidRow(f"The column {PHONE_NUMBER} is missing. Add it to the first line.", PHONE_NUMBER)
    return names


def _row(line: int, names: list[str], cells: list[str] | _InvalidRow) -> ListRow:
    if isinstance(cells, _InvalidRow):
        raise cells
    if len(cells) != len(names):
        raise _InvalidRow(f"The row has {len(cells)} cells, but the header has {len(names)}.")
    number, variables = "", []
    for name, cell in zip(names, cells, strict=True):
        if name == PHONE_NUMBER:
            number = _number(cell)
        elif len(cell) > MAX_VALUE_CHARS:
            raise _InvalidRow(f"The value has {len(cell)} characters. At most {MAX_VALUE_CHARS} are allowed.", name)
        else:
            variables.append((name, _storable(cell, name)))
    return ListRow(line, number, variables)


def _number(cell: str) -> str:
    try:
        return parse_phone_number(cell)
    except ValueError as error:
        raise _InvalidRow(str(error), PHONE_NUMBER) from None


def parse_phone_number(text: str) -> str:
    """Returns the number in E.164 form, such as "+819012345678". Raises: ValueError with a message for people."""
    text = text.strip()
    if not text:
        raise ValueError(_MISSING)
    if len(text) > MAX_NUMBER_CHARS:
        raise ValueError(_IMPOSSIBLE)
    try:
        number = phonenumbers.parse(text)
    except NumberParseException as error:
        is_local = error.error_type == NumberParseException.INVALID_COUNTRY_CODE and text[0] not in "+＋"
        raise ValueError(_INVALID if is_local else _IMPOSSIBLE) from None
    # Not `is_possible_number`, which accepts numbers that can be dialled only inside their area.
    if number.extension or phonenumbers.is_possible_number_with_reason(number) != ValidationResult.IS_POSSIBLE:
        raise ValueError(_IMPOSSIBLE)
    return phonenumbers.format_number(number, PhoneNumberFormat.E164)


def _storable(text: str, column: str | None) -> str:
    """Returns the text. Raises: _InvalidRow for an unpaired surrogate, which UTF-8 cannot encode."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _InvalidRow("The text contains an invalid Unicode character. Remove it.", column) from None
    return text
