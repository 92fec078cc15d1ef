"""Finds the codes of a mail server's answer in the texts and classes that a provider hands on."""

import re

from pydantic import ValidationError

from jobs.mail.reply_codes import ReplyCodes, failure_codes, is_specific

MAX_DIAGNOSTIC_CHARS = 4000

_SUCCESS_CODE = re.compile(r"\s*(2\d\d)(?!\w)")
_STATUS = re.compile(r"[45]\.\d{1,3}\.\d{1,3}", re.ASCII)


def failure(text: str, status: str | None, class_status: str) -> ReplyCodes:
    """Returns the codes of a failure.

    The status is that of the provider or of the text, whichever says more than its class; else that of the provider's
    own class.
    """
    found = failure_codes(text)
    written = status if status and _STATUS.fullmatch(status) else None
    specific = next((each for each in (written, found.enhanced_status) if is_specific(each)), None)
    return ReplyCodes(found.smtp_code, specific or class_status)


def success(text: str) -> ReplyCodes:
    """Returns the codes of a delivery. `text` is the server's answer."""
    found = _SUCCESS_CODE.match(text)
    return ReplyCodes(int(found[1]) if found else None, "2.0.0")


def first_fault(error: ValidationError) -> str:
    """Returns the first error without the value, after the name of the field."""
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'event'}: {first['msg']}"
