"""Queries and mutations of the address book."""

from datetime import timedelta

import pytest

from storage.identity.roles import Role
from storage.stores import Stores
from tests.resolvers.people import Person, SignIn
from tests.storage.mail.events import event, hard, ok, soft, yesterday_noon
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

BOOK = """
query ($addresses: [String!]!) {
  done: addressBook(addresses: $addresses) {
    address normalized blocked verdict { rule detail } success softBounce hardBounce lastEventAt
    domain { id domain success softBounce hardBounce blocked verdict { rule detail } }
  }
}
"""
DOMAINS = "query ($domains: [String!]!) { done: domainStandings(domains: $domains) { id blocked verdict { rule } } }"
RATES = """
query ($domain: String, $from: DateTime!, $to: DateTime!) {
  done: bounceRates(domain: $domain, from: $from, to: $to) { day domain sent bounced rate }
}
"""
UNBLOCK = """
mutation ($address: String!, $reason: String!) {
  done: unblockAddress(address: $address, reason: $reason) { blocked hardBounce verdict { rule detail } }
}
"""
SET_BLOCKED = """
mutation ($domain: String!, $blocked: Boolean, $reason: String!) {
  done: setDomainBlocked(domain: $domain, blocked: $blocked, reason: $reason) { domain blocked verdict { rule detail } }
}
"""


DECIDE = """
mutation ($addresses: [String!]!, $reason: String!) {
  done: %s(addresses: $addresses, reason: $reason) { address blocked verdict { rule detail } }
}
"""
BLOCK_ALL, UNBLOCK_ALL = DECIDE % "blockAddresses", DECIDE % "unblockAddresses"


@pytest.fixture
async def operator(sign_in: SignIn) -> Person:
    return await sign_in("op-1", "acme", [Role.OPERATOR])


@pytest.fixture
def mail(stores: Stores) -> MailScenario:
    return MailScenario(stores, "acme")


async def test_address_book_gives_standing_and_verdict(operator: Person, mail: MailScenario) -> None:
    await mail.add_events(ok("ann@example.org"), hard("Bob@Example.org"))
    (ann, bob, malformed) = await operator.do(BOOK, addresses=["ann@example.org", "bob@EXAMPLE.org", "malformed"])
    assert (ann["blocked"], ann["success"], ann["verdict"]["rule"]) == (False, 1, "DELIVERABLE")
    assert (bob["blocked"], bob["hardBounce"], bob["verdict"]["rule"]) == (True, 1, "HARD_BOUNCED")
    assert "550 5.1.1 (no such mailbox)" in bob["verdict"]["detail"]
    assert (bob["address"], bob["normalized"]) == ("bob@EXAMPLE.org", "bob@example.org")
    assert bob["lastEventAt"] == yesterday_noon().isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert bob["domain"]["hardBounce"] == bob["domain"]["success"] == 1
    assert (malformed["normalized"], malformed["domain"], malformed["blocked"]) == (None, None, True)


async def test_lookups_accept_at_most_1000(operator: Person) -> None:
    assert len(await operator.do(BOOK, addresses=["ann@example.org"] * 1000)) == 1000
    for query, name in ((BOOK, "addresses"), (DOMAINS, "domains")):
        extensions = await operator.fails(query, **{name: ["example.org"] * 1001})
        assert (extensions["code"], extensions["field"]) == ("BAD_USER_INPUT", name)


async def test_domain_standings_keep_order(operator: Person, mail: MailScenario) -> None:
    await mail.add_events(event("ann@gone.example", 550, "5.1.2"))
    standings = await operator.do(DOMAINS, domains=["new.example", "GONE.example", "no domain"])
    domains = ["new.example", "gone.example", "no domain"]
    assert [each["id"] for each in standings] == [f"DomainStanding:{each}" for each in domains]
    assert [each["verdict"]["rule"] for each in standings] == ["UNKNOWN_ADDRESS", "DOMAIN_DEAD", "INVALID_ADDRESS"]


async def test_bounce_rates_by_day_and_domain(operator: Person, mail: MailScenario) -> None:
    await mail.add_events(*(ok(f"a{n}@example.org") for n in range(49)), hard("b@example.org"), soft("c@other.example"))
    days = {"from": (yesterday_noon() - timedelta(days=1)).isoformat(), "to": yesterday_noon().isoformat()}
    before, day = await operator.do(RATES, **days)
    assert (before["sent"], before["rate"]) == (0, 0.0)
    assert (day["domain"], day["sent"], day["bounced"]) == (None, 51, 2)
    (_, day) = await operator.do(RATES, domain="EXAMPLE.org", **days)
    assert (day["domain"], day["sent"], day["bounced"], day["rate"]) == ("example.org", 50, 1, 0.02)


@pytest.mark.parametrize(
    ("change", "field"),
    [({"to": "2026-01-01T00:00:00Z"}, "to"), ({"to": "2028-02-01T00:00:00Z"}, "to"), ({"domain": "x"}, "domain")],
)
async def test_bounce_rates_check_arguments(operator: Person, change: dict[str, str], field: str) -> None:
    variables = {"from": "2026-11-01T00:00:00Z", "to": "2026-11-02T00:00:00Z", **change}
    extensions = await operator.fails(RATES, **variables)
    assert (extensions["code"], extensions["field"]) == ("BAD_USER_INPUT", field)


async def test_unblock_address_records_operator_and_reason(operator: Person, mail: MailScenario) -> None:
    await mail.add_events(hard())
    standing = await operator.do(UNBLOCK, address="Ann@example.org", reason="typo in our list")
    assert (standing["blocked"], standing["hardBounce"], standing["verdict"]["rule"]) == (False, 0, "UNBLOCKED")
    assert "op-1" in standing["verdict"]["detail"]
    assert "typo in our list" in standing["verdict"]["detail"]


async def test_domain_is_blocked_by_hand_and_unblocked(operator: Person, mail: MailScenario) -> None:
    domain = await operator.do(SET_BLOCKED, domain="Example.ORG", blocked=True, reason="spam trap")
    assert (domain["domain"], domain["blocked"], domain["verdict"]["rule"]) == ("example.org", True, "BY_HAND")
    (standing,) = await operator.do(BOOK, addresses=["ann@example.org"])
    assert (standing["blocked"], standing["verdict"]["rule"]) == (True, "BY_HAND")
    domain = await operator.do(SET_BLOCKED, domain="example.org", blocked=None, reason="gone")
    assert (domain["blocked"], domain["verdict"]["rule"]) == (False, "UNKNOWN_ADDRESS")


@pytest.mark.parametrize(
    ("query", "change", "field"),
    [
        (UNBLOCK, {"address": "nobody"}, "address"),
        (UNBLOCK, {"reason": " "}, "reason"),
        (SET_BLOCKED, {"domain": "nowhere"}, "domain"),
        (SET_BLOCKED, {"reason": "x" * 501}, "reason"),
    ],
)
async def test_operator_change_checks_arguments(
    operator: Person, query: str, change: dict[str, str], field: str
) -> None:
    variables = {"address": "ann@example.org", "domain": "example.org", "reason": "why", **change}
    unused = "domain" if "address" in query.partition("{")[0] else "address"
    variables.pop(unused)
    extensions = await operator.fails(query, **variables)
    assert (extensions["code"], extensions["field"]) == ("BAD_USER_INPUT", field)


async def test_addresses_are_blocked_and_unblocked_together(operator: Person, sign_in: SignIn) -> None:
    written = ["Ann@example.org", "bob@example.org", "ann@EXAMPLE.org"]
    blocked = await operator.do(BLOCK_ALL, addresses=written, reason="asked by phone")
    assert [(each["address"], each["blocked"], each["verdict"]["rule"]) for each in blocked] == [
        (each, True, "BY_HAND") for each in written
    ]
    assert "asked by phone" in blocked[0]["verdict"]["detail"]
    assert await operator.do(BLOCK_ALL, addresses=written, reason="asked by phone") == blocked
    unblocked = await operator.do(UNBLOCK_ALL, addresses=written, reason="asked again")
    assert {each["verdict"]["rule"] for each in unblocked} == {"UNBLOCKED"}
    service = await sign_in("s", "acme", [Role.SERVICE])
    for document in (BLOCK_ALL, UNBLOCK_ALL):
        assert await service.code(document, addresses=written, reason="why") == "FORBIDDEN"


@pytest.mark.parametrize(
    ("addresses", "reason", "field"),
    [
        (["ann@example.org", "nonsense"], "why", "addresses.1"),
        ([], "why", "addresses"),
        (["ann@example.org"] * 1001, "why", "addresses"),
        (["ann@example.org"], "", "reason"),
    ],
)
async def test_invalid_decision_about_addresses_changes_nothing(
    operator: Person, addresses: list[str], reason: str, field: str
) -> None:
    for document in (BLOCK_ALL, UNBLOCK_ALL):
        error = await operator.fails(document, addresses=addresses, reason=reason)
        assert (error["code"], error["field"]) == ("BAD_USER_INPUT", field)
    (standing,) = await operator.do(BOOK, addresses=["ann@example.org"])
    assert standing["verdict"]["rule"] == "UNKNOWN_ADDRESS"
