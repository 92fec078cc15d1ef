"""Parsing of call lists: bad rows are reported with line and column, also in hostile input."""

import csv
import io
import time
import tracemalloc
from itertools import islice

import phonenumbers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.calls import list_parser
from storage.calls.list_parser import MAX_BYTES, MAX_ROWS, ListRow, parse_list
from storage.calls.phone_numbers import parse_phone_number
from storage.calls.records import CallRowError
from storage.errors import BadUserInput


def rows(text: str) -> list[tuple[int, str]]:
    """Returns the line and the phone number of each row without duplicates. Asserts that no row is bad."""
    parsed = list(parse_list(text))
    assert all(isinstance(row, ListRow) for row in parsed), parsed
    return [(row.row, row.phone_number) for row in parsed if isinstance(row, ListRow) and not row.is_duplicate]


def errors(text: str) -> list[tuple[int, str | None]]:
    """Returns the line and the column of each error."""
    return [(row.row, row.column) for row in parse_list(text) if isinstance(row, CallRowError)]


def test_numbers_are_normalized_and_duplicates_dropped() -> None:
    text = "phone_number\n+81 90-1234-5678\n+819012345678\n＋８１９０１２３４５６７９\n+1 (202) 555-0143\n"
    assert rows(text) == [(2, "+819012345678"), (4, "+819012345679"), (5, "+12025550143")]


def test_other_columns_become_variables_in_order() -> None:
    (row,) = parse_list('name,phone_number,due\n"Tanaka, Aya",+819012345678,\n')
    assert isinstance(row, ListRow)
    assert row.variables == [("name", "Tanaka, Aya"), ("due", "")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_byte_order_mark_and_line_ends_are_accepted(end: str) -> None:
    assert rows(f"\ufeffphone_number,x{end}+819012345678,a{end}{end}+819012345679,b") == [
        (2, "+819012345678"),
        (4, "+819012345679"),
    ]


def test_row_number_is_the_line_where_the_row_begins() -> None:
    text = 'x,phone_number\n"one\ntwo\r\nthree",+819012345678\n"a\nb",bad\nc,+819012345679\n'
    parsed = list(parse_list(text))
    assert [row.row for row in parsed] == [2, 5, 7]
    first = parsed[0]
    assert isinstance(first, ListRow)
    assert first.variables == [("x", "one\ntwo\r\nthree")]


def test_each_bad_row_is_reported_with_its_column() -> None:
    long_value = "x" * (list_parser.MAX_VALUE_CHARS + 1)
    text = "phone_number,name\n,a\n09012345678,b\n+8112,c\n+819012345678\n"
    text += f"+819012345678,{long_value}\nabc,d\n+819012345678 ext 5,e\n"
    assert errors(text) == [
        (2, "phone_number"),
        (3, "phone_number"),
        (4, "phone_number"),
        (5, None),
        (6, "name"),
        (7, "phone_number"),
        (8, "phone_number"),
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", (1, None)),
        ("\n\n", (1, None)),
        ("phone_number\n", (1, None)),
        ("name\nx\n", (1, "phone_number")),
        ("phone_number,name,name\n+819012345678,a,b\n", (1, "name")),
        ("phone_number,\n+819012345678,a\n", (2, None)),
        ('phone_number\n"+819012345678', (2, None)),
        ('"phone_number"x\n+819012345678', (1, None)),
        ("phone_number,x\n+819012345678,\ud800\n", (2, "x")),
        ("phone_number," + ",".join(f"c{n}" for n in range(60)) + "\n", (1, None)),
    ],
)
def test_unusable_list_reports_line_and_column(text: str, error: tuple[int, str | None]) -> None:
    assert errors(text) == [error]


def test_too_many_rows_or_bytes_are_bad_input() -> None:
    with pytest.raises(BadUserInput, match="10 MB"):
        parse_list("x" * (MAX_BYTES + 1))
    with pytest.raises(BadUserInput, match="10 MB"):
        parse_list("狼" * (MAX_BYTES // 3 + 1))
    one_row_too_many = parse_list("phone_number\n" + "x\n" * (MAX_ROWS + 1))
    assert sum(1 for _ in islice(one_row_too_many, MAX_ROWS)) == MAX_ROWS
    with pytest.raises(BadUserInput, match="100000 rows"):
        next(one_row_too_many)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["", "{0}", "{0}{0} {0}"])
def test_list_of_each_separator_is_read(separator: str, end: str) -> None:
    end = end.format(separator)
    text = f' Phone_NUMBER {separator}name{end}\n+819012345678{separator}"a,b;c\td"{end}\n{separator}{end}\n'
    (row,) = parse_list(text)
    assert isinstance(row, ListRow)
    assert (row.row, row.phone_number) == (2, "+819012345678")
    assert row.variables == [("name", "a,b;c\td")]


def test_list_of_numbers_only_is_read_with_empty_cells() -> None:
    for text in (
        "PHONE_NUMBER\n+819012345678\n",
        "phone_number,\n+819012345678,\n",
        "phone_number;\n+819012345678;;\n",
    ):
        assert rows(text) == [(2, "+819012345678")]


def test_national_numbers_of_a_region_are_read() -> None:
    text = "phone_number,x\n090-1234-5678,a\n+12025550143,b\n+81 90 1234 5678,c\n"
    parsed = [row for row in parse_list(text, "JP") if isinstance(row, ListRow)]
    numbers = [(row.phone_number, row.is_duplicate) for row in parsed]
    assert numbers == [("+819012345678", False), ("+12025550143", False), ("+819012345678", True)]
    assert errors(text) == [(2, "phone_number")]


def test_header_in_quotes_is_read_with_its_separator() -> None:
    assert rows('"note, or ""memo""";"phone_number"\n"x;y";"+819012345678"\n') == [(2, "+819012345678")]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("phone;name;note\n+819012345678;a;b\n", (1, "phone_number", "3 cells, separated by semicolons")),
        ("phone_number\tname\n+819012345678\n", (2, None, "1 cell, separated by tabs, but the header has 2 columns")),
        ("phone_number;name\n+819012345678,a\n", (2, None, "1 cell, separated by semicolons")),
        ("phone_number,name\n+819012345678,a,,b,\n", (2, None, "5 cells, separated by commas")),
        ("phone_number\n+819012345678;a\n", (2, "phone_number", 'Found ";" as character 14')),
        ('phone_number;name\n+819012345678;"a"b\n', (2, None, "CSV with semicolons between cells")),
        ("phone_number,,name\n+819012345678,,a\n", (1, None, "Column 2 needs a name")),
        ("Phone_number,PHONE_NUMBER\n+819012345678,\n", (1, "phone_number", "Two columns have this name")),
    ],
)
def test_error_names_row_column_and_separator(text: str, error: tuple[int, str | None, str]) -> None:
    (row,) = parse_list(text)
    assert isinstance(row, CallRowError)
    assert (row.row, row.column) == error[:2]
    assert error[2] in row.message


def large_list(count: int) -> str:
    """Returns a list of different numbers, in rows of about 37 characters."""
    return "phone_number,name,note\n" + "".join(f"+8190{10_000_000 + n},name {n},some words\n" for n in range(count))


def test_large_list_is_parsed_in_linear_time() -> None:
    text = large_list(30_000)
    begun = time.thread_time()
    assert sum(1 for _ in parse_list(text)) == 30_000
    # Processor time, so that other processes do not count. A parser that searches all earlier rows takes 9 s.
    assert time.thread_time() - begun < 5


def test_large_list_is_parsed_in_flat_memory() -> None:
    text = large_list(5000)
    tracemalloc.start()
    for _ in parse_list(text):
        pass
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The parser holds the text, and a set of the numbers to find duplicates, but not the rows.
    assert peak_bytes < 1_800_000


hostile_text = st.text(st.sampled_from('+0123456789,"\n\r\ufeff\x00狼 phone_number\ud800'), max_size=200)
cells = st.text(max_size=20) | st.sampled_from(["+819012345678", "+12025550143", '"', "", "+", "+8190123456789"])


hostile = (
    hostile_text
    | hostile_text.map(lambda text: "phone_number,x\n" + text)
    | st.lists(cells, max_size=40).map(lambda row: "x,phone_number\n" + ",".join(row))
    | st.binary(max_size=200).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
)


@settings(max_examples=200, deadline=None)
@given(hostile)
def test_hostile_list_gives_rows_and_errors(text: str) -> None:
    assert_rows_or_errors(text)


@pytest.mark.soak
@settings(max_examples=1000, deadline=None)
@given(hostile)
def test_1000_hostile_lists_give_rows_and_errors(text: str) -> None:
    assert_rows_or_errors(text)


def assert_rows_or_errors(text: str) -> None:
    """Asserts that a list gives a row or an error, that line numbers ascend, and that every number is possible."""
    parsed = list(parse_list(text))
    assert parsed
    last_line = 0
    for row in parsed:
        assert row.row > last_line or isinstance(row, CallRowError)
        last_line = max(last_line, row.row)
        if isinstance(row, ListRow):
            assert phonenumbers.is_possible_number(phonenumbers.parse(row.phone_number))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(cells.filter(lambda c: "\x00" not in c), min_size=2, max_size=2), max_size=20))
def test_list_from_csv_writer_is_read_back(table: list[list[str]]) -> None:
    csv_file = io.StringIO()
    csv.writer(csv_file).writerows([["phone_number", "x"], *table])
    parsed = [row for row in parse_list(csv_file.getvalue()) if isinstance(row, ListRow)]
    expected = [(number, (("x", value),)) for cell, value in table if (number := number_or_none(cell)) is not None]
    assert [(row.phone_number, tuple(row.variables)) for row in parsed] == expected


def number_or_none(cell: str) -> str | None:
    """Returns the number that the cell contains, or None."""
    try:
        return parse_phone_number(cell)
    except ValueError:
        return None


@pytest.mark.parametrize("number", ["+12530000", "+15551234", "+4912"])
def test_number_valid_only_in_its_area_is_a_bad_row(number: str) -> None:
    assert errors(f"phone_number\n{number}\n") == [(2, "phone_number")]
