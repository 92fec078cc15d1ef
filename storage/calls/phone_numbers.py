"""Reads phone numbers as people and programs write them, and returns them in E.164 form. Pure; no I/O.

`phonenumbers.parse` turns letters into the digits of a keypad and drops what it does not know. The number is therefore
reduced to its digits before, and may contain only digits, separators and one plus sign.
"""

import re
import unicodedata
from functools import lru_cache

import phonenumbers
from phonenumbers import NumberParseException, PhoneMetadata, PhoneNumber, PhoneNumberFormat, ValidationResult

MAX_NUMBER_CHARS = 40
EXPECTED_PHONE_NUMBER = "E.164 form, beginning with + and the country code, such as +819012345678"

_MISSING = "The phone number is missing."
_INVALID = f"Invalid phone number: expected {EXPECTED_PHONE_NUMBER}."
_IMPOSSIBLE = f"{_INVALID} Check its digits."
_TOO_LONG = f"{_IMPOSSIBLE} At most {MAX_NUMBER_CHARS} characters are allowed."
_NOT_ONE_NUMBER = f"{_INVALID} Its plus signs, separators or parentheses are not those of one number."
_DECIMAL = f"{_INVALID} It ends like a decimal fraction. Format the column as text."
_NATIONAL_DIGITS = f"{_INVALID} Remove prefixes that are only dialled inside a country, such as 0."

# Soft hyphens, zero-width characters, and marks of the writing direction, which programs add to copied numbers.
_INVISIBLE = frozenset(map(chr, [0xAD, 0x61C, *range(0x200B, 0x2010), *range(0x202A, 0x202F), 0x2060]))
_INVISIBLE |= frozenset(map(chr, [*range(0x2066, 0x206A), 0xFEFF]))
# Minus signs, and the long vowel mark that Japanese keyboards type for a hyphen.
_DASHES = frozenset("\u2212\u30fc\uff70")
# Between two numbers these mean a range.
_WAVE_DASHES = frozenset("\u301c\u3030")
_APOSTROPHES = "'’＇"
_PARENTHESES = re.compile(r"\((\+?[ .-]*\d[\d .-]*)\)(?=[ .-]*[(\d])")
_WRITTEN_NUMBER = re.compile(r"\+?[\d .-]*\d")
_DECIMAL_FRACTION = re.compile(r"[^.]*\d\.(?:\d{1,3}|0+)")


def parse_phone_number(text: str, region: str | None = None) -> str:
    """Returns the number in E.164 form, such as "+819012345678". Raises: ValueError with a message for people.

    The result has the digits of the text. Only a national 0 in parentheses is dropped, as in "+44 (0)20 7946 0958".
    With a region, such as "JP", numbers without a plus sign are its national numbers, such as "090-1234-5678".
    """
    text = text.strip()
    if not text:
        raise ValueError(_MISSING)
    if len(text) > MAX_NUMBER_CHARS:
        raise ValueError(_TOO_LONG)
    written = _plain_text(text)
    dialled = _dialled(written)
    number = _possible_number(dialled, region)
    e164 = phonenumbers.format_number(number, PhoneNumberFormat.E164)
    without_zero = _dialled(written.replace("(0)", "", 1))
    if e164 not in _international_forms(dialled, number, region) + _international_forms(without_zero, number, region):
        raise ValueError(_NATIONAL_DIGITS)
    return e164


def _plain_text(text: str) -> str:
    """Returns the text in ASCII, without Excel's apostrophe. Raises: ValueError for a character of no number."""
    start = 1 if text[0] in _APOSTROPHES else 0
    plain = [_plain_character(character) for character in text[start:]]
    if None in plain:
        index = start + plain.index(None)
        raise ValueError(f"{_INVALID} Found {_shown(text[index])} as character {index + 1}.")
    return "".join(filter(None, plain)).strip()


@lru_cache(1024)
def _plain_character(character: str) -> str | None:
    """Returns a digit, a space, or one of "-.()+"; an empty string for invisible marks, and None for the rest."""
    if character in _INVISIBLE:
        return ""
    category = unicodedata.category(character)
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if category == "Zs" or character == "\t":
        return " "
    if character in _DASHES or (category == "Pd" and character not in _WAVE_DASHES):
        return "-"
    compatible = unicodedata.normalize("NFKC", character)
    return compatible if compatible in (".", "(", ")", "+") else None


def _shown(character: str) -> str:
    return f'"{character}"' if character.isprintable() else f"U+{ord(character):04X}"


def _dialled(written: str) -> str:
    """Returns the digits, after a plus sign if there is one. Raises: ValueError for a text that is not one number."""
    flat, count = written, 1
    while count:
        flat, count = _PARENTHESES.subn(r" \1 ", flat)
    if not _WRITTEN_NUMBER.fullmatch(flat.strip()):
        raise ValueError(_NOT_ONE_NUMBER)
    if _DECIMAL_FRACTION.fullmatch(written):
        raise ValueError(_DECIMAL)
    return re.sub(r"[^\d+]", "", flat)


def _possible_number(dialled: str, region: str | None) -> PhoneNumber:
    """Returns the number with these digits. Raises: ValueError if its country has no such numbers."""
    if region is None and not dialled.startswith("+"):
        raise ValueError(_INVALID)
    try:
        number = phonenumbers.parse(dialled, region)
    except NumberParseException:
        raise ValueError(_IMPOSSIBLE) from None
    # Not `is_possible_number`, which accepts numbers that can be dialled only inside their area.
    if phonenumbers.is_possible_number_with_reason(number) != ValidationResult.IS_POSSIBLE:
        raise ValueError(_IMPOSSIBLE)
    return number


def _international_forms(dialled: str, number: PhoneNumber, region: str | None) -> list[str]:
    """Returns the numbers that may be meant by these digits: with the country code, without the national prefix."""
    if region is None or dialled.startswith("+"):
        return [dialled]
    metadata = PhoneMetadata.metadata_for_region(region)
    prefix = (metadata and metadata.national_prefix) or ""
    return [f"+{number.country_code}{national}" for national in (dialled, dialled.removeprefix(prefix))]


def is_region(name: str) -> bool:
    """Returns whether the name is a country or territory that has numbers, by ISO 3166, such as "JP"."""
    return name in phonenumbers.SUPPORTED_REGIONS


def is_assigned(e164: str) -> bool:
    """Returns whether the country's operators have such numbers, by tables that may lack the newest ranges."""
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(e164))
    except NumberParseException:
        return False
