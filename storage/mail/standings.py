"""From the book's documents to standings: which rule decides, and how it is told to people. Pure; no I/O."""

from typing import Any

from storage.mail.addresses import Address
from storage.mail.classifier import RULES
from storage.mail.facts import Facts
from storage.mail.ledger import instant
from storage.mail.records import AddressStanding, DomainStanding, Verdict, VerdictRule

READ = dict.fromkeys(("domain", "success", "soft", "hard", "last", "saw", "unblocked", "moved"), 1)
"""What a lookup reads of an address."""

READ_OF_DOMAIN = dict.fromkeys(("domain", "success", "soft", "hard", "dead", "hand"), 1)

UNKNOWN = Verdict(VerdictRule.UNKNOWN_ADDRESS, "No mail to this address is known.")
UNKNOWN_DOMAIN = Verdict(VerdictRule.UNKNOWN_ADDRESS, "No mail to this domain is known.")
INVALID = Verdict(VerdictRule.INVALID_ADDRESS, "This is no mail address.")
INVALID_DOMAIN = Verdict(VerdictRule.INVALID_ADDRESS, "Mail can't be sent to this.")
DELIVERABLE = Verdict(VerdictRule.DELIVERABLE, "Nothing speaks against it.")
_REASONS = {rule.code: rule.reason for rule in RULES}


def invalid(asked: str) -> AddressStanding:
    """The standing of what is no address."""
    return AddressStanding(asked, None, True, INVALID, 0, 0, 0, None, None)


def standing(asked: str, address: Address, found: Facts | None, domain: DomainStanding) -> AddressStanding:
    """The standing of an address. What blocks its domain blocks it too."""
    if found is None:
        blocked, verdict = _with_domain(domain, False, UNKNOWN)
        return AddressStanding(asked, address.text, blocked, verdict, 0, 0, 0, domain, None)
    blocked, verdict = _with_domain(domain, found["saw"] is not None, _verdict(found))
    last = found["last"]
    return AddressStanding(
        address=asked,
        normalized=address.text,
        blocked=blocked,
        verdict=verdict,
        success=found["success"],
        soft_bounce=found["soft"],
        hard_bounce=found["hard"],
        domain=domain,
        last_event_at=instant(last) if last else None,
    )


def _with_domain(domain: DomainStanding, blocked: bool, verdict: Verdict) -> tuple[bool, Verdict]:
    if domain.blocked and (not blocked or domain.verdict.rule is VerdictRule.BY_HAND):
        return True, domain.verdict
    return blocked, verdict


def _verdict(found: Facts) -> Verdict:
    saw: list[Any] | None = found["saw"]
    if saw is None:
        return _not_blocked(found)
    rule, at, code, days = saw
    when = f"{instant(at):%Y-%m-%d %H:%M} UTC"
    match VerdictRule(rule):
        case VerdictRule.COMPLAINED:
            return Verdict(VerdictRule.COMPLAINED, f"The recipient complained at {when}.")
        case VerdictRule.HARD_BOUNCED:
            return Verdict(VerdictRule.HARD_BOUNCED, f"Bounced with {_told(code)} at {when}.")
    detail = f"Bounced softly on {days} days without a success, last with {_told(code)} at {when}."
    return Verdict(VerdictRule.SOFT_BOUNCED_REPEATEDLY, detail)


def _not_blocked(found: Facts) -> Verdict:
    if unblocked := found.get("unblocked"):
        detail = (
            f"Unblocked by {unblocked['by']} at {instant(unblocked['at']):%Y-%m-%d %H:%M} UTC: {unblocked['reason']}"
        )
        return Verdict(VerdictRule.UNBLOCKED, detail)
    if found["soft"]:
        return Verdict(
            VerdictRule.DELIVERABLE, f"{found['soft']} soft bounces since the last success, on too few days."
        )
    return DELIVERABLE


def _told(code: str) -> str:
    """A code with what it means: "550 5.1.1 (no such mailbox)"."""
    reason = _REASONS.get(code.rpartition(" ")[2])
    return f"{code} ({reason})" if reason else code or "no code"


def invalid_domain(asked: str) -> DomainStanding:
    """The standing of what is no domain."""
    return DomainStanding(asked, 0, 0, 0, True, INVALID_DOMAIN)


def domain_standing(domain: str, found: Facts | None) -> DomainStanding:
    """The standing of a domain. What was set by hand decides."""
    if found is None:
        return DomainStanding(domain, 0, 0, 0, False, UNKNOWN_DOMAIN)
    blocked, verdict = _domain_verdict(found)
    return DomainStanding(domain, found["success"], found["soft"], found["hard"], blocked, verdict)


def _domain_verdict(found: Facts) -> tuple[bool, Verdict]:
    if hand := found.get("hand"):
        what = "Blocked" if hand["blocked"] else "Allowed"
        detail = f"{what} by {hand['by']} at {hand['at']:%Y-%m-%d %H:%M} UTC: {hand['reason']}"
        return hand["blocked"], Verdict(VerdictRule.BY_HAND, detail)
    dead: list[Any] | None = found["dead"]
    if dead is None:
        return False, DELIVERABLE
    at, code, days, messages = dead
    if days:
        until = f"{instant(at):%Y-%m-%d}"
        detail = f"No connection on the last {days} days of mail, until {until}, for {messages} messages or more."
    else:
        detail = f"Answered {_told(code)} at {instant(at):%Y-%m-%d %H:%M} UTC."
    return True, Verdict(VerdictRule.DOMAIN_DEAD, detail)
