"""Use cases that explain the address book: why an address is blocked, and who changed what."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import UNSET, Parent

from resolvers.access import require_role
from resolvers.arguments import After, ListLimit, checked_limit, text_or_none
from resolvers.context import Info
from resolvers.mail.book import checked_address, checked_domain, checked_hash
from storage.errors import BadUserInput
from storage.identity.records import User
from storage.identity.roles import Role
from storage.mail.decisions import address_reports
from storage.mail.decisions import blocked_addresses as decisions
from storage.mail.decisions.address_reports import AddressReport
from storage.mail.decisions.blocked_addresses import BlockedAddresses
from storage.mail.decisions.changes import MailChange
from storage.mail.rates import day_of
from storage.mail.records import BounceRate
from storage.mail.reports import BounceAlarm

CHANGES_OF_REPORT = 20
MAX_DOMAINS = 100
MAX_ALARMS = 100


async def address_report(
    info: Info, address: Annotated[str, strawberry.argument(description="Mail address.")]
) -> AddressReport:
    """Returns why an address is blocked or allowed."""
    viewer = require_role(info, Role.OPERATOR, Role.SERVICE)
    stores = info.context.stores
    return await address_reports.address_report(
        stores.mongo, stores.address_book, viewer.organization_id, checked_address("address", address)
    )


async def mail_changes(
    info: Info,
    address: Annotated[
        str | None,
        strawberry.argument(description="Only changes of this address, or of `domain`. Omitted or null: any."),
    ] = UNSET,
    domain: Annotated[
        str | None,
        strawberry.argument(description="Only changes of this domain, or of `address`. Omitted or null: any."),
    ] = UNSET,
    after: After = UNSET,
    limit: ListLimit = 50,
) -> list[MailChange]:
    """Lists changes by operators, the newest first."""
    viewer = require_role(info, Role.OPERATOR, Role.SERVICE)
    written_address, written_domain = text_or_none(address), text_or_none(domain)
    book, subjects = info.context.stores.address_book, list[bytes | str]()
    if written_address is not None:
        subjects += book.hashes(viewer.organization_id, checked_address("address", written_address))
    if written_domain is not None:
        subjects.append(checked_domain(written_domain))
    return await book.changes.page(viewer.organization_id, subjects, text_or_none(after), checked_limit(limit))


async def blocked_addresses(
    info: Info,
    after: Annotated[
        str | None, strawberry.argument(description="`nextAfter` of the page before. Omitted or null: the first page.")
    ] = UNSET,
    limit: ListLimit = 50,
) -> BlockedAddresses:
    """Lists blocked addresses in order of their hashes."""
    viewer = require_role(info, Role.OPERATOR, Role.SERVICE)
    stores, start = info.context.stores, checked_hash(text_or_none(after))
    return await decisions.blocked_addresses(
        stores.mongo, stores.address_book, viewer.organization_id, start, checked_limit(limit)
    )


async def worst_domains(
    info: Info,
    day: Annotated[datetime, strawberry.argument(description="Any instant of the UTC day.")],
    limit: Annotated[int, strawberry.argument(description=f"Number of domains, 1 to {MAX_DOMAINS}.")] = 10,
) -> list[BounceRate]:
    """Lists the domains with the most bounces on a day."""
    viewer = require_role(info, Role.OPERATOR, Role.SERVICE)
    count = _checked_number(limit, MAX_DOMAINS)
    return await info.context.stores.bounce_rates.worst_domains(viewer.organization_id, day_of(day), count)


async def bounce_alarms(
    info: Info,
    limit: Annotated[int, strawberry.argument(description=f"Number of alarms, 1 to {MAX_ALARMS}.")] = 20,
) -> list[BounceAlarm]:
    """Lists the latest alarms."""
    viewer = require_role(info, Role.OPERATOR, Role.SERVICE)
    return await info.context.stores.reports.alarms(viewer.organization_id, _checked_number(limit, MAX_ALARMS))


def _checked_number(limit: int, maximum: int) -> int:
    if not 1 <= limit <= maximum:
        raise BadUserInput("limit", f"1 to {maximum}")
    return limit


async def changes_of_report(root: Parent[AddressReport], info: Info) -> list[MailChange]:
    """Returns the latest changes of the address and its domain."""
    viewer = require_role(info, Role.OPERATOR, Role.SERVICE)
    book = info.context.stores.address_book
    address = checked_address("address", root.standing.address)
    subjects: list[bytes | str] = [*book.hashes(viewer.organization_id, address), address.domain]
    return await book.changes.page(viewer.organization_id, subjects, None, CHANGES_OF_REPORT)


async def changed_by(root: Parent[MailChange], info: Info) -> User | None:
    """Returns the operator who made the change; None for the command line."""
    return (await changed_by_each([root], info))[0]


async def changed_by_each(changes: Sequence[MailChange], info: Info) -> list[User | None]:
    """Returns the operator who made each change; None for the command line."""
    if not changes:
        return []
    return await info.context.stores.users.find_or_none(changes[0].organization_id, [each.by_id for each in changes])
