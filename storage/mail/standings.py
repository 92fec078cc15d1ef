"""Standings of addresses and domains, computed from their stored summaries, with a verdict in words. Pure; no I/O."""

from datetime import datetime
from functools import lru_cache
from typing import Any

from storage.mail.classifier import RULES
from storage.mail.decisions.policies import DEFAULT_POLICY, BlockingReason, MailPolicy
from storage.mail.documents import AddressSummary, DomainSummary, ManualSetting, Unblocking
from storage.mail.epoch_time import from_epoch_ms, midnight
from storage.mail.records import IMPORTED_HARD_BOUNCE, AddressStanding, DomainStanding, Verdict, VerdictRule
from storage.mail.unreachable import DEAD_DAYS, DEAD_MESSAGES

UNKNOWN = Verdict(VerdictRule.UNKNOWN_ADDRESS, "No mail to this address is known.")
UNKNOWN_DOMAIN = Verdict(VerdictRule.UNKNOWN_ADDRESS, "No mail to this domain is known.")
INVALID = Verdict(VerdictRule.INVALID_ADDRESS, "This is not a mail address.")
INVALID_DOMAIN = Verdict(VerdictRule.INVALID_ADDRESS, "This is not a domain that can receive mail.")
NO_OUTCOME = Verdict(VerdictRule.UNKNOWN_ADDRESS, "No delivery and no bounce is known.")
MAX_CACHED_VERDICTS = 10_000
_REASONS = {rule.code: rule.reason for rule in RULES}


def invalid_address_standing(written: str) -> AddressStanding:
    """Returns the standing of an invalid address."""
    return AddressStanding(written, None, True, INVALID, 0, 0, 0, None, None)


def address_standing(
    written: str,
    normalized: str,
    summary: AddressSummary | None,
    domain: DomainStanding,
    policy: MailPolicy = DEFAULT_POLICY,
    now: int = 0,
) -> AddressStanding:
    """Returns the standing of an address under a policy; `summary` is None for an unknown address.

    An address of a blocked domain is blocked. The verdict is the domain's if the address is not blocked itself, or if
    an operator blocked the domain.
    """
    if summary is None:
        verdict = domain.verdict if domain.blocked else UNKNOWN
        return AddressStanding(written, normalized, domain.blocked, verdict, 0, 0, 0, domain, None)
    get: Any = summary.get  # Bound once, since a lookup calls this function 1,000 times.
    reason: list[Any] | None = get("verdict") if policy is DEFAULT_POLICY else _reason(summary, policy, now)
    success, soft, hard = get("success", 0), get("soft", 0), get("hard", 0)
    if decision := get("decision"):
        blocked, verdict = True, _decision_verdict(decision)
    elif reason is not None:
        blocked, verdict = True, _blocking_verdict(success, soft, hard, *reason)
    elif unblocked := get("unblocked"):
        blocked, verdict = False, _unblocked_verdict(unblocked)
    else:
        blocked, verdict = False, _allowing_verdict(success, soft, hard)
    if domain.blocked and (not blocked or domain.verdict.rule is VerdictRule.BY_HAND):
        blocked, verdict = True, domain.verdict
    return AddressStanding(written, normalized, blocked, verdict, success, soft, hard, domain, get("last"))


def _reason(summary: AddressSummary, policy: MailPolicy, now: int) -> BlockingReason | None:
    """Returns why a policy blocks an address. Summaries of earlier releases have the default policy's reason only."""
    faults, ended = summary.get("faults", []), summary.get("ended")
    if not faults and not ended:
        return summary.get("verdict")
    reason = policy.blocking_reason(faults, now)
    return [VerdictRule.UNSUBSCRIBED, ended, "", 0] if reason is None and ended else reason


def _blocking_verdict(success: int, soft: int, hard: int, rule: str, at: int, code: str, days: int) -> Verdict:
    match rule:
        case VerdictRule.COMPLAINED:
            return Verdict(VerdictRule.COMPLAINED, f"The recipient complained at {_minute(at)}.")
        case VerdictRule.UNSUBSCRIBED:
            return Verdict(VerdictRule.UNSUBSCRIBED, f"The recipient ended mails by their link at {_minute(at)}.")
        case VerdictRule.HARD_BOUNCED if code == IMPORTED_HARD_BOUNCE:
            return Verdict(VerdictRule.HARD_BOUNCED, f"The imported book has a hard bounce at {_minute(at)}.")
        case VerdictRule.HARD_BOUNCED:
            detail = f"Bounced with {_meaning(code)} at {_minute(at)}. {_since_delivery(success, _hard(hard))}"
            return Verdict(VerdictRule.HARD_BOUNCED, detail)
    detail = f"Bounced softly on {days} days, last with {_meaning(code)} at {_minute(at)}. "
    return Verdict(VerdictRule.SOFT_BOUNCED_REPEATEDLY, detail + _since_delivery(success, _soft(soft)))


def _unblocked_verdict(unblocked: Unblocking) -> Verdict:
    detail = f"Unblocked by {unblocked['by']} at {_minute(unblocked['at'])}: {unblocked['reason']}"
    return Verdict(VerdictRule.UNBLOCKED, detail)


# Cached because addresses with the same numbers then share one verdict, which is completed once for each page.
@lru_cache(MAX_CACHED_VERDICTS)
def _allowing_verdict(success: int, soft: int, hard: int) -> Verdict:
    """Returns the verdict about an address that no rule blocks. Bounces count since the last delivery."""
    bounces = [text for count, text in ((soft, _soft(soft)), (hard, _hard(hard))) if count]
    if not success and not bounces:
        return NO_OUTCOME
    rule = VerdictRule.DELIVERABLE if success else VerdictRule.ONLY_BOUNCES
    return Verdict(
        rule, _since_delivery(success, f"{' and '.join(bounces)}, not enough to block" if bounces else "no bounce")
    )


def _since_delivery(success: int, bounces: str) -> str:
    return f"{success} delivered; since then {bounces}." if success else f"Nothing delivered; {bounces}."


def _soft(count: int) -> str:
    return f"{count} soft bounce{'' if count == 1 else 's'}"


def _hard(count: int) -> str:
    return f"{count} hard bounce{'' if count == 1 else 's'}"


def _minute(at: int | datetime) -> str:
    # Takes a quarter of the time of `strftime`.
    when = at if isinstance(at, datetime) else from_epoch_ms(at)
    return f"{when.isoformat(' ', 'minutes')[:16]} UTC"


def _meaning(code: str) -> str:
    """Returns a code with the meaning of its status: "550 5.1.1 (no such mailbox)". "no code" for an empty code."""
    reason = _REASONS.get(code.rpartition(" ")[2])
    return f"{code} ({reason})" if reason else code or "no code"


def invalid_domain_standing(written: str) -> DomainStanding:
    """Returns the standing of an invalid domain."""
    return DomainStanding(written, 0, 0, 0, True, INVALID_DOMAIN)


def domain_standing(domain: str, summary: DomainSummary | None, dead_day: int | None = None) -> DomainStanding:
    """Returns the standing of a domain; `summary` is None for an unknown domain.

    `dead_day` is the latest day that shows that the domain is unreachable, if it is. An operator's decision overrides
    the rules for dead domains.
    """
    if summary is None:
        return DomainStanding(domain, 0, 0, 0, False, UNKNOWN_DOMAIN)
    counts = summary.get("success", 0), summary.get("soft", 0), summary.get("hard", 0)
    blocked, verdict = _domain_decision(summary, dead_day) or (False, _allowing_domain_verdict(*counts))
    return DomainStanding(domain, *counts, blocked, verdict)


def _decision_verdict(decision: ManualSetting) -> Verdict:
    action = "Blocked" if decision["blocked"] else "Allowed"
    detail = f"{action} by {decision['by']} at {_minute(decision['at'])}: {decision['reason']}"
    return Verdict(VerdictRule.BY_HAND, detail)


def _domain_decision(summary: DomainSummary, dead_day: int | None) -> tuple[bool, Verdict] | None:
    """Returns what an operator or a rule decided; None if neither did."""
    if decision := summary.get("decision"):
        return decision["blocked"], _decision_verdict(decision)
    if reason := _dead_detail(summary.get("refusal"), dead_day):
        return True, Verdict(VerdictRule.DOMAIN_DEAD, reason)
    return None


@lru_cache(MAX_CACHED_VERDICTS)
def _allowing_domain_verdict(success: int, soft: int, hard: int) -> Verdict:
    if not success and not soft and not hard:
        return NO_OUTCOME
    rule = VerdictRule.DELIVERABLE if success else VerdictRule.ONLY_BOUNCES
    delivered = f"{success} delivered" if success else "Nothing delivered"
    return Verdict(rule, f"{delivered}; {_soft(soft)}, {_hard(hard)}. No rule blocks it.")


def _dead_detail(refusal: list[Any] | None, dead_day: int | None) -> str | None:
    """Returns why a domain is dead; None if it is not."""
    if refusal is not None:
        at, code = refusal
        return f"Answered {_meaning(code)} at {_minute(at)}."
    if dead_day is None:
        return None
    return (
        f"All connections failed on the last {DEAD_DAYS} days with connection attempts by a source that delivered "
        f"other mail that day (the latest was {midnight(dead_day):%Y-%m-%d}), for at least {DEAD_MESSAGES} messages."
    )
