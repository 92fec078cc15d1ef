"""A policy decides what blocks an address, and when a block ends by itself."""

from typing import Any

import pytest

from storage.mail.decisions.bounce_classes import BounceClass
from storage.mail.decisions.policies import (
    COMPLAINT,
    DEFAULT_POLICY,
    DEFAULT_TREATMENTS,
    KEPT_DAYS,
    BounceTreatment,
    Fault,
    MailPolicy,
    join_faults,
    stored_faults,
)
from storage.mail.epoch_time import DAY_MS

TODAY = 20_000
NOW = TODAY * DAY_MS + DAY_MS // 2


def fault(class_: BounceClass, *days_ago: int, code: str = "552") -> Fault:
    """Returns a fault with one bounce at noon of each day."""
    days = sorted(TODAY - each for each in days_ago)
    return [class_.value, len(days), days[-1] * DAY_MS + DAY_MS // 2, code, days]


def rule(policy: MailPolicy, *faults: Fault) -> str | None:
    reason = policy.blocking_reason(faults, NOW)
    return reason and str(reason[0])


FULL_ON_THREE_DAYS = fault(BounceClass.FULL, 0, 1, 2)
GONE = fault(BounceClass.NO_MAILBOX, 4, code="550 5.1.1")


def test_default_policy_blocks_hard_bounce_and_three_soft_days() -> None:
    assert rule(DEFAULT_POLICY) is None
    assert rule(DEFAULT_POLICY, GONE) == "HARD_BOUNCED"
    assert rule(DEFAULT_POLICY, fault(BounceClass.FULL, 0, 1)) is None
    assert rule(DEFAULT_POLICY, fault(BounceClass.FULL, 0, 1), fault(BounceClass.TEMPORARY, 1)) is None
    assert (
        rule(DEFAULT_POLICY, fault(BounceClass.FULL, 0, 1), fault(BounceClass.EXPIRED, 9)) == "SOFT_BOUNCED_REPEATEDLY"
    )
    assert rule(DEFAULT_POLICY, [COMPLAINT, 1, NOW, "", [TODAY]], GONE) == "COMPLAINED"


@pytest.mark.parametrize(("days", "blocks"), [(2, True), (3, True), (4, False)])
def test_number_of_days_with_soft_bounces_decides(days: int, blocks: bool) -> None:
    assert (rule(MailPolicy(soft_bounce_days=days), FULL_ON_THREE_DAYS) is not None) == blocks


@pytest.mark.parametrize(("bounces", "blocks"), [(1, True), (2, True), (3, False)])
def test_number_of_hard_bounces_decides(bounces: int, blocks: bool) -> None:
    twice = [GONE, fault(BounceClass.MOVED, 1, code="550 5.1.6")]
    assert (rule(MailPolicy(hard_bounces=bounces), *twice) is not None) == blocks


@pytest.mark.parametrize(("window", "blocks"), [(3, True), (2, False)])
def test_days_before_the_window_do_not_count(window: int, blocks: bool) -> None:
    policy = MailPolicy(soft_bounce_days=3, soft_window_days=window)
    assert (rule(policy, FULL_ON_THREE_DAYS) is not None) == blocks


@pytest.mark.parametrize(("days", "blocks"), [(6, True), (5, False)])
def test_block_by_soft_bounces_ends_by_itself(days: int, blocks: bool) -> None:
    """The last bounce is five days old to the millisecond."""
    bounces = fault(BounceClass.FULL, 5, 6, 7)
    assert (rule(MailPolicy(soft_block_days=days), bounces) is not None) == blocks


def test_treatment_of_a_class_decides() -> None:
    def policy(class_: BounceClass, treatment: BounceTreatment) -> MailPolicy:
        return MailPolicy({**DEFAULT_TREATMENTS, class_: treatment})

    assert rule(policy(BounceClass.FULL, BounceTreatment.IGNORED), FULL_ON_THREE_DAYS) is None
    assert rule(policy(BounceClass.FULL, BounceTreatment.HARD), fault(BounceClass.FULL, 0)) == "HARD_BOUNCED"
    soft_gone = policy(BounceClass.NO_MAILBOX, BounceTreatment.SOFT)
    assert rule(soft_gone, GONE) is None
    assert rule(soft_gone, GONE, fault(BounceClass.FULL, 0, 1)) == "SOFT_BOUNCED_REPEATEDLY"
    assert rule(MailPolicy(complaints_block=False), [COMPLAINT, 1, NOW, "", [TODAY]]) is None


def test_class_of_a_newer_release_never_blocks() -> None:
    assert rule(DEFAULT_POLICY, ["LATER", 5, NOW, "550", [TODAY]]) is None


def test_reason_names_the_latest_answer_and_its_days() -> None:
    faults = [fault(BounceClass.TEMPORARY, 1, code="450 4.2.1"), fault(BounceClass.IMPORTED_SOFT, 0, code=""), GONE]
    soft = MailPolicy({**DEFAULT_TREATMENTS, BounceClass.NO_MAILBOX: BounceTreatment.SOFT})
    reason: Any = soft.blocking_reason(faults, NOW)
    assert reason[2:] == ["450 4.2.1", 3], "An imported bounce has no answer to name."


def test_faults_of_one_class_are_joined() -> None:
    full = BounceClass.FULL
    joined = join_faults([[full, 2, 50, "552", [1]], [full, 1, 90, "452 4.2.2", [3]], [full, 1, 70, "552", [3]]])
    assert joined == [["FULL", 4, 90, "452 4.2.2", [1, 3]]]


def test_stored_faults_keep_the_latest_days() -> None:
    (stored,) = stored_faults([["FULL", 99, 5, "552", list(range(50))]])
    assert stored == ["FULL", 99, 5, "552", list(range(50 - KEPT_DAYS, 50))]
