"""Fields of the JSON bodies of account routes, checked one by one."""

import re
from collections.abc import Mapping

from resolvers.arguments import checked_text
from storage.errors import BadUserInput
from storage.identity.accounts.local_accounts import Language
from storage.identity.users import MAX_HANDLE
from storage.mail.addresses import normalize

MAX_NAME_CHARS = 100
MAX_TOKEN_CHARS = 200
MAX_PASSWORD_CHARS = 1000
"""Longer passwords are refused before they are looked at."""

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

Body = Mapping[str, object]


def text(body: Body, field: str, max_chars: int) -> str:
    """Returns a required text of at most `max_chars` characters. Raises: BadUserInput."""
    value = body.get(field)
    if not isinstance(value, str) or not 1 <= len(value) <= max_chars:
        raise BadUserInput(field, f"a text of 1 to {max_chars} characters")
    return value


def token(body: Body, field: str) -> str | None:
    """Returns the token of a link, or None without one. Raises: BadUserInput."""
    return None if body.get(field) is None else text(body, field, MAX_TOKEN_CHARS)


def password(body: Body, field: str = "password") -> str:
    """Returns a password, whose rules are checked elsewhere. Raises: BadUserInput."""
    return text(body, field, MAX_PASSWORD_CHARS)


def address(body: Body) -> str:
    """Returns the normalized mail address. Raises: BadUserInput."""
    normalized = normalize(text(body, "address", MAX_TOKEN_CHARS * 2).strip())
    if normalized is None:
        raise BadUserInput("address", "a mail address")
    return normalized.text


def name(body: Body) -> str:
    """Returns the display name. Raises: BadUserInput."""
    value = checked_text("name", text(body, "name", MAX_NAME_CHARS).strip(), 1, MAX_NAME_CHARS)
    if _UNPRINTABLE.search(value):
        raise BadUserInput("name", f"1 to {MAX_NAME_CHARS} characters without control characters")
    return value


def handle(body: Body) -> str | None:
    """Returns the wished handle, or None without one. Raises: BadUserInput."""
    value = body.get("handle")
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not re.fullmatch(f"[a-z0-9_]{{1,{MAX_HANDLE}}}", value):
        raise BadUserInput("handle", f"1 to {MAX_HANDLE} lower-case letters, digits and underscores")
    return value


def language(body: Body) -> Language:
    """Returns the language of mails, by default English. Raises: BadUserInput."""
    value = body.get("language", Language.EN.value)
    known = {each.value: each for each in Language}
    if not isinstance(value, str) or value not in known:
        raise BadUserInput("language", " or ".join(known))
    return known[value]
