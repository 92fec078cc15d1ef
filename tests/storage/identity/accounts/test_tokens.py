"""Tokens of links: used once, for one purpose, and stored as digests."""

import asyncio

import pytest

from storage.identity.accounts.tokens import LinkInvalid, TokenPurpose, TokenSubject
from storage.secrets.random_tokens import new_token
from storage.stores import Stores

pytestmark = pytest.mark.anyio


async def test_token_used_concurrently_is_used_once(shared_stores: Stores, org: str) -> None:
    tokens, subject = shared_stores.account_tokens, TokenSubject(org, "ann", "ann@example.org")
    token = await tokens.issue(TokenPurpose.RESET, subject)
    using = (
        shared_stores.mongo.transact(lambda session: tokens.use(TokenPurpose.RESET, token, session)) for _ in range(8)
    )
    results = await asyncio.gather(*using, return_exceptions=True)
    assert [each for each in results if not isinstance(each, LinkInvalid)] == [subject]


async def test_token_of_another_purpose_is_invalid(shared_stores: Stores, org: str) -> None:
    token = await shared_stores.account_tokens.issue(TokenPurpose.RESET, TokenSubject(org, address="a@example.org"))
    with pytest.raises(LinkInvalid):
        await shared_stores.account_tokens.find(TokenPurpose.REGISTRATION, token)


def test_tokens_have_256_bits() -> None:
    assert {len(new_token()) for _ in range(50)} == {43}
    assert len({new_token() for _ in range(50)}) == 50
