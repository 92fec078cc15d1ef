"""The telephony lines through the API. tests/server/test_telephony.py reads them from the settings."""

import pytest

from storage.identity.roles import Role
from tests.resolvers.people import SignIn

pytestmark = pytest.mark.anyio

LINES = "{ done: telephonyLines { provider callerNumber } }"


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
async def test_lines_are_shown_to_operators_and_admins(sign_in: SignIn, role: Role) -> None:
    person = await sign_in("ann", roles=[role])
    assert await person.do(LINES) == [{"provider": "SIMULATOR", "callerNumber": None}]


async def test_lines_for_member_are_forbidden(sign_in: SignIn) -> None:
    assert (await (await sign_in("ann")).fails(LINES))["code"] == "FORBIDDEN"
