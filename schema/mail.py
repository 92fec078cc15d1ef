"""The bounce address book."""

from datetime import datetime

import strawberry
from strawberry import ID

from storage.mail.records import VerdictRule

strawberry.enum(VerdictRule, description="Which rule decided whether mail should be sent.")


@strawberry.type(description="Why: the rule that decided, and what it saw.")
class Verdict:
    rule: VerdictRule = strawberry.field(description="The rule.")
    detail: str = strawberry.field(description="What it saw, for people.")


@strawberry.type(description="What is known of mail to a domain. id is the domain.")
class DomainStanding:
    id: ID = strawberry.field(description="The domain.")
    domain: str = strawberry.field(description="As IDNA spells it, in lower case.")
    success: int = strawberry.field(description="Deliveries.")
    soft_bounce: int = strawberry.field(description="Soft bounces and failures to reach it; once a message and day.")
    hard_bounce: int = strawberry.field(description="Hard bounces.")
    blocked: bool = strawberry.field(description="Whether nobody there should be sent mail.")
    verdict: Verdict = strawberry.field(description="Why.")


@strawberry.type(description="What is known of mail to an address.")
class AddressStanding:
    address: str = strawberry.field(description="As asked.")
    normalized: str | None = strawberry.field(description="Normalised; null when it is no address.")
    blocked: bool = strawberry.field(description="Whether it should get no mail; also where its domain is blocked.")
    verdict: Verdict = strawberry.field(description="Why.")
    success: int = strawberry.field(description="Deliveries.")
    soft_bounce: int = strawberry.field(description="Soft bounces since the last success; once a message and day.")
    hard_bounce: int = strawberry.field(description="Hard bounces since the last success.")
    domain: DomainStanding | None = strawberry.field(description="Of its domain; null when it is no address.")
    last_event_at: datetime | None = strawberry.field(description="When the last known event happened.")


@strawberry.type(description="A UTC day's mail.")
class BounceRate:
    day: datetime = strawberry.field(description="When the day begins.")
    domain: str | None = strawberry.field(description="Null for all together.")
    sent: int = strawberry.field(description="Messages with an outcome that counts.")
    bounced: int = strawberry.field(description="How many of them bounced, softly or hard.")
    rate: float = strawberry.field(description="Bounced of sent, 0 to 1. From 0.02 on senders lose their reputation.")


@strawberry.type(description="An event that was not taken in.")
class RejectedDelivery:
    index: int = strawberry.field(description="Its place in the list, from 0.")
    event_id: ID = strawberry.field(description="Its id.")
    message: str = strawberry.field(description="Why.")


@strawberry.type(description="What became of a list of events.")
class RecordDeliveriesResult:
    accepted: int = strawberry.field(description="New ones; they are durable.")
    duplicates: int = strawberry.field(description="Those that were known; nothing changed.")
    rejected: list[RejectedDelivery] = strawberry.field(description="Those that can't be taken in.")
