"""The classes of bounces that a policy tells apart. Pure; no I/O."""

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from storage.mail.classifier import reason_of_code
from storage.mail.records import IMPORTED_HARD_BOUNCE


class BounceClass(StrEnum):
    """Why a mail bounced, as far as policies tell reasons apart."""

    NO_MAILBOX = "NO_MAILBOX"
    NO_DOMAIN = "NO_DOMAIN"
    MOVED = "MOVED"
    DISABLED = "DISABLED"
    IMPORTED_HARD = "IMPORTED_HARD"
    FULL = "FULL"
    EXPIRED = "EXPIRED"
    TEMPORARY = "TEMPORARY"
    IMPORTED_SOFT = "IMPORTED_SOFT"


CLASSES_BY_REASON: Mapping[str, BounceClass] = MappingProxyType(
    {
        "no such mailbox": BounceClass.NO_MAILBOX,
        "malformed address": BounceClass.NO_MAILBOX,
        "no such recipient": BounceClass.NO_MAILBOX,
        "no such domain": BounceClass.NO_DOMAIN,
        "the domain accepts no mail": BounceClass.NO_DOMAIN,
        "mailbox has moved": BounceClass.MOVED,
        "mailbox owner has changed": BounceClass.MOVED,
        "domain owner has changed": BounceClass.MOVED,
        "mailbox disabled": BounceClass.DISABLED,
        "account disabled": BounceClass.DISABLED,
        "mailbox full": BounceClass.FULL,
        "not delivered in time": BounceClass.EXPIRED,
        "address not accepted for now": BounceClass.TEMPORARY,
        "mailbox not available for now": BounceClass.TEMPORARY,
        "mail system full": BounceClass.TEMPORARY,
    }
)
"""The class of each reason of the classifier for which an address is blamed."""

_REASON_OF_TEXT = re.compile(r"\((.+)\)$")


def hard_bounce_class(code: str) -> BounceClass:
    """Returns the class of a hard bounce, given its stored code."""
    if code == IMPORTED_HARD_BOUNCE:
        return BounceClass.IMPORTED_HARD
    return CLASSES_BY_REASON.get(_reason(code), BounceClass.NO_MAILBOX)


def soft_bounce_class(code: str) -> BounceClass:
    """Returns the class of a soft bounce, given its stored code; an empty code for an imported bounce."""
    if not code:
        return BounceClass.IMPORTED_SOFT
    return CLASSES_BY_REASON.get(_reason(code), BounceClass.TEMPORARY)


def _reason(code: str) -> str:
    """Returns the reason in a stored code: "554 (no such mailbox)" names it, and "550 5.1.1" has one in the table."""
    named = _REASON_OF_TEXT.search(code)
    return named[1] if named else reason_of_code(code)
