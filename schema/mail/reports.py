"""GraphQL types and root fields that explain the address book: reports about addresses, and the operators' changes."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.mail.reports
from schema.binding import field
from schema.identity import User
from schema.mail.book import AddressStanding, BounceRate, Verdict
from storage.mail.decisions.bounce_classes import BounceClass
from storage.mail.decisions.changes import MailChangeKind

strawberry.enum(MailChangeKind, description="What an operator changed in the address book.")


@strawberry.type(description="Bounces of an address: one, or those of a day that are no longer kept one by one.")
class AddressBounce:
    bounce_class: BounceClass = strawberry.field(description="Why the mail bounced.")
    code: str = strawberry.field(
        description='The server\'s answer, such as "550 5.1.1", or "554 (no such mailbox)" if its text decided. Empty '
        "for an imported soft bounce."
    )
    source: str = strawberry.field(
        description="Who reported it: the `sub` of a token or the account of a service key, `tail:` and the name of a "
        "log, `reports`, `digests`, or the name of an import."
    )
    count: int = strawberry.field(description="Number of bounces.")
    at: datetime = strawberry.field(description="When the latest of them happened.")


@strawberry.type(description="A change that an operator made to the address book.")
class MailChange:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    kind: MailChangeKind = strawberry.field(description="What was changed.")
    at: datetime = strawberry.field(description="When it was changed.")
    by_id: ID = strawberry.field(description="Id of the operator; `command-line` for the command `noroshi`.")
    by: User | None = field(
        resolvers.mail.reports.changed_by,
        "Operator who made the change; null for the command `noroshi`.",
        batch_resolver=resolvers.mail.reports.changed_by_each,
    )
    reason: str = strawberry.field(description="Reason that was given; empty once the operator was erased.")
    address_hash: ID | None = strawberry.field(
        description="Keyed hash of the address, in hexadecimal digits; null for other changes."
    )
    domain: str | None = strawberry.field(description="The domain; null for other changes.")
    policy_version: int | None = strawberry.field(description="Version of the policy; null for other changes.")


@strawberry.type(description="Why an address is blocked or allowed: its standing with the evidence.")
class AddressReport:
    standing: AddressStanding = strawberry.field(description="Standing under the present policy.")
    address_hash: ID = strawberry.field(
        description="Keyed hash of the address, in hexadecimal digits. Changes and dry runs name the address by it."
    )
    policy_version: int = strawberry.field(description="Version of the policy that decided.")
    blocked_since: datetime | None = strawberry.field(
        description="Since when the address is blocked, at the earliest since the policy was set; null if it is not "
        "blocked, or only its domain is."
    )
    bounces: list[AddressBounce] = strawberry.field(
        description="Bounces since the latest delivery, the newest first; at most 1000."
    )
    last_delivery_at: datetime | None = strawberry.field(
        description="When mail was last delivered; null if no delivery is known since the address was last unblocked."
    )
    last_complaint_at: datetime | None = strawberry.field(
        description="When the recipient last complained; null if no complaint is known since the address was last "
        "unblocked."
    )
    changes: list[MailChange] = field(
        resolvers.mail.reports.changes_of_report,
        "The latest 20 changes of the address and its domain by operators, the newest first.",
        queries_per_object=True,
    )


@strawberry.type(description="A blocked address, by its keyed hash, and readable if the policy keeps addresses.")
class BlockedAddress:
    address_hash: ID = strawberry.field(description="Keyed hash of the address, in hexadecimal digits.")
    domain: str = strawberry.field(description="Domain of the address.")
    address: str | None = strawberry.field(
        description="The address, in lower case; null unless it bounced or was blocked by hand while the policy kept "
        "addresses."
    )
    verdict: Verdict = strawberry.field(description="Reason why the address is blocked.")


@strawberry.type(description="A page of blocked addresses, in order of their hashes.")
class BlockedAddresses:
    items: list[BlockedAddress] = strawberry.field(
        description="The blocked addresses. A page may have fewer than `limit`, or none, although others follow."
    )
    next_after: str | None = strawberry.field(
        description="Value of `after` for the next page; null at the end of the list."
    )


@strawberry.type(description="An alarm: more of a day's mail bounced than the server's setting allows.")
class BounceAlarm:
    day: datetime = strawberry.field(description="Start of the day in UTC.")
    domain: str | None = strawberry.field(description="Domain; null for the whole organization.")
    raised_at: datetime = strawberry.field(description="When the alarm was raised, or last tried again to be sent.")
    sent_at: datetime | None = strawberry.field(
        description="When it was sent to the address that the server's operator has set; null until then."
    )


@strawberry.type
class MailReportQuery:
    """Reads that explain the address book."""

    address_report: AddressReport = field(
        resolvers.mail.reports.address_report,
        "Why an address is blocked or allowed, since when, and by which bounces. Needs the role OPERATOR or SERVICE.",
    )
    mail_changes: list[MailChange] = field(
        resolvers.mail.reports.mail_changes,
        "Changes that operators made to the address book: of addresses, domains and the policy, the newest first. "
        "Needs the role OPERATOR or SERVICE.",
    )
    blocked_addresses: BlockedAddresses = field(
        resolvers.mail.reports.blocked_addresses,
        "Blocked addresses, by their keyed hashes. Addresses that only their domain blocks are left out, unless they "
        "have bounces or decisions of their own. Needs the role OPERATOR or SERVICE.",
    )
    worst_domains: list[BounceRate] = field(
        resolvers.mail.reports.worst_domains,
        "Domains with the most bounces on a UTC day, the most first. Covers the latest three days with mail of each. "
        "Needs the role OPERATOR or SERVICE.",
    )
    bounce_alarms: list[BounceAlarm] = field(
        resolvers.mail.reports.bounce_alarms,
        "Alarms of the last 400 days, the latest day first. Needs the role OPERATOR or SERVICE.",
    )
