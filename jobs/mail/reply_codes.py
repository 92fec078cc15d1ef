"""Finds SMTP reply codes and enhanced statuses (RFC 3463) of failures in text that people read.

Numbers count only where mail servers write codes. Sizes, dates, versions, addresses of hosts and ids do not count.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReplyCodes:
    """The reply code and the enhanced status of an answer, as far as the text holds them."""

    smtp_code: int | None = None
    enhanced_status: str | None = None


_CODE = r"(?P<code>[45]\d\d)"
# RFC 3463 defines the subjects 0 to 7.
_STATUS = r"(?P<status>[45]\.[0-7]\.\d{1,3})(?!\w|\.\d)"
# Repetitions are bounded, so that the time is linear in the length of a text.
_OPENING = r"""[ \t"'(\[<#=-]{0,6}"""
_WORDS = (
    "said|says|reply|replied|responded|response|returned|answer(?:ed)?|error|code|status|smtp|e?smtp error|reason|"
    "diagnostic|dsn|ndr|with|got|was|is|because|rejected|refused|failed|エラー|コード"
)
_NOT_A_LABEL = "".join(
    f"(?<!{label})"
    for label in (
        *("size", "length", "date", "time", "port", "lines", "count", "number", "attempts", "limit", "sent", "subject"),
        *(
            "version",
            "ver",
            "queue",
            "bytes",
            "quota",
            "id",
            r"\d",
            "recipients",
            "maximum",
            "max",
            "tel",
            "phone",
            "fax",
        ),
    )
)
_PLACE = (
    rf"(?:^[ \t>|*<-]{{0,40}}{_OPENING}"  # the start of a line, in transcripts after "<<< "
    rf"|{_NOT_A_LABEL}[ \t]?[:;=]{_OPENING}"  # "host said: 550", "smtp;550"
    rf"""|["'(\[<#]\s?"""
    rf"|\b(?:{_WORDS})\b(?:\s(?:code|was|is|of|from server))?[:;,]?{_OPENING})"
)
_UNIT = (
    r"(?:[%€$円]|(?:m?l|[kmgt]i?b?|bytes?|octets?|m?s|secs?|seconds?|min|minutes?|h|hours?|days?|weeks?|months?|years?"
    r"|times|lines|recipients|messages(?! from)|mails|e-?mails|users|char(?:acter)?s|people|items|files|attempts"
    r"|g|grams?|kg|c?m|mm|km|usd|eur|euros?|dollars?|yen|x|px|dpi|points?)\b)"
)
_TELEPHONE = r"[ -]\d{3}[ -]\d{3,4}\b|-\d{3,}"
_AFTER_CODE = rf"(?!\w|[./,]\d|/|\s?{_UNIT}|{_TELEPHONE})"
_FLAGS = re.IGNORECASE | re.MULTILINE

_PAIR = re.compile(rf"(?<![\w.]){_CODE}(?:[ -](?P=code))?[ :_-]{_OPENING}{_STATUS}", _FLAGS)
_PLACED_CODE = re.compile(rf"{_PLACE}{_CODE}{_AFTER_CODE}", _FLAGS)
_PLACED_STATUS = re.compile(rf"{_PLACE}{_STATUS}(?!\s?\d)", _FLAGS)
_PRODUCT = re.compile(
    r"(?:\bv|\bver|version|release|build|\w*mailer|exim|sendmail|postfix|qmail|exchange|php)[\s:/=(\[-]*$",
    re.IGNORECASE,
)


def failure_codes(text: str) -> ReplyCodes:
    """Returns the first code and status of a failure. Of a code and a status of two classes, the first counts."""
    pairs = list(_PAIR.finditer(text))
    codes = sorted((*pairs, *_PLACED_CODE.finditer(text)), key=lambda each: each.start("code"))
    statuses = _statuses(text)
    if not codes or not statuses:
        return ReplyCodes(int(codes[0]["code"]) if codes else None, statuses[0]["status"] if statuses else None)
    code, status = codes[0], statuses[0]
    are_together = any(each.start("code") == code.start("code") for each in pairs)
    if are_together or code["code"][0] == status["status"][0]:
        return ReplyCodes(int(code["code"]), status["status"])
    is_code_first = code.start("code") < status.start("status")
    return ReplyCodes(int(code["code"])) if is_code_first else ReplyCodes(None, status["status"])


def failure_statuses(text: str) -> list[str]:
    """Returns the enhanced statuses in a text, in its order."""
    return [each["status"] for each in _statuses(text)]


def is_specific(status: str | None) -> bool:
    """Returns whether a status says more than its class: x.0.0 does not."""
    return status is not None and not status.endswith(".0.0")


def _statuses(text: str) -> list[re.Match[str]]:
    found = (*_PAIR.finditer(text), *_PLACED_STATUS.finditer(text))
    named = (each for each in found if not _follows_product(text, each.start("status")))
    return sorted(named, key=lambda each: each.start("status"))


def _follows_product(text: str, start: int) -> bool:
    """Returns whether the number at `start` is the version of a program."""
    return _PRODUCT.search(text[max(0, start - 30) : start]) is not None
