"""What the address book is told and what it answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from storage.mail.epoch_time import from_epoch_ms


class DeliveryEventKind(StrEnum):
    """What happened to a message."""

    DELIVERY = "DELIVERY"
    COMPLAINT = "COMPLAINT"


class VerdictRule(StrEnum):
    """Which rule decided whether mail should be sent."""

    UNKNOWN_ADDRESS = "UNKNOWN_ADDRESS"
    DELIVERABLE = "DELIVERABLE"
    HARD_BOUNCED = "HARD_BOUNCED"
    SOFT_BOUNCED_REPEATEDLY = "SOFT_BOUNCED_REPEATEDLY"
    COMPLAINED = "COMPLAINED"
    DOMAIN_DEAD = "DOMAIN_DEAD"
    INVALID_ADDRESS = "INVALID_ADDRESS"
    UNBLOCKED = "UNBLOCKED"
    BY_HAND = "BY_HAND"


@dataclass(frozen=True, slots=True)
class DeliveryEvent:
    """What a mail server says became of one message to one address."""

    event_id: str
    address: str
    at: datetime
    kind: DeliveryEventKind = DeliveryEventKind.DELIVERY
    smtp_code: int | None = None
    enhanced_status: str | None = None
    diagnostic: str | None = None
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class RejectedDelivery:
    """An event that was not taken in: its place in the list, and why."""

    index: int
    event_id: str
    message: str


@dataclass(frozen=True, slots=True)
class RecordDeliveriesResult:
    """What became of a list of events."""

    accepted: int
    duplicates: int
    rejected: Sequence[RejectedDelivery]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The rule that decided, and what it saw."""

    rule: VerdictRule
    detail: str


@dataclass(frozen=True, slots=True)
class DomainStanding:
    """What is known of mail to a domain."""

    domain: str
    success: int
    soft_bounce: int
    hard_bounce: int
    blocked: bool
    verdict: Verdict

    @property
    def id(self) -> str:
        """The domain."""
        return self.domain


# Not frozen: a lookup makes a thousand, and freezing triples what one costs.
@dataclass(slots=True)
class AddressStanding:
    """What is known of mail to an address, as it was asked for."""

    address: str
    normalized: str | None
    blocked: bool
    verdict: Verdict
    success: int
    soft_bounce: int
    hard_bounce: int
    domain: DomainStanding | None
    last_at_ms: int | None

    @property
    def last_event_at(self) -> datetime | None:
        """When the last known event happened; few ask, and none of a thousand is computed for them."""
        return from_epoch_ms(self.last_at_ms) if self.last_at_ms else None


@dataclass(frozen=True, slots=True)
class BounceRate:
    """A UTC day's mail: `sent` had an outcome that counts, `bounced` of them softly or hard."""

    day: datetime
    domain: str | None
    sent: int
    bounced: int

    @property
    def rate(self) -> float:
        """Bounced of sent, 0 to 1; 0 without any mail."""
        return self.bounced / self.sent if self.sent else 0.0
