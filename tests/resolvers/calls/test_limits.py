"""Call limits and the do-not-call list through the API."""

import pytest

from storage.identity.roles import Role
from tests.resolvers.calls.test_jobs import LIMITS
from tests.resolvers.people import Person, SignIn

pytestmark = pytest.mark.anyio

READ = "{ done: callLimits { id concurrentCalls callsPerSecond activeCalls } }"
IS_LISTED = "query ($n: [String!]!) { done: doNotCall(phoneNumbers: $n) }"
ADD = "mutation ($n: [String!]!) { done: addDoNotCall(phoneNumbers: $n) }"


@pytest.fixture
async def ann(sign_in: SignIn) -> Person:
    return await sign_in("ann", roles=[Role.ADMIN])


async def test_default_limits_are_one_call_and_one_per_second(ann: Person) -> None:
    default = {"id": "CallLimits:acme", "concurrentCalls": 1, "callsPerSecond": 1.0, "activeCalls": 0}
    assert await ann.do(READ) == default
    await ann.do(LIMITS, input={"concurrentCalls": 0, "callsPerSecond": 0.1})
    assert await ann.do(READ) == default | {"concurrentCalls": 0, "callsPerSecond": 0.1}


@pytest.mark.parametrize(
    ("concurrent", "rate", "field"),
    [(-1, 1, "concurrentCalls"), (1001, 1, "concurrentCalls"), (1, 0.05, "callsPerSecond"), (1, 101, "callsPerSecond")],
)
async def test_limits_out_of_bounds_are_refused(ann: Person, concurrent: int, rate: float, field: str) -> None:
    assert (await ann.fails(LIMITS, input={"concurrentCalls": concurrent, "callsPerSecond": rate}))["field"] == field


async def test_do_not_call_numbers_are_normalized(ann: Person) -> None:
    assert await ann.do(ADD, n=["+81 90-1234-5678", "+819012345678", "+12025550143"]) == 2
    assert await ann.do(ADD, n=["+12025550143"]) == 0
    assert await ann.do(IS_LISTED, n=["+12025550144", "+1 202 555 0143", "+819012345678"]) == [False, True, True]
    remove = ADD.replace("addDoNotCall", "removeDoNotCall")
    assert await ann.do(remove, n=["+12025550143", "+12025550144"]) == 1
    assert await ann.do(IS_LISTED, n=["+12025550143"]) == [False]
    assert (await ann.fails(ADD, n=["090"]))["field"] == "phoneNumbers"
    assert (await ann.fails(ADD, n=["+819012345678"] * 1001))["field"] == "phoneNumbers"


@pytest.mark.parametrize(
    "text", ["+81 90 1234 9999 (mobile)", "+819012349999 Bob", "+819012349999.00", "+81 9O 1234 9999"]
)
async def test_text_with_a_number_is_refused_by_its_index(ann: Person, text: str) -> None:
    for field in (ADD, ADD.replace("addDoNotCall", "removeDoNotCall"), IS_LISTED):
        (error,) = (await ann.execute(field, n=["+819012345678", text]))["errors"]
        assert (error["extensions"]["code"], error["extensions"]["field"]) == ("BAD_USER_INPUT", "phoneNumbers")
        assert error["message"].startswith("phoneNumbers[1]: Invalid phone number: ")
    assert await ann.do(IS_LISTED, n=["+819012345678"]) == [False]
