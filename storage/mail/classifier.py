"""Classifies answers of mail servers by their texts and by one table of codes (docs/mail.md).

An outcome is hard only when the recipient or its domain is at fault. Faults of the sender, the content or a policy
never count against the address.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from storage.mail.answer_texts import AnswerTopic, answer_topic, names_other_host


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
    """A row of the table. `code` is an RFC 3463 status, an SMTP reply code, or a pattern such as `5.7.*` or `5**`.

    The code is empty if the text decides.
    """

    code: str
    outcome: DeliveryOutcome
    reason: str
    source: str
    blocks_domain: bool = False
    """Whether the answer shows that nobody at the domain can get mail."""

    @property
    def decides_by_text(self) -> bool:
        """Whether the reason is not that of a code."""
        return not self.code


_DELIVERED, _HARD, _SOFT = DeliveryOutcome.DELIVERED, DeliveryOutcome.HARD, DeliveryOutcome.SOFT
_DOMAIN, _NOTHING = DeliveryOutcome.DOMAIN, DeliveryOutcome.NOTHING

RULES = (
    ClassifierRule("2.*", _DELIVERED, "delivered", "RFC 3463, 2"),
    ClassifierRule("5.1.1", _HARD, "no such mailbox", "RFC 3463, 3.2"),
    ClassifierRule("5.1.2", _HARD, "no such domain", "RFC 3463, 3.2", blocks_domain=True),
    ClassifierRule("5.1.3", _HARD, "malformed address", "RFC 3463, 3.2"),
    ClassifierRule("5.1.6", _HARD, "mailbox has moved", "RFC 3463, 3.2"),
    ClassifierRule("5.1.10", _HARD, "no such recipient", "Exchange; RFC 7505, 4.2 with the text of a null MX"),
    ClassifierRule("5.2.1", _HARD, "mailbox disabled", "RFC 3463, 3.3"),
    ClassifierRule("5.7.13", _HARD, "account disabled", "RFC 5248; IANA"),
    ClassifierRule("5.7.17", _HARD, "mailbox owner has changed", "RFC 7293, 14"),
    ClassifierRule("5.7.18", _HARD, "domain owner has changed", "RFC 7293, 14"),
    ClassifierRule("4.1.7", _NOTHING, "bad sender address", "RFC 3463, 3.2"),
    ClassifierRule("4.1.8", _NOTHING, "bad sender domain", "RFC 3463, 3.2"),
    ClassifierRule("4.1.*", _SOFT, "address not accepted for now", "RFC 3463, 3.2"),
    ClassifierRule("4.2.2", _SOFT, "mailbox full", "RFC 3463, 3.3"),
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
GREYLISTED = ClassifierRule("", _NOTHING, "greylisted", "RFC 6647; 450 or 451 with 4.7.1")
NOT_FINAL = ClassifierRule("", _NOTHING, "not a final answer", "RFC 5321, 4.2.1: 1yz and 3yz")
OTHER_HOST = ClassifierRule("", _NOTHING, "the sender's relay has no address", "Postfix: the name that it looked up")
NO_DOMAIN = ClassifierRule("", _HARD, "no such domain", "RFC 3463, 3.2 and 3.5, and the text", blocks_domain=True)
NULL_MX = ClassifierRule("", _HARD, "the domain accepts no mail", "RFC 7505, 4.2, or code 556", blocks_domain=True)
NO_MAILBOX = ClassifierRule("", _HARD, "no such mailbox", "RFC 5321, 4.2.3, and the text")

_MAILBOX_FULL = ClassifierRule("", _SOFT, "mailbox full", "the text")
_REFUSED_SENDER = ClassifierRule("", _NOTHING, "sender refused", "the text")
_REFUSED_FOR_NOW = ClassifierRule("", _DOMAIN, "sender refused for now", "the text")

_PERMANENT_RULES: Mapping[AnswerTopic | None, ClassifierRule] = {
    AnswerTopic.SENDER: _REFUSED_SENDER,
    AnswerTopic.SENDING_HOST: _REFUSED_SENDER,
    AnswerTopic.REPUTATION: ClassifierRule("", _NOTHING, "refused by policy or reputation", "the text"),
    AnswerTopic.AUTHENTICATION: ClassifierRule("", _NOTHING, "not authenticated", "the text"),
    AnswerTopic.RATE: ClassifierRule("", _NOTHING, "too much mail", "the text"),
    AnswerTopic.ANSWER_TO_SENDER: _REFUSED_SENDER,
    AnswerTopic.MAILBOX_FULL: _MAILBOX_FULL,
    AnswerTopic.SIZE: ClassifierRule("", _NOTHING, "message too big", "the text"),
    AnswerTopic.CONTENT: ClassifierRule("", _NOTHING, "content refused", "the text"),
    AnswerTopic.NULL_MX: NULL_MX,
    AnswerTopic.NO_SUCH_MAILBOX: NO_MAILBOX,
}
"""Rules of texts for a permanent failure. A topic without a rule leaves the decision to the code."""

_TEMPORARY_RULES: Mapping[AnswerTopic | None, ClassifierRule] = {
    AnswerTopic.SENDER: _REFUSED_SENDER,
    AnswerTopic.SENDING_HOST: _REFUSED_FOR_NOW,
    AnswerTopic.REPUTATION: _REFUSED_FOR_NOW,
    AnswerTopic.AUTHENTICATION: _REFUSED_FOR_NOW,
    AnswerTopic.RATE: _REFUSED_FOR_NOW,
    AnswerTopic.MAILBOX_FULL: _MAILBOX_FULL,
}
"""Rules of texts for a temporary failure."""

NULL_MX_CODE = 556
"""Reply code of a domain that accepts no mail (RFC 7504)."""

_DOMAIN_STATUSES = frozenset({"5.1.2", "5.1.10", "5.4.4", "5.4.310"})
"""Statuses with which a text about a domain speaks of the recipient's. Exchange Online says 5.4.310."""

EXPIRED = "4.4.7"
"""Status of a message that was not delivered in time.

Without a reply code, the sender's own mail server reports it, and the domain's server may not have been reached.
"""

_BY_CODE = {rule.code: rule for rule in RULES}
_GREYLIST = re.compile(r"gr[ea]y.?list", re.IGNORECASE)
_STATUS_AFTER_REPLY_CODE = re.compile(r"\b([45])\d\d[ -]#?(\1\.\d{1,3}\.\d{1,3})\b")


def classify(smtp_code: int | None, status: str | None, text: str | None, domain: str | None = None) -> ClassifierRule:
    """Returns the rule for an answer to mail for an address of `domain`.

    The text decides if it names the reason, else the status, else the reply code. A status x.0.0 counts as no status.
    An answer with neither a code nor a status is a failed connection.
    """
    if smtp_code is None and status is None:
        return NO_CONNECTION
    answer = _Answer.of(smtp_code, status, text or "")
    rule = _rule_of_permanent_text(answer, domain) if answer.digit == "5" else _rule_of_temporary_text(answer)
    # For an unlisted status the reply code decides. 421 closes the connection, 552 is a full mailbox.
    return rule or _rule_of_status(answer.status) or _rule_of_reply_code(smtp_code) or _rule_of_class(answer.digit)


def reason_of_code(code: str) -> str:
    """Returns the table's reason for a stored code such as "550 5.1.1" or "552"; an empty string if it has none."""
    status = next((part for part in code.split() if "." in part), None)
    reply_code = next((int(part) for part in code.split() if part.isdecimal()), None)
    rule = _rule_of_status(status) or _rule_of_reply_code(reply_code)
    return "" if rule is None else rule.reason


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer. `digit` is its class: "2", "4" or "5". `status` is None if it tells no more than the class."""

    digit: str
    smtp_code: int | None
    status: str | None
    text: str

    @classmethod
    def of(cls, smtp_code: int | None, status: str | None, text: str) -> "_Answer":
        """Returns the answer with the status that the domain's server gave.

        A mail server that gives up may report a permanent status after temporary answers. Then the reply code counts.
        """
        digit = status[0] if status else str(smtp_code)[0]
        if status and smtp_code and digit in "45" and _contradicts(smtp_code, status, text):
            digit, status = str(smtp_code)[0], None
        if status is None or status.endswith(".0.0"):
            in_text = _STATUS_AFTER_REPLY_CODE.search(text)
            status = in_text[2] if in_text and in_text[1] == digit and not in_text[2].endswith(".0.0") else None
        return cls(digit, smtp_code, status, text)


def _contradicts(smtp_code: int, status: str, text: str) -> bool:
    """Returns whether the reply code is of another class, and no server gave both in one answer."""
    return str(smtp_code)[0] in "45" and str(smtp_code)[0] != status[0] and f"{smtp_code} {status}" not in text


def _rule_of_permanent_text(answer: _Answer, domain: str | None) -> ClassifierRule | None:
    if answer.smtp_code == NULL_MX_CODE:
        return NULL_MX
    match topic := answer_topic(answer.text):
        case AnswerTopic.NO_SUCH_DOMAIN:
            return _rule_of_unknown_domain(answer, domain)
        case AnswerTopic.MAILBOX_UNAVAILABLE:
            # With a status of policy, these words are only the standard text of code 550.
            return None if (answer.status or "").startswith("5.7.") else NO_MAILBOX
    return _PERMANENT_RULES.get(topic)


def _rule_of_unknown_domain(answer: _Answer, domain: str | None) -> ClassifierRule | None:
    """Returns the rule for a text that calls a domain unknown."""
    if domain is not None and names_other_host(answer.text, domain):
        return OTHER_HOST
    if answer.smtp_code is None or answer.status in _DOMAIN_STATUSES:
        return NO_DOMAIN
    # A server may only say that it is not responsible for the domain.
    return NO_MAILBOX if answer.status is None or answer.status.startswith("5.1.") else None


def _rule_of_temporary_text(answer: _Answer) -> ClassifierRule | None:
    """Returns the rule for a temporary failure. Without a reply code, no server of the domain wrote the text."""
    if answer.digit != "4":
        return None
    is_greylisted = answer.smtp_code in (450, 451) and answer.status == "4.7.1"
    if is_greylisted or _GREYLIST.search(answer.text):
        return GREYLISTED
    return None if answer.smtp_code is None else _TEMPORARY_RULES.get(answer_topic(answer.text))


def _rule_of_status(status: str | None) -> ClassifierRule | None:
    if status is None:
        return None
    return _BY_CODE.get(status) or _BY_CODE.get(f"{status.rpartition('.')[0]}.*")


def _rule_of_reply_code(smtp_code: int | None) -> ClassifierRule | None:
    if smtp_code is None:
        return None
    code = str(smtp_code)
    return _BY_CODE.get(code) or _BY_CODE.get(f"{code[:1]}**")


def _rule_of_class(digit: str) -> ClassifierRule:
    return _BY_CODE.get(f"{digit}.*", NOT_FINAL)
