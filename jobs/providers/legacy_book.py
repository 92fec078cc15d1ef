"""HTTP client of the legacy book, which answers a share of the lookups during a migration (docs/interfaces.md)."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import httpx2
import orjson

from storage.mail.legacy_book import LegacyBook, LegacyBookError

TIMEOUT_S = 2.0


@asynccontextmanager
async def legacy_book(url: str | None, share: int) -> AsyncIterator[LegacyBook | None]:
    """Yields a client of the legacy book; None without a URL. `share` is the percentage of addresses it answers for."""
    if url is None:
        yield None
        return
    async with httpx2.AsyncClient(timeout=TIMEOUT_S) as http:

        async def look_up(addresses: Sequence[str]) -> Mapping[str, bool]:
            return await _look_up(http, url, addresses)

        yield LegacyBook(share, look_up)


async def _look_up(http: httpx2.AsyncClient, url: str, addresses: Sequence[str]) -> Mapping[str, bool]:
    body = orjson.dumps({"addresses": list(addresses)})
    try:
        response = await http.post(url, content=body, headers={"content-type": "application/json"})
        response.raise_for_status()
        results = orjson.loads(response.content)["results"]
        is_blocked_by_address = {each["address"]: each["blocked"] for each in results}
    except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
        # The exception's text may hold the addresses that were sent.
        raise LegacyBookError(type(error).__name__) from None
    if not all(isinstance(is_blocked_by_address.get(address), bool) for address in addresses):
        raise LegacyBookError("the response lacks some of the addresses")
    return is_blocked_by_address
