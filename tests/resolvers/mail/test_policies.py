"""Queries and mutations of mail policies."""

from typing import Any

import pytest

from storage.identity.roles import Role
from storage.mail.decisions.policies import DEFAULT_POLICY
from storage.mail.decisions.policy_versions import MailPolicies
from storage.stores import Stores
from tests.resolvers.people import Person, SignIn
from tests.storage.mail.events import hard, soft
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

FIELDS = """
  version hardBounces softBounceDays softWindowDays softBlockDays complaintsBlock reason setAt setBy { id }
  treatments { bounceClass treatment }
"""
POLICY = f"{{ done: mailPolicy {{ {FIELDS} }} }}"
VERSIONS = f"query ($limit: Int!) {{ done: mailPolicyVersions(limit: $limit) {{ {FIELDS} }} }}"
SET = f"""
mutation ($policy: MailPolicyInput!, $after: Int!, $reason: String!) {{
  done: setMailPolicy(policy: $policy, afterVersion: $after, reason: $reason) {{ {FIELDS} }}
}}
"""
DRY_RUN = """
query ($policy: MailPolicyInput!, $after: String) {
  done: mailPolicyDryRun(policy: $policy, after: $after) {
    version checked blocked freed nextAfter
    changes { addressHash domain blocked before { rule detail } after { rule detail } }
  }
}
"""
BOOK = "query ($addresses: [String!]!) { done: addressBook(addresses: $addresses) { blocked verdict { rule } } }"


@pytest.fixture
async def operator(sign_in: SignIn) -> Person:
    return await sign_in("op-1", "acme", [Role.OPERATOR])


@pytest.fixture
def mail(stores: Stores) -> MailScenario:
    return MailScenario(stores, "acme")


def treatments(policy: dict[str, Any]) -> dict[str, str]:
    return {each["bounceClass"]: each["treatment"] for each in policy["treatments"]}


async def test_policy_is_tried_and_then_set(operator: Person, mail: MailScenario) -> None:
    await mail.add_events(hard("gone@example.org"), *(soft("full@example.org", days=day) for day in range(3)))
    policy = {"treatments": [{"bounceClass": "FULL", "treatment": "IGNORED"}], "softWindowDays": 30}
    tried = await operator.do(DRY_RUN, policy=policy)
    assert (tried["version"], tried["checked"], tried["blocked"], tried["freed"]) == (0, 2, 0, 1)
    (change,) = tried["changes"]
    assert (change["domain"], change["blocked"], change["before"]["rule"], change["after"]["rule"]) == (
        *("example.org", False, "SOFT_BOUNCED_REPEATEDLY", "ONLY_BOUNCES"),
    )
    changed = await operator.do(SET, policy=policy, after=0, reason="full mailboxes come back")
    assert (changed["version"], changed["softWindowDays"], changed["hardBounces"]) == (1, 30, 1)
    assert (changed["reason"], changed["setBy"]) == ("full mailboxes come back", {"id": "op-1"})
    assert (treatments(changed)["FULL"], treatments(changed)["NO_MAILBOX"]) == ("IGNORED", "HARD")
    assert await operator.do(POLICY) == changed
    assert await operator.do(VERSIONS, limit=5) == [changed]
    standings = await operator.do(BOOK, addresses=["gone@example.org", "full@example.org"])
    assert [each["blocked"] for each in standings] == [True, False]


async def test_organization_without_a_policy_has_version_0(operator: Person) -> None:
    policy = await operator.do(POLICY)
    assert (policy["version"], policy["softBounceDays"], policy["softWindowDays"], policy["complaintsBlock"]) == (
        *(0, 3, None, True),
    )
    assert (policy["reason"], policy["setAt"], policy["setBy"]) == (None, None, None)
    assert len(policy["treatments"]) == 9


async def test_change_in_another_process_is_read_at_once(operator: Person, stores: Stores) -> None:
    # A lookup caches version 0 in this process.
    await operator.do(BOOK, addresses=["ann@example.org"])
    await MailPolicies(stores.mongo).set("acme", DEFAULT_POLICY, 0, "op-2", "why", None)
    assert (await operator.do(POLICY))["version"] == 1
    assert (await operator.do(DRY_RUN, policy={"hardBounces": 2}))["version"] == 1


async def test_change_of_a_superseded_version_is_a_conflict(operator: Person) -> None:
    await operator.do(SET, policy={"hardBounces": 2}, after=0, reason="one")
    assert await operator.code(SET, policy={"hardBounces": 3}, after=0, reason="two") == "CONFLICT"
    assert (await operator.do(SET, policy={"hardBounces": 2}, after=0, reason="one"))["version"] == 1
    assert (await operator.do(SET, policy={"hardBounces": 3}, after=1, reason="two"))["version"] == 2


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"hardBounces": 0}, "hardBounces"),
        ({"hardBounces": 11}, "hardBounces"),
        ({"softBounceDays": 15}, "softBounceDays"),
        ({"softWindowDays": 2}, "softWindowDays"),
        ({"softWindowDays": 366}, "softWindowDays"),
        ({"softBlockDays": 0}, "softBlockDays"),
        (
            {"treatments": [{"bounceClass": "FULL", "treatment": each} for each in ("HARD", "SOFT")]},
            "treatments.1.bounceClass",
        ),
    ],
)
async def test_invalid_policy_names_its_field(operator: Person, policy: dict[str, Any], field: str) -> None:
    for document, more in ((SET, {"after": 0, "reason": "why"}), (DRY_RUN, {})):
        error = await operator.fails(document, policy=policy, **more)
        assert (error["code"], error["field"]) == ("BAD_USER_INPUT", field)
    assert (await operator.do(POLICY))["version"] == 0


async def test_only_operators_set_policies(sign_in: SignIn, operator: Person) -> None:
    member, service = await sign_in("m", "acme"), await sign_in("s", "acme", [Role.SERVICE])
    assert await member.code(POLICY) == "FORBIDDEN"
    assert await member.code(VERSIONS, limit=1) == "FORBIDDEN"
    assert await member.code(DRY_RUN, policy={}) == "FORBIDDEN"
    assert (await service.do(POLICY))["version"] == 0
    assert await service.do(VERSIONS, limit=1) == []
    assert (await service.do(DRY_RUN, policy={}))["changes"] == []
    assert await service.code(SET, policy={}, after=0, reason="why") == "FORBIDDEN"
    assert await operator.code(VERSIONS, limit=101) == "BAD_USER_INPUT"
    assert await operator.code(DRY_RUN, policy={}, after="no hash") == "BAD_USER_INPUT"


async def test_policy_of_another_organization_is_its_own(operator: Person, sign_in: SignIn) -> None:
    await operator.do(SET, policy={"hardBounces": 2}, after=0, reason="ours")
    other = await sign_in("op-2", "globex", [Role.OPERATOR])
    assert (await other.do(POLICY))["version"] == 0
    assert await other.do(VERSIONS, limit=5) == []
