"""GraphQL types and root fields of the bounce address book. schema/root.py adds the fields to the root types."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.mail.book
import resolvers.mail.deliveries
from resolvers.limits.writes import WriteLimit
from schema.binding import field, mutation
from schema.nodes import own_id
from storage.mail.records import VerdictRule

strawberry.enum(VerdictRule, description="Rule that decides whether an address or domain should get mail.")


@strawberry.type(description="The rule that blocked or allowed an address or a domain, and its evidence.")
class Verdict:
    rule: VerdictRule = strawberry.field(description="Rule that blocked or allowed.")
    detail: str = strawberry.field(description="Evidence in English, for people.")


@strawberry.type(description="Counters of mail to a domain, and whether the domain is blocked.")
class DomainStanding:
    id: ID = own_id("DomainStanding", "Unique identifier. Treat as an opaque string.")
    domain: str = strawberry.field(description="Domain in lower case and IDNA form; as requested when it is invalid.")
    success: int = strawberry.field(description="Number of successful deliveries.")
    soft_bounce: int = strawberry.field(
        description="Number of soft bounces and failed connections. Several for one message on one day count once."
    )
    hard_bounce: int = strawberry.field(description="Number of hard bounces.")
    blocked: bool = strawberry.field(description="Whether no mail should be sent to addresses of the domain.")
    verdict: Verdict = strawberry.field(description="Reason why the domain is blocked or allowed.")


@strawberry.type(description="Counters of mail to an address, and whether the address is blocked.")
class AddressStanding:
    address: str = strawberry.field(description="Address as requested.")
    normalized: str | None = strawberry.field(
        description="Address in lower case, with its domain in IDNA form; null when the address is invalid."
    )
    blocked: bool = strawberry.field(
        description="Whether no mail should be sent to the address. True also when its domain is blocked."
    )
    verdict: Verdict = strawberry.field(description="Reason why the address is blocked or allowed.")
    success: int = strawberry.field(description="Number of successful deliveries.")
    soft_bounce: int = strawberry.field(
        description="Number of soft bounces since the last successful delivery. Several for one message on one day "
        "count once."
    )
    hard_bounce: int = strawberry.field(description="Number of hard bounces since the last successful delivery.")
    domain: DomainStanding | None = strawberry.field(
        description="Standing of the address's domain; null when the address is invalid."
    )
    last_event_at: datetime | None = strawberry.field(
        description="When the latest delivery event of the address happened; null when no event is known."
    )


@strawberry.type(description="Bounce rate of a UTC day.")
class BounceRate:
    day: datetime = strawberry.field(description="Start of the day in UTC.")
    domain: str | None = strawberry.field(description="Domain; null for all domains together.")
    sent: int = strawberry.field(description="Number of messages that were delivered or bounced.")
    bounced: int = strawberry.field(description="Number of messages that bounced, soft or hard.")
    rate: float = strawberry.field(
        description="Share of bounced messages, 0 to 1. From 0.02 a sender's reputation suffers."
    )
    complaints: int | None = strawberry.field(
        description="Number of complaints of recipients on the day; null for a domain, for which they are not counted."
    )
    complaint_rate: float | None = strawberry.field(
        description="Complaints for each message of the day; null for a domain. From 0.001 a sender's reputation "
        "suffers."
    )


@strawberry.type(description="An event that was rejected.")
class RejectedDelivery:
    index: int = strawberry.field(description="Index of the event in the list, from 0.")
    event_id: ID = strawberry.field(description="Id of the event.")
    message: str = strawberry.field(description="What is wrong with the event.")


@strawberry.type(description="Result of recording a list of events.")
class RecordDeliveriesResult:
    accepted: int = strawberry.field(description="Number of new events, which are now durable.")
    duplicates: int = strawberry.field(
        description="Number of events whose ids were recorded before. Such events change nothing."
    )
    rejected: list[RejectedDelivery] = strawberry.field(description="The invalid events, which were not recorded.")


@strawberry.type
class MailQuery:
    """Reads of the address book."""

    address_book: list[AddressStanding] = field(
        resolvers.mail.book.address_book,
        "Standing of each address, in the order of the argument; duplicates are kept. Needs the role OPERATOR or "
        "SERVICE.",
    )
    domain_standings: list[DomainStanding] = field(
        resolvers.mail.book.domain_standings,
        "Standing of each domain, in the order of the argument. Needs the role OPERATOR or SERVICE.",
    )
    bounce_rates: list[BounceRate] = field(
        resolvers.mail.book.bounce_rates,
        "Bounce rate of each UTC day from `from` to `to`, both included; at most 400 days. Needs the role OPERATOR or "
        "SERVICE.",
    )


@strawberry.type
class MailMutation:
    """Changes of the address book."""

    record_deliveries: RecordDeliveriesResult = mutation(
        resolvers.mail.deliveries.record_deliveries,
        "Records delivery events. Each `eventId` counts once, so the mutation may be repeated. Needs the role SERVICE.",
        limit=None,
        scope="mail:ingest",
    )
    unblock_address: AddressStanding = mutation(
        resolvers.mail.book.unblock_address,
        "Unblocks an address and resets its counters. The user and the reason are stored. Needs the role OPERATOR.",
        limit=WriteLimit.OPERATIONS,
    )
    block_addresses: list[AddressStanding] = mutation(
        resolvers.mail.book.block_addresses,
        "Blocks addresses by hand, until they are unblocked. The user and the reason are stored for each. Returns the "
        "standings in the order of the argument. Idempotent. Needs the role OPERATOR.",
        limit=WriteLimit.OPERATIONS,
    )
    unblock_addresses: list[AddressStanding] = mutation(
        resolvers.mail.book.unblock_addresses,
        "Unblocks addresses and resets their counters, as `unblockAddress` does. Returns the standings in the order of "
        "the argument. Needs the role OPERATOR.",
        limit=WriteLimit.OPERATIONS,
    )
    set_domain_blocked: DomainStanding = mutation(
        resolvers.mail.book.set_domain_blocked,
        "Blocks or allows a domain regardless of its counters, or ends such a decision. The user and the reason are "
        "stored. Needs the role OPERATOR.",
        limit=WriteLimit.OPERATIONS,
    )
