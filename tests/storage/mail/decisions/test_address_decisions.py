"""Blocking and unblocking addresses by hand: recorded for each address, and safe to repeat."""

import asyncio
from typing import Any

import pytest

from storage.errors import Forbidden
from storage.identity.audit import Actor
from storage.mail.addresses import Address
from storage.mail.decisions import address_decisions
from storage.mail.decisions.address_decisions import AddressDecision
from storage.mail.decisions.policies import BounceTreatment, MailPolicy
from storage.mail.records import VerdictRule
from tests.storage.mail.events import hard, ok
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

NOTHING_BLOCKS = MailPolicy(dict.fromkeys(MailPolicy().treatments, BounceTreatment.IGNORED), complaints_block=False)


def people(count: int) -> list[Address]:
    return [Address(f"a{number}@example.org", "example.org") for number in range(count)]


def decision(mail: MailScenario, blocked: bool, reason: str = "asked", actor: Actor | None = None) -> AddressDecision:
    return AddressDecision(mail.org, blocked, "op", reason, actor)


async def entries(mail: MailScenario) -> list[Any]:
    return await mail.stores.mongo["mail_audit"].find({"org": mail.org}).to_list(None)


async def test_block_by_hand_lasts_until_it_is_ended(mail: MailScenario) -> None:
    book, (ann,) = mail.stores.address_book, people(1)
    await mail.add_events(hard(ann.text))
    assert await book.decisions.store([ann], decision(mail, True, "moved away")) == 1
    standing = await mail.standing(ann.text)
    assert (standing.blocked, standing.verdict.rule, standing.hard_bounce) == (True, VerdictRule.BY_HAND, 1)
    assert "Blocked by op" in standing.verdict.detail
    assert "moved away" in standing.verdict.detail
    await mail.add_events(ok(ann.text))
    await book.policies.set(mail.org, NOTHING_BLOCKS, 0, "op", "", None)
    assert (await mail.standing(ann.text)).verdict.rule is VerdictRule.BY_HAND, "No delivery and no policy ends it."
    assert await book.decisions.store([ann], decision(mail, False)) == 1
    assert (await mail.standing(ann.text)).verdict.rule is VerdictRule.UNBLOCKED


async def test_each_address_is_recorded_once(mail: MailScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_decisions, "BATCH", 3)
    decisions, addresses = mail.stores.address_book.decisions, people(7)
    assert await decisions.store([*addresses, *addresses], decision(mail, True)) == 7
    assert await decisions.store(addresses, decision(mail, True)) == 0
    assert len(await entries(mail)) == 7
    assert await decisions.store(addresses[:2], decision(mail, True, "again")) == 2
    assert {(each["action"], each["by"]) for each in await entries(mail)} == {("block", "op")}
    assert len(await entries(mail)) == 9


async def test_concurrent_decisions_record_what_is_stored(mail: MailScenario) -> None:
    decisions, addresses = mail.stores.address_book.decisions, people(5)
    await asyncio.gather(
        *(decisions.store(addresses, decision(mail, True, f"reason {number}")) for number in range(6)),
        mail.add_events(*(hard(each.text) for each in addresses)),
    )
    standings = await mail.standings([each.text for each in addresses])
    assert {each.verdict.rule for each in standings} == {VerdictRule.BY_HAND}
    assert [each.hard_bounce for each in standings] == [1] * 5
    assert len(await entries(mail)) == 30


async def test_actor_without_the_role_changes_nothing(mail: MailScenario) -> None:
    nobody = Actor(mail.org, "nobody")
    with pytest.raises(Forbidden):
        await mail.stores.address_book.decisions.store(people(2), decision(mail, True, actor=nobody))
    assert await entries(mail) == []
    assert not any(each.blocked for each in await mail.standings([each.text for each in people(2)]))
