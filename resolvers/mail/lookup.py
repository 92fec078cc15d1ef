"""Lookups, of which an older book answers a share during a migration.

When one book fails, the other answers. Where both answered, differences are stored.
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

BLOCKED = Verdict(VerdictRule.HARD_BOUNCED, "The older book blocks this address.")
ALLOWED = Verdict(VerdictRule.DELIVERABLE, "The older book allows this address.")

log = structlog.get_logger(__name__)


async def look_up(context: Context, organization_id: str, addresses: Sequence[str]) -> list[AddressStanding]:
    """Returns a standing per address, in their order. The older book answers for its share."""
    book, older = context.stores.address_book, context.legacy_book
    shared = [] if older is None else [each for each in addresses if is_answered_by_legacy(each, older.share)]
    if older is None or not shared:
        return await _own_or_older(context, organization_id, addresses)
    ours, theirs = await asyncio.gather(
        _own_or_older(context, organization_id, addresses), _ask_older(older, list(dict.fromkeys(shared)))
    )
    await book.note_differences(organization_id, ours, theirs)
    return [_with_older_answer(standing, theirs) for standing in ours]


async def _own_or_older(context: Context, org: str, addresses: Sequence[str]) -> list[AddressStanding]:
    try:
        return await context.stores.address_book.look_up(org, addresses)
    except (PyMongoError, Unavailable):
        older = context.legacy_book
        theirs = await _ask_older(older, list(dict.fromkeys(addresses))) if older is not None else {}
        if not theirs:
            raise
        log.warning("address_book_failed", addresses=len(addresses))
        return [_older_standing(each, theirs) for each in addresses]


async def _ask_older(older: LegacyBook, addresses: Sequence[str]) -> Mapping[str, bool]:
    """Returns the answer of the older book; empty when it fails."""
    try:
        return await older.ask(addresses)
    except LegacyBookError as error:
        log.warning("legacy_book_failed", error=str(error))
        return {}


def _with_older_answer(standing: AddressStanding, theirs: Mapping[str, bool]) -> AddressStanding:
    blocked = theirs.get(standing.address)
    if blocked is None or blocked == standing.blocked or standing.normalized is None:
        return standing
    return replace(standing, blocked=blocked, verdict=BLOCKED if blocked else ALLOWED)


def _older_standing(asked: str, theirs: Mapping[str, bool]) -> AddressStanding:
    address = normalize(asked)
    if address is None or asked not in theirs:
        return invalid(asked)
    verdict = BLOCKED if theirs[asked] else ALLOWED
    return AddressStanding(asked, address.text, theirs[asked], verdict, 0, 0, 0, None, None)
