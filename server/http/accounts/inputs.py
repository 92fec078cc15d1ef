"""Fields of the JSON bodies of account routes, checked one by one."""

from collections.abc import Mapping

from resolvers.arguments import checked_name
from resolvers.identity import MAX_NAME_CHARS
from storage.errors import BadUserInput
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.handles.suggestions import HANDLE_FORMAT, is_handle
from storage.identity.passkeys.records import MAX_NAME_CHARS as MAX_PASSKEY_NAME_CHARS
from storage.mail.addresses import normalize

MAX_TOKEN_CHARS = 200
MAX_PASSWORD_CHARS = 1000
"""Longer passwords are refused before any other check."""

RequestBody = Mapping[str, object]


def text(body: RequestBody, field: str, max_chars: int) -> str:
    """Returns a required text of at most `max_chars` characters. Raises: BadUserInput."""
    value = body.get(field)
    if not isinstance(value, str) or not 1 <= len(value) <= max_chars:
        raise BadUserInput(field, f"a text of 1 to {max_chars} characters")
    return value


def token(body: RequestBody, field: str) -> str | None:
    """Returns the token of a link, or None without one. Raises: BadUserInput."""
    return None if body.get(field) is None else text(body, field, MAX_TOKEN_CHARS)


def password(body: RequestBody, field: str = "password") -> str:
    """Returns a password. The rules for passwords are not checked here. Raises: BadUserInput."""
    return text(body, field, MAX_PASSWORD_CHARS)


def passkey(body: RequestBody) -> Mapping[str, object]:
    """Returns a browser's PublicKeyCredential, which is verified elsewhere. Raises: BadUserInput."""
    value = body.get("passkey")
    if not isinstance(value, dict):
        raise BadUserInput("passkey", "a PublicKeyCredential as JSON")
    return value


def passkey_name(body: RequestBody) -> str:
    """Returns the name of a passkey. Raises: BadUserInput."""
    value = text(body, "passkeyName", MAX_PASSKEY_NAME_CHARS)
    return checked_name("passkeyName", value, MAX_PASSKEY_NAME_CHARS)


def address(body: RequestBody) -> str:
    """Returns the normalized mail address. Raises: BadUserInput."""
    normalized = normalize(text(body, "address", MAX_TOKEN_CHARS * 2).strip())
    if normalized is None:
        raise BadUserInput("address", "a mail address")
    return normalized.text


def name(body: RequestBody) -> str:
    """Returns the display name. Raises: BadUserInput."""
    return checked_name("name", text(body, "name", MAX_NAME_CHARS), MAX_NAME_CHARS)


def handle(body: RequestBody) -> str | None:
    """Returns the wished handle, or None without one. Raises: BadUserInput."""
    value = body.get("handle")
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not is_handle(value):
        raise BadUserInput("handle", HANDLE_FORMAT)
    return value


def language(body: RequestBody) -> MailLanguage:
    """Returns the language of mails, by default English. Raises: BadUserInput."""
    value = body.get("language", MailLanguage.EN.value)
    known = {each.value: each for each in MailLanguage}
    if not isinstance(value, str) or value not in known:
        raise BadUserInput("language", " or ".join(known))
    return known[value]
