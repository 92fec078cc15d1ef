"""Records of the address book: delivery events, standings, verdicts and rates."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from storage.mail.epoch_time import from_epoch_ms


class DeliveryEventKind(StrEnum):
    """Kind of a delivery event."""

    DELIVERY = "DELIVERY"
    COMPLAINT = "COMPLAINT"


class VerdictRule(StrEnum):
    """The rule that decided whether an address or a domain should get mail."""

    UNKNOWN_ADDRESS = "UNKNOWN_ADDRESS"
    DELIVERABLE = "DELIVERABLE"
    ONLY_BOUNCES = "ONLY_BOUNCES"
    HARD_BOUNCED = "HARD_BOUNCED"
    SOFT_BOUNCED_REPEATEDLY = "SOFT_BOUNCED_REPEATEDLY"
    COMPLAINED = "COMPLAINED"
    UNSUBSCRIBED = "UNSUBSCRIBED"
    DOMAIN_DEAD = "DOMAIN_DEAD"
    INVALID_ADDRESS = "INVALID_ADDRESS"
    UNBLOCKED = "UNBLOCKED"
    BY_HAND = "BY_HAND"


IMPORTED_HARD_BOUNCE = "an imported hard bounce"
"""Stands in a summary for the code of a hard bounce that was imported, since imported books have no codes."""


@dataclass(frozen=True, slots=True)
class DeliveryEvent:
    """A mail server's report about one message to one address."""

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
    """A rejected event: its index in the list, and the reason."""

    index: int
    event_id: str
    message: str


@dataclass(frozen=True, slots=True)
class RecordDeliveriesResult:
    """Result of recording a list of events."""

    accepted: int
    duplicates: int
    rejected: Sequence[RejectedDelivery]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The rule that decided whether mail should be sent, and the reason in words."""

    rule: VerdictRule
    detail: str


@dataclass(frozen=True, slots=True)
class DomainStanding:
    """The counters of mail to a domain, and whether the domain is blocked."""

    domain: str
    success: int
    soft_bounce: int
    hard_bounce: int
    blocked: bool
    verdict: Verdict

    @property
    def id(self) -> str:
        """The domain, which is also the id."""
        return self.domain


# Not frozen: a lookup creates 1,000 standings, and a frozen dataclass takes three times as long to create.
@dataclass(slots=True)
class AddressStanding:
    """The counters of mail to an address, and whether the address is blocked. `address` is the requested spelling."""

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
        """When the latest event happened. Computed on request, since few clients select it."""
        return from_epoch_ms(self.last_at_ms) if self.last_at_ms else None


@dataclass(frozen=True, slots=True)
class BounceRate:
    """The mail of a UTC day to a domain, or to all domains."""

    day: datetime
    """Start of the day."""

    domain: str | None
    """The domain; None for all domains."""

    sent: int
    """Number of messages with an outcome that counts."""

    bounced: int
    """Number of these messages that bounced, softly or hard."""

    complaints: int | None = None
    """Number of complaints of recipients; None for a domain, for which they are not counted."""

    @property
    def rate(self) -> float:
        """Share of bounced messages, 0 to 1; 0 without mail."""
        return self.bounced / self.sent if self.sent else 0.0

    @property
    def complaint_rate(self) -> float | None:
        """Complaints for each message that was sent that day; 0 without mail, None for a domain."""
        if self.complaints is None:
            return None
        return self.complaints / self.sent if self.sent else 0.0
