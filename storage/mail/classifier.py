"""Classifies answers of mail servers by one table of codes.

An outcome is hard only when the recipient or its domain is at fault. Faults of the sender, the content or a policy
never count against the address.
"""

import re
from dataclasses import dataclass
from enum import StrEnum


class DeliveryOutcome(StrEnum):
    """How a delivery event counts."""

    DELIVERED = "delivered"
    HARD = "hard"
    SOFT = "soft"
    DOMAIN = "domain"
    """Counts only for the domain: the answer does not show that the address is at fault."""

    COMPLAINT = "complaint"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class ClassifierRule:
    """A row of the table. `code` is an RFC 3463 status, an SMTP reply code, or a pattern such as `5.7.*` or `5**`."""

    code: str
    outcome: DeliveryOutcome
    reason: str
    source: str


_DELIVERED, _HARD, _SOFT = DeliveryOutcome.DELIVERED, DeliveryOutcome.HARD, DeliveryOutcome.SOFT
_DOMAIN, _NOTHING = DeliveryOutcome.DOMAIN, DeliveryOutcome.NOTHING

RULES = (
    ClassifierRule("2.*", _DELIVERED, "delivered", "RFC 3463, 2"),
    ClassifierRule("5.1.1", _HARD, "no such mailbox", "RFC 3463, 3.2"),
    ClassifierRule("5.1.2", _HARD, "no such domain", "RFC 3463, 3.2"),
    ClassifierRule("5.1.3", _HARD, "malformed address", "RFC 3463, 3.2"),
    ClassifierRule("5.1.6", _HARD, "mailbox has moved", "RFC 3463, 3.2"),
    ClassifierRule("5.1.10", _HARD, "the domain accepts no mail", "RFC 7505, 4.2"),
    ClassifierRule("5.2.1", _HARD, "mailbox disabled", "RFC 3463, 3.3"),
    ClassifierRule("5.7.13", _HARD, "account disabled", "RFC 5248; IANA"),
    ClassifierRule("5.7.17", _HARD, "mailbox owner has changed", "RFC 7293, 14"),
    ClassifierRule("5.7.18", _HARD, "domain owner has changed", "RFC 7293, 14"),
    ClassifierRule("4.1.*", _SOFT, "address not accepted for now", "RFC 3463, 3.2"),
    ClassifierRule("4.2.*", _SOFT, "mailbox not available for now", "RFC 3463, 3.3"),
    ClassifierRule("4.3.1", _SOFT, "mail system full", "RFC 3463, 3.4"),
    ClassifierRule("4.4.7", _SOFT, "not delivered in time", "RFC 3463, 3.5"),
    ClassifierRule("5.2.2", _SOFT, "mailbox full", "RFC 3463, 3.3: 'temporary', whatever the class"),
    ClassifierRule("4.4.1", _DOMAIN, "no answer from the host", "RFC 3463, 3.5"),
    ClassifierRule("4.4.2", _DOMAIN, "connection dropped", "RFC 3463, 3.5"),
    ClassifierRule("4.4.3", _DOMAIN, "name server failure", "RFC 3463, 3.5"),
    ClassifierRule("4.4.4", _DOMAIN, "no route to the host", "RFC 3463, 3.5"),
    ClassifierRule("4.4.5", _DOMAIN, "mail system congested", "RFC 3463, 3.5"),
    ClassifierRule("5.1.7", _NOTHING, "bad sender address", "RFC 3463, 3.2"),
    ClassifierRule("5.1.8", _NOTHING, "bad sender domain", "RFC 3463, 3.2"),
    ClassifierRule("5.3.4", _NOTHING, "message too big", "RFC 3463, 3.4"),
    ClassifierRule("5.6.*", _NOTHING, "content refused", "RFC 3463, 3.7"),
    ClassifierRule("5.7.*", _NOTHING, "refused by policy", "RFC 3463, 3.8"),
    ClassifierRule("4.*", _DOMAIN, "temporary failure", "docs/semantics.md: 4xx not listed"),
    ClassifierRule("5.*", _NOTHING, "permanent failure", "docs/semantics.md: 5xx not listed"),
    # Reply codes, for answers without a meaningful status.
    ClassifierRule("2**", _DELIVERED, "delivered", "RFC 5321, 4.2.1"),
    ClassifierRule("421", _DOMAIN, "service not available", "RFC 5321, 4.2.3"),
    ClassifierRule("552", _SOFT, "mailbox full", "RFC 5321, 4.2.3: 'exceeded storage allocation'"),
    ClassifierRule("4**", _DOMAIN, "temporary failure", "docs/semantics.md: 4xx not listed"),
    ClassifierRule("5**", _NOTHING, "permanent failure", "docs/semantics.md: 5xx not listed"),
)

COMPLAINED = ClassifierRule("", DeliveryOutcome.COMPLAINT, "the recipient complained", "RFC 5965")
NO_CONNECTION = ClassifierRule("", _DOMAIN, "connection failed", "docs/semantics.md: neither code nor status")
GREYLISTED = ClassifierRule("4**", _NOTHING, "greylisted", "RFC 6647; 450 or 451 with 4.7.1")
UNKNOWN_USER = ClassifierRule("55*", _HARD, "no such mailbox", "RFC 5321, 4.2.3, and the answer's text")
NOT_FINAL = ClassifierRule("", _NOTHING, "not a final answer", "RFC 5321, 4.2.1: 1yz and 3yz")

EXPIRED = "4.4.7"
"""Status of a message that was not delivered in time.

Without a reply code, the sender's own mail server reports it, and the domain's server may not have been reached.
"""

DEAD_DOMAIN_STATUSES = frozenset({"5.1.2", "5.1.10"})
"""Statuses that block the whole domain."""

_BY_CODE = {rule.code: rule for rule in RULES}
_GREYLIST = re.compile(r"gr[ea]y.?list", re.IGNORECASE)
_RECIPIENT = r"(?:user|recipient|mailbox|addressee|account|person)"
_UNKNOWN_USER = re.compile(
    rf"(?:unknown|no such|invalid|non-?existent|not a valid|no) (?:local |virtual |mail ?)?{_RECIPIENT}\b"
    rf"|{_RECIPIENT}\b.{{0,80}}?(?:unknown|not (?:be )?(?:known|found)|not exist|n't exist|invalid|no such)"
    r"|no such address|unknown in .{0,40}table",
    re.IGNORECASE,
)
_SENDER = re.compile(r"\bsender|\bfrom address|\bhelo", re.IGNORECASE)


def classify(smtp_code: int | None, status: str | None, text: str | None) -> ClassifierRule:
    """Returns the rule for an answer. A listed status overrides the reply code. A status x.0.0 counts as no status.

    An answer with neither a code nor a status is a failed connection.
    """
    if smtp_code is None and status is None:
        return NO_CONNECTION
    words = text or ""
    meaningful_status = None if status is None or status.endswith(".0.0") else status
    first_digit = status[0] if status else str(smtp_code)[0]
    if first_digit == "4" and ((smtp_code in (450, 451) and status == "4.7.1") or _GREYLIST.search(words)):
        return GREYLISTED
    if meaningful_status is not None:
        # For an unlisted status the reply code decides. 421 closes the connection, 552 is a full mailbox.
        return (
            _rule_of_status(meaningful_status) or _rule_of_reply_code(smtp_code) or _rule_of_class(f"{first_digit}.*")
        )
    return _rule_of_reply_code(smtp_code, words) or _rule_of_class(f"{first_digit}.*")


def _rule_of_status(status: str) -> ClassifierRule | None:
    return _BY_CODE.get(status) or _BY_CODE.get(f"{status.rpartition('.')[0]}.*")


def _rule_of_reply_code(smtp_code: int | None, words: str = "") -> ClassifierRule | None:
    if smtp_code is None:
        return None
    if smtp_code in (550, 551, 553) and _UNKNOWN_USER.search(words) and not _SENDER.search(words):
        return UNKNOWN_USER
    code = str(smtp_code)
    return _BY_CODE.get(code) or _BY_CODE.get(f"{code[:1]}**")


def _rule_of_class(pattern: str) -> ClassifierRule:
    return _BY_CODE.get(pattern, NOT_FINAL)
