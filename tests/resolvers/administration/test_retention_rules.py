"""Retention rules through the API: who sets them, their bounds, and one entry of the audit log for each change."""

import asyncio

import pytest

from storage.identity.audit import AuditAction, AuditFilter
from storage.identity.roles import Role
from tests.resolvers.people import SignIn

pytestmark = pytest.mark.anyio

RULES = "{ retentionRules { data days defaultDays minDays maxDays setAt setBy { id } } }"
SET = """
mutation ($data: RetainedData!, $days: Int) {
  done: setRetentionRule(data: $data, days: $days) { data days setBy { id } }
}
"""
DEFAULTS = {
    "PHONE_NUMBERS": (None, None, 1, 3650),
    "CALL_VARIABLES": (None, None, 1, 3650),
    "MAIL_LEDGER": (14, 14, 1, 14),
    "DIRECT_MESSAGES": (None, None, 1, 3650),
}


async def test_rules_without_change_are_the_defaults(sign_in: SignIn) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    rules = (await ada.run(RULES))["retentionRules"]
    assert {
        rule["data"]: (rule["days"], rule["defaultDays"], rule["minDays"], rule["maxDays"]) for rule in rules
    } == DEFAULTS
    assert [(rule["setAt"], rule["setBy"]) for rule in rules] == [(None, None)] * 4


async def test_only_administrators_see_and_set_rules(sign_in: SignIn) -> None:
    for role in (Role.MEMBER, Role.OPERATOR, Role.SERVICE):
        other = await sign_in(f"user-{role.value}", roles=[role])
        assert await other.code(RULES) == "FORBIDDEN"
        assert await other.code(SET, data="MAIL_LEDGER", days=7) == "FORBIDDEN"


async def test_days_out_of_bounds_are_refused(sign_in: SignIn) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    for data, days in (("MAIL_LEDGER", 15), ("MAIL_LEDGER", 0), ("PHONE_NUMBERS", 3651), ("CALL_VARIABLES", -1)):
        failure = await ada.fails(SET, data=data, days=days)
        assert (failure["code"], failure["field"]) == ("BAD_USER_INPUT", "days")


async def test_equal_concurrent_changes_leave_one_entry(sign_in: SignIn) -> None:
    ada, eve = await sign_in("ada", roles=[Role.ADMIN]), await sign_in("eve", roles=[Role.ADMIN])
    other = await sign_in("ada", "other", roles=[Role.ADMIN])
    rules = await asyncio.gather(*(person.do(SET, data="PHONE_NUMBERS", days=30) for person in (ada, eve) * 3))
    (setter,) = {each["setBy"]["id"] for each in rules}
    assert {each["days"] for each in rules} == {30}
    await ada.do(SET, data="PHONE_NUMBERS", days=7)
    assert await eve.do(SET, data="PHONE_NUMBERS") == {"data": "PHONE_NUMBERS", "days": None, "setBy": None}
    await eve.do(SET, data="MAIL_LEDGER", days=14)
    entries = await ada.stores.audit.list_entries("acme", AuditFilter(), None, 10)
    assert {(entry.action, entry.target_id) for entry in entries} == {(AuditAction.RETENTION_RULE_SET, "PHONE_NUMBERS")}
    assert [(entry.actor_id, *(detail.value for detail in entry.details)) for entry in entries] == [
        ("eve", "7 days", "for good"),
        ("ada", "30 days", "7 days"),
        (setter, "for good", "30 days"),
    ]
    assert [rule["days"] for rule in (await other.run(RULES))["retentionRules"]] == [None, None, 14, None]
