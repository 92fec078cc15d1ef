"""Lookups in the address book. During a migration the legacy book answers a share of them.

If one book fails, the other book answers. If both answer and the answers differ, the difference is stored.
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
from storage.mail.standings import invalid_address_standing

BLOCKED_BY_LEGACY = Verdict(VerdictRule.HARD_BOUNCED, "The legacy book blocks this address.")
ALLOWED_BY_LEGACY = Verdict(VerdictRule.DELIVERABLE, "The legacy book allows this address.")

log = structlog.get_logger(__name__)


async def look_up(context: Context, organization_id: str, addresses: Sequence[str]) -> list[AddressStanding]:
    """Returns the standing of each address, in the same order. The legacy book answers for its share."""
    book, legacy = context.stores.address_book, context.legacy_book
    legacy_share = [] if legacy is None else [each for each in addresses if is_answered_by_legacy(each, legacy.share)]
    if legacy is None or not legacy_share:
        return await _own_standings(context, organization_id, addresses)
    standings, blocked_by_legacy = await asyncio.gather(
        _own_standings(context, organization_id, addresses),
        _ask_legacy_book(legacy, list(dict.fromkeys(legacy_share))),
    )
    await book.record_differences(organization_id, standings, blocked_by_legacy)
    return [_with_legacy_answer(standing, blocked_by_legacy) for standing in standings]


async def _own_standings(context: Context, org: str, addresses: Sequence[str]) -> list[AddressStanding]:
    """Returns standings from this product's book. If it fails, returns the legacy book's; raises if both fail."""
    try:
        return await context.stores.address_book.look_up(org, addresses)
    except (PyMongoError, Unavailable):
        legacy = context.legacy_book
        blocked_by_legacy = {} if legacy is None else await _ask_legacy_book(legacy, list(dict.fromkeys(addresses)))
        if not blocked_by_legacy:
            raise
        log.warning("address_book_failed", addresses=len(addresses))
        return [_legacy_standing(each, blocked_by_legacy) for each in addresses]


async def _ask_legacy_book(legacy: LegacyBook, addresses: Sequence[str]) -> Mapping[str, bool]:
    """Returns for each address whether the legacy book blocks it. Returns an empty mapping if the book fails."""
    try:
        return await legacy.look_up(addresses)
    except LegacyBookError as error:
        log.warning("legacy_book_failed", error=str(error))
        return {}


def _with_legacy_answer(standing: AddressStanding, blocked_by_legacy: Mapping[str, bool]) -> AddressStanding:
    blocked = blocked_by_legacy.get(standing.address)
    if blocked is None or blocked == standing.blocked or standing.normalized is None:
        return standing
    return replace(standing, blocked=blocked, verdict=BLOCKED_BY_LEGACY if blocked else ALLOWED_BY_LEGACY)


def _legacy_standing(written: str, blocked_by_legacy: Mapping[str, bool]) -> AddressStanding:
    address, blocked = normalize(written), blocked_by_legacy.get(written)
    if address is None or blocked is None:
        return invalid_address_standing(written)
    verdict = BLOCKED_BY_LEGACY if blocked else ALLOWED_BY_LEGACY
    return AddressStanding(written, address.text, blocked, verdict, 0, 0, 0, None, None)
