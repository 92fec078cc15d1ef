"""Reading of phone numbers: separators of all kinds are accepted, and nothing else becomes a digit."""

import sys
import unicodedata

import phonenumbers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.calls.phone_numbers import MAX_NUMBER_CHARS, is_assigned, parse_phone_number

DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d\u30fc\uff70"
SPACES = " \t\u00a0\u2002\u2007\u2009\u202f\u3000"


@pytest.mark.parametrize(
    "text",
    [
        "+819012345678",
        "  +81 90-1234-5678\u3000",
        "+81.90.1234.5678",
        "+81.9012345678",
        "+81 (90) 1234-5678",
        "(+81) 90(1234)5678",
        "+ 81 90 1234 5678",
        "'+819012345678",
        "＇+819012345678",
        "＋８１（９０）１２３４－５６７８",
        "﹢81⁠９０．１２３４．５６７８",
        "+٨١٩٠١٢٣٤٥٦٧٨",
        "+८१ ९० १२३४ ५६७८",
        "\u202a+81\u200b90\u00ad1234\u20605678\u202c",
        "\ufeff+819012345678",
        "+81 (0)90 1234 5678",
        "+81（０）90-1234-5678",
        *(f"+81{separator}90{separator}1234{separator}5678" for separator in DASHES + SPACES),
    ],
)
def test_number_with_separators_is_read(text: str) -> None:
    assert parse_phone_number(text) == "+819012345678"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("+44 (0)20 7946 0958", "+442079460958"),
        ("+44(0)2079460958", "+442079460958"),
        ("+49 (0) 30 123456", "+4930123456"),
        ("+39 (0)6 1234 5678", "+390612345678"),
        ("+39 06 1234 5678", "+390612345678"),
        ("+33.1.23.45.67.00", "+33123456700"),
        ("+1 (202) 555-0143", "+12025550143"),
        ("+1.2025550143", "+12025550143"),
    ],
)
def test_national_zero_follows_the_rules_of_its_country(text: str, number: str) -> None:
    assert parse_phone_number(text) == number


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "is missing"),
        ("\u3000", "is missing"),
        ("090-1234-5678", "beginning with"),
        ("819012345678", "beginning with"),
        ("+999 12345678", "Check its digits"),
        ("+81 90 1234 5678 (mobile)", 'Found "m" as character 19'),
        ("+819012345678 Bob", 'Found "B" as character 15'),
        ("+81 9O 1234 5678", 'Found "O" as character 6'),
        ("+81 9０ 1234 567８携帯", 'Found "携" as character 17'),
        ("+819012345678x2", 'Found "x"'),
        ("+819012345678 ext. 2", 'Found "e"'),
        ("+819012345678;ext=2", 'Found ";"'),
        ("+819012345678#2", 'Found "#"'),
        ("+819012345678,,2", 'Found ","'),
        ("tel:+819012345678", 'Found "t" as character 1'),
        ('="+819012345678"', 'Found "=" as character 1'),
        ("+1-800-FLOWERS", 'Found "F"'),
        ("+8.19E+11", 'Found "E"'),
        ("+81 90 1234 5678²", 'Found "²"'),
        ("+81 90 1234 567⑧", 'Found "⑧"'),
        ("+81 90 1234 567八", 'Found "八"'),
        ("+81 3 1234 5678〜9", 'Found "〜"'),
        ("+81 3 1234 5678~9", 'Found "~"'),
        ("+81 3 1234 5678/9", 'Found "/"'),
        ("+819012345678\n+819012345679", "Found U+000A as character 14"),
        ("+81901234\x005678", "Found U+0000"),
        ("+81901234\ud8005678", "Found U+D800"),
        ("''+819012345678", "Found"),
        ("+819012345678'", "Found"),
        ("+819012345678.0", "decimal fraction"),
        ("+819012345678.00", "decimal fraction"),
        ("+819012345678．００", "decimal fraction"),
        ("+81 90 1234 5678.000000", "decimal fraction"),
        ("++819012345678", "not those of one number"),
        ("+81+9012345678", "not those of one number"),
        ("+819012345678 +819012345679", "not those of one number"),
        ("+819012345678+", "not those of one number"),
        ("+81 90 1234 5678 (2)", "not those of one number"),
        ("+81 (90 1234 5678", "not those of one number"),
        ("+81 90) 1234 5678", "not those of one number"),
        ("+81 () 90 1234 5678", "not those of one number"),
        ("+81 90 1234 567-", "not those of one number"),
        ("+", "not those of one number"),
        ("'", "not those of one number"),
        ("+1 (0)202 555 0143", "Check its digits"),
        ("+44 020 7946 0958", "only dialled inside a country"),
        ("+81 090 1234 5678", "only dialled inside a country"),
        ("+7 8 912 345 67 89", "only dialled inside a country"),
        ("+54 011 15-2345-6789", "only dialled inside a country"),
        ("+1" + " " * MAX_NUMBER_CHARS + "2025550143", f"At most {MAX_NUMBER_CHARS} characters"),
    ],
)
def test_text_that_is_not_one_number_is_refused(text: str, found: str) -> None:
    with pytest.raises(ValueError) as refusal:
        parse_phone_number(text)
    assert found in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "region", "number"),
    [
        ("090-1234-5678", "JP", "+819012345678"),
        ("０９０（１２３４）５６７８", "JP", "+819012345678"),
        ("(03) 1234 5678", "JP", "+81312345678"),
        ("'09012345678", "JP", "+819012345678"),
        ("9012345678", "JP", "+819012345678"),
        ("+44 (0)20 7946 0958", "JP", "+442079460958"),
        ("020 7946 0958", "GB", "+442079460958"),
        ("(0)20 7946 0958", "GB", "+442079460958"),
        ("06 1234 5678", "IT", "+390612345678"),
        ("8 (912) 345-67-89", "RU", "+79123456789"),
        ("1-202-555-0143", "US", "+12025550143"),
        ("202.555.0143", "US", "+12025550143"),
    ],
)
def test_national_number_is_read_with_its_region(text: str, region: str, number: str) -> None:
    assert parse_phone_number(text, region) == number


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("090-1234-5678 Bob", "JP"),
        ("09012345678.0", "JP"),
        ("090-1234", "JP"),
        ("010 1 202 555 0143", "JP"),
        ("011 15-2345-6789", "AR"),
        ("555-0143", "US"),
        ("202-555-0143 x2", "US"),
        ("110", "JP"),
    ],
)
def test_text_that_is_no_national_number_is_refused(text: str, region: str) -> None:
    with pytest.raises(ValueError, match="Invalid phone number"):
        parse_phone_number(text, region)


def test_error_does_not_repeat_the_number() -> None:
    """Errors of rejected lists are kept longer than numbers, and errors of requests may be logged."""
    with pytest.raises(ValueError) as refusal:
        parse_phone_number("+81 70 9876 5432 Bob")
    assert not {"70", "9876", "5432", "Bob"} & set(str(refusal.value).replace('"', " ").split())


@pytest.mark.parametrize("number", ["+12530000", "+15551234", "+4912"])
def test_number_possible_only_in_its_area_is_refused(number: str) -> None:
    with pytest.raises(ValueError, match="Check its digits"):
        parse_phone_number(number)


def test_example_numbers_of_all_countries_are_read() -> None:
    for region in sorted(phonenumbers.SUPPORTED_REGIONS):
        for type_ in (phonenumbers.PhoneNumberType.MOBILE, phonenumbers.PhoneNumberType.FIXED_LINE):
            if (example := phonenumbers.example_number_for_type(region, type_)) is None:
                continue
            e164 = phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.E164)
            written = phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.INTERNATIONAL)
            assert (parse_phone_number(e164), parse_phone_number(written)) == (e164, e164), region


numbers = st.sampled_from(["+819012345678", "+44 (0)20 7946 0958", "+12025550143", "+4930123456", "+39 06 1234 5678"])
characters = st.characters() | st.sampled_from("+()'.-/xXeE 0１٢३②〜#,;" + DASHES + SPACES)
changes = st.lists(st.tuples(st.integers(0, 20), st.text(characters, max_size=3)), max_size=4)


def changed(number: str, insertions: list[tuple[int, str]]) -> str:
    """Returns the number with texts inserted."""
    for index, text in insertions:
        number = number[:index] + text + number[index:]
    return number


cells = st.builds(changed, numbers, changes) | st.text(characters, max_size=30)


@settings(max_examples=500, deadline=None)
@given(cells)
def test_accepted_cell_and_number_have_the_same_digits(cell: str) -> None:
    assert_same_digits(cell)


@pytest.mark.soak
@settings(max_examples=20_000, deadline=None)
@given(cells)
def test_20_000_cells_and_numbers_have_the_same_digits(cell: str) -> None:
    assert_same_digits(cell)


def assert_same_digits(cell: str) -> None:
    """Asserts that a cell is refused or has its number's digits, besides a national 0 in parentheses."""
    try:
        number = parse_phone_number(cell)
    except ValueError:
        return
    assert not any(unicodedata.category(character)[0] in "LNM" for character in cell if not is_digit(character))
    digits = "".join(str(unicodedata.decimal(character)) if is_digit(character) else character for character in cell)
    plain = unicodedata.normalize("NFKC", digits)
    written = {"".join(filter(is_digit, text)) for text in (plain, plain.replace("(0)", "", 1))}
    assert number.removeprefix("+") in written
    assert parse_phone_number(number) == number


def is_digit(character: str) -> bool:
    """Returns whether the character is a decimal digit of any script."""
    return unicodedata.category(character) == "Nd"


def test_no_letter_or_symbol_becomes_a_digit() -> None:
    """Tries every assigned character of Unicode inside a number whose digits are complete without it."""
    for character in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.category(character) in {"Cn", "Co", "Cs"}:
            continue
        try:
            number = parse_phone_number(f"+49 30 12{character}3456")
        except ValueError:
            continue
        if is_digit(character):
            assert number == f"+493012{unicodedata.decimal(character)}3456"
        else:
            assert number == "+4930123456"
            assert unicodedata.category(character) in {"Zs", "Pd", "Cf", "Cc", "Po", "Sm", "Lm"}, hex(ord(character))


@pytest.mark.parametrize(
    ("number", "assigned"),
    [("+819012345678", True), ("+819012345678262", False), ("+81912345678", False), ("+999123", False), ("", False)],
)
def test_assigned_number_is_told_by_the_tables(number: str, assigned: bool) -> None:
    assert is_assigned(number) is assigned
