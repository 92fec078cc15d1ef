"""JSON bodies of the routes of accounts and passkeys."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from resolvers.arguments import checked_name
from resolvers.identity import MAX_NAME_CHARS
from server.http.openapi import Expected, RequestModel
from storage.errors import BadUserInput
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.handles.suggestions import HANDLE_FORMAT, is_handle
from storage.identity.passkeys.records import MAX_NAME_CHARS as MAX_PASSKEY_NAME_CHARS
from storage.mail.addresses import normalize

MAX_TOKEN_CHARS = 200
MAX_ADDRESS_CHARS = 400
MAX_PASSWORD_CHARS = 1000
"""Longer passwords are refused before any other check."""

TOKEN_FORMAT = f"a text of 1 to {MAX_TOKEN_CHARS} characters"
ADDRESS_FORMAT = "a mail address"
PASSWORD_FORMAT = f"a text of 1 to {MAX_PASSWORD_CHARS} characters"
NAME_FORMAT = f"a text of 1 to {MAX_NAME_CHARS} characters"
PASSKEY_FORMAT = "a PublicKeyCredential as JSON"
PASSKEY_NAME_FORMAT = f"a text of 1 to {MAX_PASSKEY_NAME_CHARS} characters"


def _normalized_address(text: str) -> str:
    normalized = normalize(text.strip())
    if normalized is None:
        raise BadUserInput("address", ADDRESS_FORMAT)
    return normalized.text


def _checked_name(name: str) -> str:
    return checked_name("name", name, MAX_NAME_CHARS)


def _checked_passkey_name(name: str) -> str:
    return checked_name("passkeyName", name, MAX_PASSKEY_NAME_CHARS)


def _checked_handle(handle: str) -> str | None:
    """Returns the wished handle, or None for an empty text. Raises: BadUserInput."""
    if handle and not is_handle(handle):
        raise BadUserInput("handle", HANDLE_FORMAT)
    return handle or None


Token = Annotated[str, Field(min_length=1, max_length=MAX_TOKEN_CHARS), Expected(TOKEN_FORMAT)]
"""The token of a link. Its store decides whether it is valid."""

MailAddress = Annotated[
    str,
    Field(min_length=1, max_length=MAX_ADDRESS_CHARS),
    AfterValidator(_normalized_address),
    Expected(ADDRESS_FORMAT),
]
Password = Annotated[str, Field(min_length=1, max_length=MAX_PASSWORD_CHARS), Expected(PASSWORD_FORMAT)]
"""A password. The rules for passwords are not checked here."""

DisplayName = Annotated[
    str, Field(min_length=1, max_length=MAX_NAME_CHARS), AfterValidator(_checked_name), Expected(NAME_FORMAT)
]
Handle = Annotated[str, AfterValidator(_checked_handle), Expected(HANDLE_FORMAT)]
Passkey = Annotated[dict[str, Any], Expected(PASSKEY_FORMAT)]
"""A browser's PublicKeyCredential, which is verified elsewhere."""

PasskeyName = Annotated[
    str,
    Field(min_length=1, max_length=MAX_PASSKEY_NAME_CHARS),
    AfterValidator(_checked_passkey_name),
    Expected(PASSKEY_NAME_FORMAT),
]
Language = Annotated[MailLanguage, Field(strict=False), Expected(" or ".join(each.value for each in MailLanguage))]


class PasswordSignIn(RequestModel):
    """A mail address and its password."""

    address: MailAddress
    password: Password


class PasskeySignIn(RequestModel):
    """The browser's answer to the options of a sign-in: `PublicKeyCredential.toJSON()`."""

    passkey: Passkey


class InvitationLink(RequestModel):
    """The token of an invitation's link, after `#invitation=`."""

    invitation: Token


class AccountLink(RequestModel):
    """The token of the link that leads to a new account: of the first start, or of an invitation."""

    first_admin: Token | None = None
    invitation: Token | None = None


class MailRequest(RequestModel):
    """The address that gets a mail with a link, and the language of the mail."""

    address: MailAddress
    language: Language = MailLanguage.EN


class Registration(MailRequest):
    """A request for a mail whose link proves the address. Without open registration, it needs an invitation."""

    invitation: Token | None = None


class NewAccount(RequestModel):
    """A new account with a password, or with a passkey and its name."""

    name: DisplayName
    handle: Handle | None = None
    language: Language = MailLanguage.EN
    password: Password | None = None
    passkey: Passkey | None = None
    passkey_name: PasskeyName | None = None


class FirstAdminAccount(NewAccount):
    """The account of the first ADMIN, by the link of the first start."""

    first_admin: Token
    address: MailAddress


class InvitedAccount(NewAccount):
    """An account by an invitation for a mail address."""

    invitation: Token


class VerifiedAccount(NewAccount):
    """An account for the mail address that the mailed link proves."""

    verification: Token


class NewAccountOptions(RequestModel):
    """The person whose new account gets a passkey.

    One of `firstAdmin` with `address`, `invitation` for a mail address, and `verification` is needed.
    """

    name: DisplayName
    first_admin: Token | None = None
    address: MailAddress | None = None
    invitation: Token | None = None
    verification: Token | None = None


class PasswordReset(RequestModel):
    """The token of a mailed link, after `#reset=`, and another password."""

    reset: Token
    password: Password


class PasswordChange(RequestModel):
    """The current password, and another one."""

    current_password: Password
    password: Password


class AddedPasskey(RequestModel):
    """The browser's answer to the options of a new passkey, and a name for it."""

    passkey: Passkey
    passkey_name: PasskeyName
