"""A reference model of the address book: computes standings from all events at once, without batches or storage."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from storage.mail.classifier import ClassifierRule, DeliveryOutcome, classify
from storage.mail.records import DeliveryEvent, DeliveryEventKind

DAY_S = 86_400


@dataclass
class StandingModel:
    """Counters and block of an address or a domain."""

    success: int = 0
    soft: int = 0
    hard: int = 0
    blocked: bool = False


@dataclass
class AddressBookModel:
    """All events that were added. Only the first event with an id counts."""

    hard_bounces: int = 1
    """How many hard bounces block an address."""

    soft_days: int = 3
    """On how many days soft bounces block an address."""

    events: dict[str, DeliveryEvent] = field(default_factory=dict)
    events_by_address: dict[str, list[DeliveryEvent]] = field(default_factory=lambda: defaultdict(list))
    events_by_domain: dict[str, list[DeliveryEvent]] = field(default_factory=lambda: defaultdict(list))
    source_days: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Day and source of each event, by event id."""

    delivered_days: set[tuple[int, str]] = field(default_factory=set)
    """Days on which a source delivered mail to a server."""

    def add_events(self, events: Iterable[DeliveryEvent], source: str = "mta") -> None:
        for event in events:
            if event.event_id not in self.events:
                self.events[event.event_id] = event
                self.source_days[event.event_id] = message_and_day(event)[1], source
                if outcome(event) is DeliveryOutcome.DELIVERED and event.smtp_code is not None:
                    self.delivered_days.add(self.source_days[event.event_id])
                self.events_by_address[event.address].append(event)
                self.events_by_domain[event.address.partition("@")[2]].append(event)

    def address_standing(self, address: str) -> StandingModel:
        events = self.events_by_address[address]
        delivered_at = max((event.at for event in events if outcome(event) is DeliveryOutcome.DELIVERED), default=None)
        current = [event for event in events if delivered_at is None or event.at >= delivered_at]
        softs = {message_and_day(event) for event in current if outcome(event) is DeliveryOutcome.SOFT}
        standing = StandingModel(
            count(events, DeliveryOutcome.DELIVERED), len(softs), count(current, DeliveryOutcome.HARD)
        )
        has_complaint = count(events, DeliveryOutcome.COMPLAINT) > 0
        has_hard_bounces = standing.hard >= self.hard_bounces
        standing.blocked = has_complaint or has_hard_bounces or len({day for _, day in softs}) >= self.soft_days
        return standing

    def domain_standing(self, domain: str) -> StandingModel:
        events = self.events_by_domain[domain]
        softs = {
            (event.address, *message_and_day(event))
            for event in events
            if outcome(event) in (DeliveryOutcome.SOFT, DeliveryOutcome.DOMAIN)
        }
        standing = StandingModel(
            count(events, DeliveryOutcome.DELIVERED), len(softs), count(events, DeliveryOutcome.HARD)
        )
        has_no_mail_service = any(rule(event).blocks_domain for event in events)
        standing.blocked = has_no_mail_service or is_unreachable(
            each for each in events if is_answer(each) or self.source_days[each.event_id] in self.delivered_days
        )
        return standing

    @property
    def addresses(self) -> list[str]:
        return sorted(self.events_by_address)

    @property
    def domains(self) -> list[str]:
        return sorted(self.events_by_domain)


def is_unreachable(events: Iterable[DeliveryEvent]) -> bool:
    """Returns whether every connection failed on the last three days of events, for at least 20 messages."""
    by_day: dict[int, list[DeliveryEvent]] = {}
    for event in events:
        if is_failed_connection(event) or is_answer(event):
            by_day.setdefault(message_and_day(event)[1], []).append(event)
    last_three_days = [event for day in sorted(by_day)[-3:] for event in by_day[day]]
    failed = [event for event in last_three_days if is_failed_connection(event)]
    messages = {event.message_id or event.event_id for event in failed}
    return len(by_day) >= 3 and len(failed) == len(last_three_days) and len(messages) >= 20


def is_failed_connection(event: DeliveryEvent) -> bool:
    if event.kind is DeliveryEventKind.COMPLAINT or event.smtp_code is not None:
        return False
    return event.enhanced_status in (None, "4.4.1", "4.4.2", "4.4.3", "4.4.4")


def is_answer(event: DeliveryEvent) -> bool:
    """Returns whether the domain's server answered. Complaints and expired messages are reported by other servers."""
    has_expired = event.smtp_code is None and event.enhanced_status == "4.4.7"
    return not (is_failed_connection(event) or has_expired or event.kind is DeliveryEventKind.COMPLAINT)


def message_and_day(event: DeliveryEvent) -> tuple[str, int]:
    return event.message_id or event.event_id, int(event.at.timestamp() // DAY_S)


def count(events: Iterable[DeliveryEvent], counted_outcome: DeliveryOutcome) -> int:
    return sum(outcome(event) is counted_outcome for event in events)


def outcome(event: DeliveryEvent) -> DeliveryOutcome:
    if event.kind is DeliveryEventKind.COMPLAINT:
        return DeliveryOutcome.COMPLAINT
    return rule(event).outcome


def rule(event: DeliveryEvent) -> ClassifierRule:
    domain = event.address.rpartition("@")[2]
    return classify(event.smtp_code, event.enhanced_status, event.diagnostic, domain)
