"""Metadata of a provider: old ones serve while new ones are fetched, once for all callers, and for a bounded time."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from server.auth.oidc.provider import METADATA_LIMIT_S, METADATA_MAX_AGE_S, RETRY_S, IdentityProvider
from storage.errors import Unavailable
from tests.server.auth.oidc.lying_provider import DISCOVERY, LyingProvider, lying_provider
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def served() -> AsyncIterator[LyingProvider]:
    async with lying_provider() as served:
        yield served


async def test_old_metadata_serve_while_the_provider_hangs(served: LyingProvider) -> None:
    clock = [0.0]
    provider = IdentityProvider(served.issuer, lambda: clock[0])
    first = await provider.metadata()
    served.gate.clear()
    clock[0] = METADATA_MAX_AGE_S + 1
    served.metadata = {"token_endpoint": f"{served.issuer}/moved"}
    callers = [asyncio.create_task(provider.metadata()) for _ in range(5)]
    await until(lambda: served.requests[DISCOVERY] == 2)
    assert all(each.done() for each in callers), "callers wait for the provider"
    assert [each.result() for each in callers] == [first] * 5
    served.gate.set()
    await until(lambda: _has_moved(provider))
    assert served.requests[DISCOVERY] == 2


async def _has_moved(provider: IdentityProvider) -> bool:
    return (await provider.metadata()).token_endpoint.endswith("/moved")


async def test_first_callers_share_one_fetch(served: LyingProvider) -> None:
    served.gate.clear()
    provider = IdentityProvider(served.issuer)
    callers = [asyncio.create_task(provider.metadata()) for _ in range(5)]
    await until(lambda: served.requests[DISCOVERY] == 1)
    callers[0].cancel()
    served.gate.set()
    assert {(await each).issuer for each in callers[1:]} == {served.issuer}
    assert served.requests[DISCOVERY] == 1


async def test_metadata_of_yesterday_do_not_serve(served: LyingProvider) -> None:
    """A provider that changed its endpoints long ago must not get the codes of today at the old ones."""
    clock = [0.0]
    provider = IdentityProvider(served.issuer, lambda: clock[0])
    await provider.metadata()
    served.status = 500
    clock[0] = METADATA_LIMIT_S
    assert (await provider.metadata()).issuer == served.issuer
    await until(lambda: served.requests[DISCOVERY] == 2)
    clock[0] = METADATA_LIMIT_S + RETRY_S + 1
    with pytest.raises(Unavailable):
        await provider.metadata()
    served.status = 200
    clock[0] += RETRY_S
    assert (await provider.metadata()).issuer == served.issuer


async def test_failed_fetch_is_repeated_after_a_pause(served: LyingProvider) -> None:
    clock, served.status = [0.0], 500
    provider = IdentityProvider(served.issuer, lambda: clock[0])
    for _ in range(3):
        with pytest.raises(Unavailable):
            await provider.metadata()
    assert served.requests[DISCOVERY] == 1
    clock[0], served.status = RETRY_S, 200
    assert (await provider.metadata()).issuer == served.issuer
    assert served.requests[DISCOVERY] == 2
