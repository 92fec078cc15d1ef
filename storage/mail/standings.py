"""From the book's documents to standings: which rule decides, and how it is told to people. Pure; no I/O."""

from datetime import datetime
from typing import Any

from storage.mail.classifier import RULES
from storage.mail.counters import Facts
from storage.mail.epoch_time import from_epoch_ms
from storage.mail.records import AddressStanding, DomainStanding, Verdict, VerdictRule

UNKNOWN = Verdict(VerdictRule.UNKNOWN_ADDRESS, "No mail to this address is known.")
UNKNOWN_DOMAIN = Verdict(VerdictRule.UNKNOWN_ADDRESS, "No mail to this domain is known.")
INVALID = Verdict(VerdictRule.INVALID_ADDRESS, "This is no mail address.")
INVALID_DOMAIN = Verdict(VerdictRule.INVALID_ADDRESS, "Mail can't be sent to this.")
DELIVERABLE = Verdict(VerdictRule.DELIVERABLE, "Nothing speaks against it.")
_REASONS = {rule.code: rule.reason for rule in RULES}


def invalid(asked: str) -> AddressStanding:
    """The standing of what is no address."""
    return AddressStanding(asked, None, True, INVALID, 0, 0, 0, None, None)


def standing(asked: str, normalized: str, told: Facts | None, domain: DomainStanding) -> AddressStanding:
    """The standing of an address; `told` is None where the book has none. What blocks its domain blocks it too."""
    if told is None:
        verdict = domain.verdict if domain.blocked else UNKNOWN
        return AddressStanding(asked, normalized, domain.blocked, verdict, 0, 0, 0, domain, None)
    get = told.get
    saw: list[Any] | None = get("saw")
    blocked, verdict = (False, _not_blocked(told)) if saw is None else (True, _blocking(*saw))
    if domain.blocked and (not blocked or domain.verdict.rule is VerdictRule.BY_HAND):
        blocked, verdict = True, domain.verdict
    success, soft, hard = get("success", 0), get("soft", 0), get("hard", 0)
    return AddressStanding(asked, normalized, blocked, verdict, success, soft, hard, domain, get("last"))


def _blocking(rule: str, at: int, code: str, days: int) -> Verdict:
    match rule:
        case VerdictRule.COMPLAINED:
            return Verdict(VerdictRule.COMPLAINED, f"The recipient complained at {_minute(at)}.")
        case VerdictRule.HARD_BOUNCED:
            return Verdict(VerdictRule.HARD_BOUNCED, f"Bounced with {_meaning(code)} at {_minute(at)}.")
    detail = f"Bounced softly on {days} days without a success, last with {_meaning(code)} at {_minute(at)}."
    return Verdict(VerdictRule.SOFT_BOUNCED_REPEATEDLY, detail)


def _not_blocked(told: Facts) -> Verdict:
    if unblocked := told.get("unblocked"):
        detail = f"Unblocked by {unblocked['by']} at {_minute(unblocked['at'])}: {unblocked['reason']}"
        return Verdict(VerdictRule.UNBLOCKED, detail)
    if soft := told.get("soft"):
        return Verdict(VerdictRule.DELIVERABLE, f"{soft} soft bounces since the last success, on too few days.")
    return DELIVERABLE


def _minute(at: int | datetime) -> str:
    # strftime takes four times as long.
    when = at if isinstance(at, datetime) else from_epoch_ms(at)
    return f"{when.isoformat(' ', 'minutes')[:16]} UTC"


def _meaning(code: str) -> str:
    """A code with what it means: "550 5.1.1 (no such mailbox)"."""
    reason = _REASONS.get(code.rpartition(" ")[2])
    return f"{code} ({reason})" if reason else code or "no code"


def invalid_domain(asked: str) -> DomainStanding:
    """The standing of what is no domain."""
    return DomainStanding(asked, 0, 0, 0, True, INVALID_DOMAIN)


def domain_standing(domain: str, told: Facts | None) -> DomainStanding:
    """The standing of a domain; `told` is None where the book has none. What was set by hand decides."""
    if told is None:
        return DomainStanding(domain, 0, 0, 0, False, UNKNOWN_DOMAIN)
    blocked, verdict = _domain_verdict(told)
    success, soft, hard = told.get("success", 0), told.get("soft", 0), told.get("hard", 0)
    return DomainStanding(domain, success, soft, hard, blocked, verdict)


def _domain_verdict(told: Facts) -> tuple[bool, Verdict]:
    if hand := told.get("hand"):
        what = "Blocked" if hand["blocked"] else "Allowed"
        detail = f"{what} by {hand['by']} at {_minute(hand['at'])}: {hand['reason']}"
        return hand["blocked"], Verdict(VerdictRule.BY_HAND, detail)
    dead: list[Any] | None = told.get("dead")
    if dead is None:
        return False, DELIVERABLE
    at, code, days, messages = dead
    if days:
        until = f"{from_epoch_ms(at):%Y-%m-%d}"
        detail = f"No connection on the last {days} days of mail, until {until}, for {messages} messages or more."
    else:
        detail = f"Answered {_meaning(code)} at {_minute(at)}."
    return True, Verdict(VerdictRule.DOMAIN_DEAD, detail)
