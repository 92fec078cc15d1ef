"""The older bounce book over HTTP (docs/interfaces.md): asked while it still answers for a share of the addresses."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import httpx2
import orjson

from storage.mail.legacy_book import LegacyBook, LegacyBookError

TIMEOUT_S = 2.0


@asynccontextmanager
async def legacy_book(url: str | None, share: int) -> AsyncIterator[LegacyBook | None]:
    """The book at the address, which is asked with one POST at a time and connection; None without an address."""
    if url is None:
        yield None
        return
    async with httpx2.AsyncClient(timeout=TIMEOUT_S) as http:

        async def ask(addresses: Sequence[str]) -> Mapping[str, bool]:
            return await _ask(http, url, addresses)

        yield LegacyBook(share, ask)


async def _ask(http: httpx2.AsyncClient, url: str, addresses: Sequence[str]) -> Mapping[str, bool]:
    body = orjson.dumps({"addresses": list(addresses)})
    try:
        response = await http.post(url, content=body, headers={"content-type": "application/json"})
        response.raise_for_status()
        results = orjson.loads(response.content)["results"]
        told = {each["address"]: each["blocked"] for each in results}
    except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
        # Not the error's own words: they may hold what was asked.
        raise LegacyBookError(type(error).__name__) from None
    if not all(isinstance(told.get(address), bool) for address in addresses):
        raise LegacyBookError("it left addresses out")
    return told
