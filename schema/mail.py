"""GraphQL types of the bounce address book."""

from datetime import datetime

import strawberry
from strawberry import ID

from storage.mail.records import VerdictRule

strawberry.enum(VerdictRule, description="Rule that decides whether an address or domain should get mail.")


@strawberry.type(description="The rule that decided, and its evidence.")
class Verdict:
    rule: VerdictRule = strawberry.field(description="Rule that decided.")
    detail: str = strawberry.field(description="Evidence in English, for people.")


@strawberry.type(description="Counters of mail to a domain, and whether it is blocked. id is the domain.")
class DomainStanding:
    id: ID = strawberry.field(description="The domain, which identifies it.")
    domain: str = strawberry.field(description="Domain in lower case and IDNA form; as requested when it is invalid.")
    success: int = strawberry.field(description="Number of deliveries.")
    soft_bounce: int = strawberry.field(
        description="Number of soft bounces and failed connections, one per message and day."
    )
    hard_bounce: int = strawberry.field(description="Number of hard bounces.")
    blocked: bool = strawberry.field(description="Whether all addresses of the domain should get no mail.")
    verdict: Verdict = strawberry.field(description="Reason why it is blocked or allowed.")


@strawberry.type(description="Counters of mail to an address, and whether it is blocked.")
class AddressStanding:
    address: str = strawberry.field(description="Address as requested.")
    normalized: str | None = strawberry.field(description="Normalised address; null when the address is invalid.")
    blocked: bool = strawberry.field(description="Whether it should get no mail. True also when its domain is blocked.")
    verdict: Verdict = strawberry.field(description="Reason why it is blocked or allowed.")
    success: int = strawberry.field(description="Number of deliveries.")
    soft_bounce: int = strawberry.field(
        description="Number of soft bounces since the last delivery, one per message and day."
    )
    hard_bounce: int = strawberry.field(description="Number of hard bounces since the last delivery.")
    domain: DomainStanding | None = strawberry.field(
        description="Standing of its domain; null when the address is invalid."
    )
    last_event_at: datetime | None = strawberry.field(
        description="When the latest event happened; null when none is known."
    )


@strawberry.type(description="Bounce rate of a UTC day.")
class BounceRate:
    day: datetime = strawberry.field(description="Start of the day.")
    domain: str | None = strawberry.field(description="Domain; null for all domains together.")
    sent: int = strawberry.field(description="Number of messages with an outcome that counts.")
    bounced: int = strawberry.field(description="Number of them that bounced, softly or hard.")
    rate: float = strawberry.field(
        description="Share of bounced messages, 0 to 1. From 0.02 a sender's reputation suffers."
    )


@strawberry.type(description="An event that was rejected.")
class RejectedDelivery:
    index: int = strawberry.field(description="Index of the event in the list, from 0.")
    event_id: ID = strawberry.field(description="Id of the event.")
    message: str = strawberry.field(description="What is wrong with the event.")


@strawberry.type(description="Result of recording a list of events.")
class RecordDeliveriesResult:
    accepted: int = strawberry.field(description="Number of new events. They are durable.")
    duplicates: int = strawberry.field(
        description="Number of events whose ids were recorded before. They change nothing."
    )
    rejected: list[RejectedDelivery] = strawberry.field(description="Invalid events.")
