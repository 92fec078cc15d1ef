"""Versions of a policy: one writer wins each version, and lookups apply the present one."""

import asyncio

import pytest

from storage.errors import Conflict
from storage.mail.decisions import policy_versions
from storage.mail.decisions.bounce_classes import BounceClass
from storage.mail.decisions.policies import (
    DEFAULT_POLICY,
    DEFAULT_TREATMENTS,
    BounceTreatment,
    MailPolicy,
    MailPolicyVersion,
)
from storage.mail.decisions.policy_versions import MailPolicies
from tests.storage.mail.events import hard, soft
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

STRICT = MailPolicy({**DEFAULT_TREATMENTS, BounceClass.FULL: BounceTreatment.IGNORED}, 2, 5, 30, 60, False)


async def test_policy_is_read_as_it_was_set(mail: MailScenario) -> None:
    policies = mail.stores.address_book.policies
    assert await policies.current(mail.org) == MailPolicyVersion(mail.org, 0, DEFAULT_POLICY)
    first = await policies.set(mail.org, STRICT, 0, "op", "full mailboxes come back", None)
    assert (first.version, first.policy, first.set_by_id, first.reason) == (1, STRICT, "op", "full mailboxes come back")
    assert await policies.current(mail.org) == first
    second = await policies.set(mail.org, DEFAULT_POLICY, 1, "op", "back", None)
    assert await policies.versions(mail.org, 10) == [second, first]
    assert await policies.versions(mail.org, 1) == [second]


async def test_one_of_concurrent_writers_wins(mail: MailScenario) -> None:
    async def write(number: int) -> int | None:
        policies = MailPolicies(mail.stores.mongo)
        try:
            return (await policies.set(mail.org, MailPolicy(soft_bounce_days=number), 0, "op", "", None)).version
        except Conflict:
            return None

    results = await asyncio.gather(*map(write, range(1, 9)))
    assert sorted(results, key=str) == [1, *[None] * 7]
    (stored,) = await mail.stores.address_book.policies.versions(mail.org, 10)
    assert results[stored.policy.soft_bounce_days - 1] == 1, "The answer to the writer whose policy is stored says so."


async def test_repeated_change_makes_no_version(mail: MailScenario) -> None:
    policies = mail.stores.address_book.policies
    first = await policies.set(mail.org, STRICT, 0, "op", "", None)
    assert await policies.set(mail.org, STRICT, 0, "op", "", None) == first
    with pytest.raises(Conflict, match="version 1"):
        await policies.set(mail.org, DEFAULT_POLICY, 0, "op", "", None)
    with pytest.raises(Conflict, match="version 1"):
        await policies.set(mail.org, STRICT, 0, "another", "", None)
    assert len(await policies.versions(mail.org, 10)) == 1


async def test_lookups_apply_the_present_policy_to_earlier_bounces(mail: MailScenario) -> None:
    await mail.add_events(
        hard("gone@example.org"),
        *(soft("full@example.org", days=day) for day in range(3)),
        *(soft("once@example.org") for _ in range(2)),
    )
    addresses = ["gone@example.org", "full@example.org", "once@example.org"]

    async def blocked() -> list[bool]:
        return [each.blocked for each in await mail.standings(addresses)]

    assert await blocked() == [True, True, False]
    policies = mail.stores.address_book.policies
    await policies.set(mail.org, MailPolicy(hard_bounces=2, soft_bounce_days=1), 0, "op", "", None)
    assert await blocked() == [False, True, True]
    await policies.set(mail.org, DEFAULT_POLICY, 1, "op", "", None)
    assert await blocked() == [True, True, False]


async def test_another_process_applies_a_change_after_its_cache(
    mail: MailScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_versions, "POLICY_TTL_S", 0.0)
    other = MailPolicies(mail.stores.mongo)
    assert (await other.current(mail.org)).version == 0
    await mail.stores.address_book.policies.set(mail.org, STRICT, 0, "op", "", None)
    assert (await other.current(mail.org)).policy == STRICT


async def test_cache_of_policies_has_an_end(mail: MailScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_versions, "MAX_CACHED_POLICIES", 3)
    policies = MailPolicies(mail.stores.mongo)
    for number in range(10):
        await policies.current(f"{mail.org}-{number}")
    assert len(policies._cache) <= 3
