"""An organization's policy: which bounces and complaints block an address, and for how long. Pure; no I/O.

The summary of an address holds its bounces by class, so that a lookup applies the policy of the moment (ADR 114).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from storage.mail.decisions.bounce_classes import BounceClass
from storage.mail.epoch_time import DAY_MS
from storage.mail.records import VerdictRule

MAX_HARD_BOUNCES = 10
MAX_SOFT_DAYS = 14
MAX_WINDOW_DAYS = 365

KEPT_DAYS = MAX_SOFT_DAYS
"""How many of the latest days of a class a summary holds. A policy can't ask for more."""


class BounceTreatment(StrEnum):
    """How a policy treats bounces of a class."""

    HARD = "HARD"
    """They block at the policy's number of hard bounces."""

    SOFT = "SOFT"
    """They block on the policy's number of days."""

    IGNORED = "IGNORED"
    """They never block."""


DEFAULT_TREATMENTS: Mapping[BounceClass, BounceTreatment] = MappingProxyType(
    {
        BounceClass.NO_MAILBOX: BounceTreatment.HARD,
        BounceClass.NO_DOMAIN: BounceTreatment.HARD,
        BounceClass.MOVED: BounceTreatment.HARD,
        BounceClass.DISABLED: BounceTreatment.HARD,
        BounceClass.IMPORTED_HARD: BounceTreatment.HARD,
        BounceClass.FULL: BounceTreatment.SOFT,
        BounceClass.EXPIRED: BounceTreatment.SOFT,
        BounceClass.TEMPORARY: BounceTreatment.SOFT,
        BounceClass.IMPORTED_SOFT: BounceTreatment.SOFT,
    }
)

COMPLAINT = "COMPLAINT"
"""Stands in faults for the class of a bounce."""

Fault = list[Any]
"""An address's bounces of one class since the latest delivery: [class, number, latest instant, its code, days].

A complaint, which a delivery does not clear, is one too: [`COMPLAINT`, 1, latest instant, "", days].
"""

BlockingReason = list[Any]
"""Why an address is blocked: [`VerdictRule`, instant, code, number of days with soft bounces]."""


@dataclass(frozen=True, slots=True)
class MailPolicy:
    """The rules that block addresses of an organization."""

    treatments: Mapping[BounceClass, BounceTreatment] = field(default_factory=lambda: DEFAULT_TREATMENTS)
    hard_bounces: int = 1
    """How many hard bounces since the latest delivery block."""

    soft_bounce_days: int = 3
    """On how many UTC days soft bounces since the latest delivery block."""

    soft_window_days: int | None = None
    """How many of the last UTC days count, today included; None for all."""

    soft_block_days: int | None = None
    """How many days after its last soft bounce a block by soft bounces ends; None if it does not end by itself."""

    complaints_block: bool = True

    def blocking_reason(self, faults: Sequence[Fault], now: int) -> BlockingReason | None:
        """Returns the rule that blocks an address and its evidence; None if no rule blocks.

        `now` is in milliseconds since the Unix epoch.
        """
        complaint = next((each[2] for each in faults if each[0] == COMPLAINT), 0)
        if complaint and self.complaints_block:
            return [VerdictRule.COMPLAINED, complaint, "", 0]
        hards = [each for each in faults if self.treatments.get(each[0]) is BounceTreatment.HARD]
        if sum(each[1] for each in hards) >= self.hard_bounces:
            return [VerdictRule.HARD_BOUNCED, *_latest(hards), 0]
        softs = [each for each in faults if self.treatments.get(each[0]) is BounceTreatment.SOFT]
        return self._soft_reason(softs, now)

    def _soft_reason(self, softs: list[Fault], now: int) -> BlockingReason | None:
        first_day = 0 if self.soft_window_days is None else now // DAY_MS - self.soft_window_days + 1
        days = {day for each in softs for day in each[4] if day >= first_day}
        if len(days) < self.soft_bounce_days:
            return None
        at, code = _latest(softs)
        if self.soft_block_days is not None and at + self.soft_block_days * DAY_MS <= now:
            return None
        return [VerdictRule.SOFT_BOUNCED_REPEATEDLY, at, code, len(days)]


DEFAULT_POLICY = MailPolicy()


@dataclass(frozen=True, slots=True)
class BounceClassTreatment:
    """How a policy treats a class of bounces."""

    bounce_class: BounceClass
    treatment: BounceTreatment


@dataclass(frozen=True, slots=True)
class MailPolicyVersion:
    """A version of an organization's policy, and who set it. Version 0 is the policy of organizations that set none."""

    organization_id: str
    version: int
    policy: MailPolicy
    set_by_id: str | None = None
    reason: str | None = None
    set_at: datetime | None = None
    keep_addresses: bool = False
    """Whether addresses that bounce or are blocked by hand are kept readable."""

    @property
    def treatments(self) -> list[BounceClassTreatment]:
        """How each class of bounces is treated."""
        return [BounceClassTreatment(*each) for each in self.policy.treatments.items()]

    @property
    def hard_bounces(self) -> int:
        """How many hard bounces block."""
        return self.policy.hard_bounces

    @property
    def soft_bounce_days(self) -> int:
        """On how many days soft bounces block."""
        return self.policy.soft_bounce_days

    @property
    def soft_window_days(self) -> int | None:
        """How many of the last days count; None for all."""
        return self.policy.soft_window_days

    @property
    def soft_block_days(self) -> int | None:
        """How many days after its last soft bounce a block ends; None if it does not end by itself."""
        return self.policy.soft_block_days

    @property
    def complaints_block(self) -> bool:
        """Whether a complaint blocks."""
        return self.policy.complaints_block


def join_faults(faults: Iterable[Fault]) -> list[Fault]:
    """Returns faults with one entry for each class, in order of the classes."""
    joined: dict[str, Fault] = {}
    for class_, count, at, code, days in faults:
        fault = joined.setdefault(class_, [str(class_), 0, at, code, set()])
        fault[1] += count
        fault[2:4] = max(fault[2:4], [at, code])
        fault[4].update(days)
    return [[*fault[:4], sorted(fault[4])] for _, fault in sorted(joined.items())]


def stored_faults(faults: Iterable[Fault]) -> list[Fault]:
    """Returns faults with the latest days only, as summaries hold them."""
    return [[*fault[:4], fault[4][-KEPT_DAYS:]] for fault in faults]


def _latest(faults: Iterable[Fault]) -> tuple[int, str]:
    """Returns the latest instant and its code. Imported soft bounces have no code, and give way to others."""
    latest = max(faults, key=lambda fault: (fault[3] != "", fault[2], fault[3]))
    return latest[2], latest[3]
