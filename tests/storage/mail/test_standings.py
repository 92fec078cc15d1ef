"""The verdict of a standing, and the sentence that explains it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from storage.mail.records import IMPORTED_HARD_BOUNCE, VerdictRule
from storage.mail.standings import address_standing, domain_standing

AT = 1_763_640_000_000  # 2025-11-20 12:00 UTC
OPERATOR_DECISION = {"blocked": False, "by": "op", "reason": "moved", "at": datetime(2025, 11, 20, tzinfo=UTC)}


def verdict(domain: Any = None, **summary_fields: Any) -> tuple[bool, str, str]:
    """Returns whether an address with this summary is blocked, the rule, and the detail."""
    standing_of_domain = domain_standing("example.org", domain)
    summary: Any = {"success": 1, "last": AT, **summary_fields}
    standing = address_standing("Ann@example.org", "ann@example.org", summary, standing_of_domain)
    return standing.blocked, standing.verdict.rule.value, standing.verdict.detail


DEAD = {"refusal": [AT, "550 5.1.2"]}


@pytest.mark.parametrize(
    ("summary_fields", "expected"),
    [
        ({}, (False, "DELIVERABLE", "1 delivered; since then no bounce.")),
        ({"soft": 1}, (False, "DELIVERABLE", "1 delivered; since then 1 soft bounce, not enough to block.")),
        (
            {"success": 0, "soft": 2},
            (False, "ONLY_BOUNCES", "Nothing delivered; 2 soft bounces, not enough to block."),
        ),
        (
            {"success": 0, "soft": 1, "hard": 1},
            (False, "ONLY_BOUNCES", "Nothing delivered; 1 soft bounce and 1 hard bounce, not enough to block."),
        ),
        ({"success": 0}, (False, "UNKNOWN_ADDRESS", "No delivery and no bounce is known.")),
        (
            {"hard": 1, "verdict": ["HARD_BOUNCED", AT, "550 5.1.1", 0]},
            (
                True,
                "HARD_BOUNCED",
                "Bounced with 550 5.1.1 (no such mailbox) at 2025-11-20 12:00 UTC. "
                "1 delivered; since then 1 hard bounce.",
            ),
        ),
        (
            {"verdict": ["HARD_BOUNCED", AT, IMPORTED_HARD_BOUNCE, 0]},
            (True, "HARD_BOUNCED", "The imported book has a hard bounce at 2025-11-20 12:00 UTC."),
        ),
        (
            {"success": 0, "soft": 4, "verdict": ["SOFT_BOUNCED_REPEATEDLY", AT, "552", 3]},
            (
                True,
                "SOFT_BOUNCED_REPEATEDLY",
                "Bounced softly on 3 days, last with 552 (mailbox full) at 2025-11-20 12:00 UTC. "
                "Nothing delivered; 4 soft bounces.",
            ),
        ),
        (
            {"verdict": ["COMPLAINED", AT, "", 0]},
            (True, "COMPLAINED", "The recipient complained at 2025-11-20 12:00 UTC."),
        ),
        (
            {"unblocked": {"at": AT, "by": "op", "reason": "asked"}},
            (False, "UNBLOCKED", "Unblocked by op at 2025-11-20 12:00 UTC: asked"),
        ),
    ],
)
def test_standing_of_address_gives_verdict(summary_fields: Any, expected: tuple[bool, str, str]) -> None:
    assert verdict(**summary_fields) == expected


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        (
            {"hard": 54},
            ("ONLY_BOUNCES", "Nothing delivered; 0 soft bounces, 54 hard bounces. No rule blocks it."),
        ),
        (
            {"success": 9, "soft": 1, "hard": 2},
            ("DELIVERABLE", "9 delivered; 1 soft bounce, 2 hard bounces. No rule blocks it."),
        ),
        ({}, ("UNKNOWN_ADDRESS", "No delivery and no bounce is known.")),
    ],
)
def test_standing_of_domain_has_its_numbers(summary: Any, expected: tuple[str, str]) -> None:
    standing = domain_standing("example.org", summary)
    assert (standing.blocked, standing.verdict.rule.value, standing.verdict.detail) == (False, *expected)


def test_own_verdict_takes_precedence_over_dead_domain() -> None:
    assert verdict(DEAD)[:2] == (True, "DOMAIN_DEAD")
    assert "550 5.1.2 (no such domain)" in verdict(DEAD)[2]
    assert verdict(DEAD, verdict=["HARD_BOUNCED", AT, "550 5.1.1", 0])[1] == "HARD_BOUNCED"


def test_operator_decision_overrides_rule() -> None:
    assert verdict({**DEAD, "decision": OPERATOR_DECISION})[:2] == (False, "DELIVERABLE")
    assert (
        verdict({**DEAD, "decision": {**OPERATOR_DECISION, "blocked": True}}, verdict=["HARD_BOUNCED", AT, "", 0])[1]
        == "BY_HAND"
    )
    standing = domain_standing("example.org", {**DEAD, "decision": OPERATOR_DECISION})
    assert standing.verdict.rule is VerdictRule.BY_HAND
    assert standing.verdict.detail == "Allowed by op at 2025-11-20 00:00 UTC: moved"


def test_unreachable_domain_detail_gives_days_and_messages() -> None:
    summary: Any = {"failed_days": []}
    standing = domain_standing("example.org", summary, dead_day=20_412)
    assert (standing.blocked, standing.verdict.rule) == (True, VerdictRule.DOMAIN_DEAD)
    assert standing.verdict.detail == (
        "All connections failed on the last 3 days with connection attempts by a source that delivered other mail that "
        "day (the latest was 2025-11-20), for at least 20 messages."
    )
    assert not domain_standing("example.org", summary).blocked
    summary["decision"] = OPERATOR_DECISION
    assert not domain_standing("example.org", summary, dead_day=20_412).blocked
