"""Lookups in the address book, bounce rates, and changes by operators."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import strawberry

from resolvers.access import require_role
from resolvers.arguments import checked_text, text_or_none
from resolvers.context import Info
from resolvers.limits.concurrency import ConcurrencyLimiter
from resolvers.mail.lookup import look_up
from storage.errors import BadUserInput, RateLimited
from storage.identity.roles import Role
from storage.mail.addresses import Address, normalize, normalize_domain
from storage.mail.decisions.address_decisions import AddressDecision
from storage.mail.rates import day_of
from storage.mail.records import AddressStanding, BounceRate, DomainStanding
from storage.metrics import MAIL_LOOKUPS

MAX_ITEMS = 1000
MAX_DAYS = 400
MAX_REASON_CHARS = 500
MAX_RUNNING_LOOKUPS = 4
"""Maximum number of lookups that run at once in one process."""

MAX_WAITING_LOOKUPS = 64
"""Maximum number of lookups that wait in one process."""

MAX_LOOKUP_WAIT_S = 1.0
"""How long a lookup waits at most, in seconds."""

Reason = Annotated[
    str, strawberry.argument(description="Reason for the change, stored with the user: 1 to 500 characters.")
]
Domain = Annotated[str, strawberry.argument(description="Domain, such as example.org.")]


def _refuse_lookup() -> RateLimited:
    MAIL_LOOKUPS.labels("refused").inc()
    return RateLimited("Too many lookups at once. Try again later.", 1000)


_LOOKUPS = ConcurrencyLimiter(MAX_WAITING_LOOKUPS, MAX_LOOKUP_WAIT_S, _refuse_lookup)
"""The lookups of this process."""


async def address_book(
    info: Info,
    addresses: Annotated[list[str], strawberry.argument(description="Mail addresses, at most 1000.")],
) -> list[AddressStanding]:
    """Returns the standing of each address, in the same order."""
    viewer = require_role(info, Role.OPERATOR, Role.SERVICE)
    check_at_most_1000("addresses", addresses)
    async with _LOOKUPS.execution("lookups", 1, MAX_RUNNING_LOOKUPS):
        MAIL_LOOKUPS.labels("served").inc()
        return await look_up(info.context, viewer.organization_id, addresses)


async def domain_standings(
    info: Info,
    domains: Annotated[list[str], strawberry.argument(description="Domains such as example.org, at most 1000.")],
) -> list[DomainStanding]:
    """Returns the standing of each domain, in the same order."""
    viewer = require_role(info, Role.OPERATOR, Role.SERVICE)
    check_at_most_1000("domains", domains)
    return await info.context.stores.address_book.domain_standings(viewer.organization_id, domains)


async def bounce_rates(
    info: Info,
    from_: Annotated[datetime, strawberry.argument(name="from", description="Any instant of the first UTC day.")],
    to: Annotated[datetime, strawberry.argument(description="Any instant of the last UTC day.")],
    domain: Annotated[
        str | None,
        strawberry.argument(description="Domain, such as example.org. Omitted or null: all domains together."),
    ] = strawberry.UNSET,
) -> list[BounceRate]:
    """Returns the bounce rate of each UTC day of the range."""
    viewer = require_role(info, Role.OPERATOR, Role.SERVICE)
    first, last = day_of(from_), day_of(to)
    if not 0 <= last - first < MAX_DAYS:
        raise BadUserInput("to", f"a day at or after `from`, at most {MAX_DAYS} days in all")
    domain_name = text_or_none(domain)
    name = None if domain_name is None else checked_domain(domain_name)
    return await info.context.stores.bounce_rates.between(viewer.organization_id, name, first, last)


async def unblock_address(
    info: Info, address: Annotated[str, strawberry.argument(description="Mail address.")], reason: Reason
) -> AddressStanding:
    """Resets an address's counters, so that it is no longer blocked."""
    viewer = require_role(info, Role.OPERATOR)
    normalized = checked_address("address", address)
    checked_reason = checked_text("reason", reason, 1, MAX_REASON_CHARS)
    return await info.context.stores.address_book.unblock(
        viewer.organization_id, normalized, viewer.id, checked_reason, info.context.actor
    )


async def block_addresses(
    info: Info,
    addresses: Annotated[list[str], strawberry.argument(description="Mail addresses, 1 to 1000.")],
    reason: Reason,
) -> list[AddressStanding]:
    """Blocks addresses by hand."""
    return await _decide(info, addresses, reason, blocked=True)


async def unblock_addresses(
    info: Info,
    addresses: Annotated[list[str], strawberry.argument(description="Mail addresses, 1 to 1000.")],
    reason: Reason,
) -> list[AddressStanding]:
    """Unblocks addresses, and resets their counters."""
    return await _decide(info, addresses, reason, blocked=False)


async def _decide(info: Info, written: list[str], reason: str, *, blocked: bool) -> list[AddressStanding]:
    viewer = require_role(info, Role.OPERATOR)
    check_at_most_1000("addresses", written)
    addresses = [checked_address(f"addresses.{index}", each) for index, each in enumerate(written)]
    if not addresses:
        raise BadUserInput("addresses", "at least one address")
    checked_reason = checked_text("reason", reason, 1, MAX_REASON_CHARS)
    book, org = info.context.stores.address_book, viewer.organization_id
    decision = AddressDecision(org, blocked, viewer.id, checked_reason, info.context.actor)
    await book.decisions.store(addresses, decision)
    return await book.look_up(org, written)


async def set_domain_blocked(
    info: Info,
    domain: Domain,
    reason: Reason,
    blocked: Annotated[
        bool | None,
        strawberry.argument(
            description="true blocks the domain, false allows it. Omitted or null: its counters decide again."
        ),
    ] = strawberry.UNSET,
) -> DomainStanding:
    """Blocks or allows a domain regardless of its counters; with null, the counters decide again."""
    viewer = require_role(info, Role.OPERATOR)
    name, checked_reason = checked_domain(domain), checked_text("reason", reason, 1, MAX_REASON_CHARS)
    override = blocked if isinstance(blocked, bool) else None
    book = info.context.stores.address_book
    return await book.set_domain_blocked(
        viewer.organization_id, name, override, viewer.id, checked_reason, info.context.actor
    )


def check_at_most_1000(field: str, items: Sequence[object]) -> None:
    """Checks the length of a list. Raises: BadUserInput for more than 1000 items."""
    if len(items) > MAX_ITEMS:
        raise BadUserInput(field, f"at most {MAX_ITEMS}, not {len(items)}")


def checked_address(field: str, written: str) -> Address:
    """Returns the address in an argument. Raises: BadUserInput."""
    address = normalize(written)
    if address is None:
        raise BadUserInput(field, "a mail address such as ann@example.org")
    return address


def checked_domain(text: str) -> str:
    """Returns the normalized domain in an argument. Raises: BadUserInput."""
    name = normalize_domain(text)
    if name is None:
        raise BadUserInput("domain", "a domain such as example.org")
    return name


def checked_hash(text: str | None) -> bytes | None:
    """Returns the hash in the argument `after`; None if it was omitted. Raises: BadUserInput."""
    try:
        return None if text is None else bytes.fromhex(text)
    except ValueError:
        raise BadUserInput("after", "`nextAfter` of the answer before") from None
