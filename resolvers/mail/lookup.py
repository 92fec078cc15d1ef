"""Lookups while an older book is being left: a share of the addresses is answered by it.

Either side steps in for the other when that fails, and where both answered, differences are kept.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import structlog
from pymongo.errors import PyMongoError

from resolvers.context import Context
from storage.errors import Unavailable
from storage.mail.addresses import normalize
from storage.mail.legacy_book import LegacyBook, LegacyBookError, is_answered_by_legacy
from storage.mail.records import AddressStanding, Verdict, VerdictRule
from storage.mail.standings import invalid

BLOCKED = Verdict(VerdictRule.HARD_BOUNCED, "The older book blocks it.")
ALLOWED = Verdict(VerdictRule.DELIVERABLE, "The older book allows it.")

log = structlog.get_logger(__name__)


async def look_up(context: Context, organization_id: str, addresses: Sequence[str]) -> list[AddressStanding]:
    """A standing for each address, in the order of asking; by the older book for its share."""
    book, old = context.stores.address_book, context.legacy_book
    shared = [] if old is None else [each for each in addresses if is_answered_by_legacy(each, old.share)]
    if old is None or not shared:
        return await _ours_or_theirs(context, organization_id, addresses)
    ours, theirs = await asyncio.gather(
        _ours_or_theirs(context, organization_id, addresses), _asked(old, list(dict.fromkeys(shared)))
    )
    await book.note_differences(organization_id, ours, theirs)
    return [_answered(standing, theirs) for standing in ours]


async def _ours_or_theirs(context: Context, org: str, addresses: Sequence[str]) -> list[AddressStanding]:
    try:
        return await context.stores.address_book.look_up(org, addresses)
    except (PyMongoError, Unavailable):
        old = context.legacy_book
        theirs = await _asked(old, list(dict.fromkeys(addresses))) if old is not None else {}
        if not theirs:
            raise
        log.warning("book_failed", addresses=len(addresses))
        return [_theirs_alone(each, theirs) for each in addresses]


async def _asked(old: LegacyBook, addresses: Sequence[str]) -> Mapping[str, bool]:
    """What the older book says; nothing when it fails."""
    try:
        return await old.ask(addresses)
    except LegacyBookError as error:
        log.warning("legacy_book_failed", error=str(error))
        return {}


def _answered(standing: AddressStanding, theirs: Mapping[str, bool]) -> AddressStanding:
    blocked = theirs.get(standing.address)
    if blocked is None or blocked == standing.blocked or standing.normalized is None:
        return standing
    return replace(standing, blocked=blocked, verdict=BLOCKED if blocked else ALLOWED)


def _theirs_alone(asked: str, theirs: Mapping[str, bool]) -> AddressStanding:
    address = normalize(asked)
    if address is None or asked not in theirs:
        return invalid(asked)
    verdict = BLOCKED if theirs[asked] else ALLOWED
    return AddressStanding(asked, address.text, theirs[asked], verdict, 0, 0, 0, None, None)
