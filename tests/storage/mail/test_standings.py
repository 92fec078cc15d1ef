"""What people are told: which rule, and what it saw."""

from datetime import UTC, datetime
from typing import Any

import pytest

from storage.mail.records import VerdictRule
from storage.mail.standings import domain_standing, standing

AT = 1_763_640_000_000  # 2025-11-20 12:00 UTC
HAND = {"blocked": False, "by": "op", "reason": "moved", "at": datetime(2025, 11, 20, tzinfo=UTC)}


def told(domain: Any = None, **found: Any) -> tuple[bool, str, str]:
    of_domain = domain_standing("example.org", domain)
    each = standing("Ann@example.org", "ann@example.org", {"success": 1, "last": AT, **found}, of_domain)
    return each.blocked, each.verdict.rule.value, each.verdict.detail


DEAD = {"dead": [AT, "550 5.1.2", 0, 0]}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({}, (False, "DELIVERABLE", "Nothing speaks against it.")),
        ({"soft": 1}, (False, "DELIVERABLE", "1 soft bounces since the last success, on too few days.")),
        (
            {"saw": ["HARD_BOUNCED", AT, "550 5.1.1", 0]},
            (True, "HARD_BOUNCED", "Bounced with 550 5.1.1 (no such mailbox) at 2025-11-20 12:00 UTC."),
        ),
        (
            {"saw": ["SOFT_BOUNCED_REPEATEDLY", AT, "552", 3]},
            (
                True,
                "SOFT_BOUNCED_REPEATEDLY",
                "Bounced softly on 3 days without a success, last with 552 (mailbox full) at 2025-11-20 12:00 UTC.",
            ),
        ),
        ({"saw": ["COMPLAINED", AT, "", 0]}, (True, "COMPLAINED", "The recipient complained at 2025-11-20 12:00 UTC.")),
        (
            {"unblocked": {"at": AT, "by": "op", "reason": "asked"}},
            (False, "UNBLOCKED", "Unblocked by op at 2025-11-20 12:00 UTC: asked"),
        ),
    ],
)
def test_the_verdict_of_an_address(found: dict[str, Any], expected: tuple[bool, str, str]) -> None:
    assert told(**found) == expected


def test_a_dead_domain_blocks_and_the_addresss_own_fault_is_told_first() -> None:
    assert told(DEAD)[:2] == (True, "DOMAIN_DEAD")
    assert "550 5.1.2 (no such domain)" in told(DEAD)[2]
    assert told(DEAD, saw=["HARD_BOUNCED", AT, "550 5.1.1", 0])[1] == "HARD_BOUNCED"


def test_what_was_set_by_hand_wins_over_the_rule() -> None:
    assert told({**DEAD, "hand": HAND})[:2] == (False, "DELIVERABLE")
    assert told({**DEAD, "hand": {**HAND, "blocked": True}}, saw=["HARD_BOUNCED", AT, "", 0])[1] == "BY_HAND"
    found = domain_standing("example.org", {**DEAD, "hand": HAND})
    assert found.verdict.rule is VerdictRule.BY_HAND
    assert found.verdict.detail == "Allowed by op at 2025-11-20 00:00 UTC: moved"


def test_a_domain_that_can_not_be_reached_says_for_how_long_and_how_many() -> None:
    found = domain_standing("example.org", {**DEAD, "dead": [AT, "", 3, 20]})
    assert (
        found.verdict.detail == "No connection on the last 3 days of mail, until 2025-11-20, for 20 messages or more."
    )
