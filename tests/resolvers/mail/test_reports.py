"""Queries that explain the address book."""

import pytest

from storage.identity.roles import Role
from storage.mail.rates import day_of
from storage.stores import Stores
from tests.resolvers.people import Person, SignIn
from tests.storage.mail.events import hard, yesterday_noon
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

REPORT = """
query ($address: String!) {
  done: addressReport(address: $address) {
    standing { address blocked verdict { rule } } addressHash policyVersion blockedSince lastDeliveryAt lastComplaintAt
    bounces { bounceClass code source count at }
    changes { id kind at byId by { id } reason addressHash domain policyVersion }
  }
}
"""
CHANGES = """
query ($address: String, $domain: String, $after: ID, $limit: Int! = 50) {
  done: mailChanges(address: $address, domain: $domain, after: $after, limit: $limit) {
    id kind byId by { id } reason addressHash domain policyVersion
  }
}
"""
WORST = """
query ($day: DateTime!, $limit: Int! = 10) {
  done: worstDomains(day: $day, limit: $limit) { domain day sent bounced rate complaints complaintRate }
}
"""
ALARMS = "query ($limit: Int! = 20) { done: bounceAlarms(limit: $limit) { day domain raisedAt sentAt } }"
BLOCKED = """
query ($after: String, $limit: Int! = 50) {
  done: blockedAddresses(after: $after, limit: $limit) { nextAfter items { addressHash domain verdict { rule } } }
}
"""
UNBLOCK = 'mutation { done: unblockAddress(address: "ann@example.org", reason: "asked") { blocked } }'
BLOCK_DOMAIN = (
    'mutation { done: setDomainBlocked(domain: "example.org", blocked: true, reason: "spam trap") { blocked } }'
)
SET_POLICY = (
    'mutation { done: setMailPolicy(policy: {hardBounces: 2}, afterVersion: 0, reason: "gentler") { version } }'
)


@pytest.fixture
async def operator(sign_in: SignIn) -> Person:
    return await sign_in("op-1", "acme", [Role.OPERATOR])


async def test_report_names_evidence_and_changes(operator: Person, stores: Stores) -> None:
    await MailScenario(stores, "acme").add_events(hard(days=1))
    await operator.do(BLOCK_DOMAIN)
    report = await operator.do(REPORT, address="Ann@Example.org")
    assert report["standing"]["address"] == "ann@example.org"
    ((bounce,), (change,)) = (report["bounces"], report["changes"])
    assert (bounce["bounceClass"], bounce["code"], bounce["source"], bounce["count"]) == (
        *("NO_MAILBOX", "550 5.1.1", "mta", 1),
    )
    assert (change["kind"], change["domain"], change["by"], change["reason"]) == (
        *("DOMAIN_BLOCKED", "example.org", {"id": "op-1"}, "spam trap"),
    )
    await operator.do(UNBLOCK)
    (unblocked, _) = (await operator.do(REPORT, address="ann@example.org"))["changes"]
    assert (unblocked["kind"], unblocked["addressHash"]) == ("ADDRESS_UNBLOCKED", report["addressHash"])


async def test_changes_are_listed_in_pages(operator: Person) -> None:
    for mutation in (UNBLOCK, BLOCK_DOMAIN, SET_POLICY):
        await operator.do(mutation)
    changes = await operator.do(CHANGES)
    assert [each["kind"] for each in changes] == ["POLICY_SET", "DOMAIN_BLOCKED", "ADDRESS_UNBLOCKED"]
    assert changes[0]["policyVersion"] == 1
    assert await operator.do(CHANGES, limit=1, after=changes[0]["id"]) == changes[1:2]
    assert await operator.do(CHANGES, address="ANN@example.org") == changes[2:]
    assert await operator.do(CHANGES, domain="Example.org") == changes[1:2]
    assert await operator.do(CHANGES, domain="example.org", address="ann@example.org") == changes[1:]


async def test_worst_domains_and_alarms_are_listed(operator: Person, stores: Stores) -> None:
    await MailScenario(stores, "acme").add_events(hard("a@one.example"), *(hard(f"{n}@two.example") for n in range(2)))
    day = yesterday_noon()
    worst = await operator.do(WORST, day=day.isoformat())
    assert [(each["domain"], each["bounced"], each["complaints"]) for each in worst] == [
        ("two.example", 2, None),
        ("one.example", 1, None),
    ]
    assert await operator.do(WORST, day=day.isoformat(), limit=1) == worst[:1]
    assert await operator.do(ALARMS) == []
    for number, kind in enumerate(("alarm", "alarm two.example", "summary")):
        await stores.reports.claim("acme", day_of(day) - number, kind)
        await stores.reports.claim("globex", day_of(day), kind)
    await stores.reports.mark_sent("acme", day_of(day), "alarm")
    alarms = await operator.do(ALARMS)
    assert [(each["domain"], each["sentAt"] is None) for each in alarms] == [(None, False), ("two.example", True)]
    assert alarms[0]["day"] == day.replace(hour=0).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    for document, more in ((WORST, {"day": day.isoformat()}), (ALARMS, {})):
        assert (await operator.fails(document, limit=101, **more))["field"] == "limit"


async def test_explanations_are_for_operators_and_services(sign_in: SignIn, operator: Person) -> None:
    member, service = await sign_in("m", "acme"), await sign_in("s", "acme", [Role.SERVICE])
    assert await member.code(CHANGES) == "FORBIDDEN"
    assert await member.code(REPORT, address="ann@example.org") == "FORBIDDEN"
    assert await service.do(CHANGES) == []
    assert (await service.do(REPORT, address="ann@example.org"))["bounces"] == []
    assert (await operator.fails(REPORT, address="nonsense"))["field"] == "address"
    assert (await operator.fails(CHANGES, domain="no domain"))["field"] == "domain"
    assert await operator.code(CHANGES, after="nothing") == "NOT_FOUND"
    assert await operator.code(CHANGES, limit=0) == "BAD_USER_INPUT"


async def test_blocked_addresses_are_listed_by_hash(operator: Person, stores: Stores) -> None:
    await MailScenario(stores, "acme").add_events(*(hard(f"{n}@example.org") for n in range(3)))
    pages = [await operator.do(BLOCKED, limit=2)]
    pages.append(await operator.do(BLOCKED, limit=2, after=pages[0]["nextAfter"]))
    assert [len(each["items"]) for each in pages] == [2, 1]
    assert pages[1]["nextAfter"] is None
    hashes = {item["addressHash"] for page in pages for item in page["items"]}
    report = await operator.do(REPORT, address="1@example.org")
    assert len(hashes) == 3
    assert report["addressHash"] in hashes
    assert {item["verdict"]["rule"] for page in pages for item in page["items"]} == {"HARD_BOUNCED"}
    assert (await operator.fails(BLOCKED, after="no hash"))["field"] == "after"
