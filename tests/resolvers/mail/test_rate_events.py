"""Subscription to bounce rates."""

import pytest

from storage.identity.roles import Role
from storage.stores import Stores
from tests.resolvers.people import SignIn
from tests.storage.mail.events import hard, ok, yesterday_noon
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

EVENTS = """
subscription ($since: Cursor) {
  bounceRateEvents(since: $since) {
    type: __typename
    ... on Event { cursor }
    ... on BounceRateChanged { rate { day domain sent bounced rate complaints } }
  }
}
"""


async def test_counted_mail_reaches_operators_and_services(sign_in: SignIn, stores: Stores) -> None:
    day = yesterday_noon().replace(hour=0).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    operator = await sign_in("op-1", "acme", [Role.OPERATOR])
    service = await sign_in("billing", "acme", [Role.SERVICE])
    async with operator.subscribed(EVENTS) as seen, service.subscribed(EVENTS) as also_seen:
        await MailScenario(stores, "globex").add_events(ok("eve@example.org"))
        await MailScenario(stores, "acme").add_events(hard(), *(ok(f"a{number}@example.org") for number in range(3)))
        event = await seen.next_event()
        assert event["type"] == "BounceRateChanged"
        assert event["rate"] == {
            "day": day,
            "domain": None,
            "sent": 4,
            "bounced": 1,
            "rate": 0.25,
            "complaints": 0,
        }
        assert await also_seen.next_event() == event


async def test_rates_resume_after_a_cursor(sign_in: SignIn, stores: Stores) -> None:
    operator, mail = await sign_in("op-1", "acme", [Role.OPERATOR]), MailScenario(stores, "acme")
    async with operator.subscribed(EVENTS) as events:
        await mail.add_events(ok())
        cursor = (await events.next_event())["cursor"]
    await mail.add_events(ok("bob@example.org"))
    async with operator.subscribed(EVENTS, since=cursor) as events:
        assert (await events.next_event())["rate"]["sent"] == 2


async def test_members_may_not_subscribe_to_rates(sign_in: SignIn) -> None:
    member = await sign_in("ann", "acme")
    async for answer in member.answers(EVENTS):
        assert [error["extensions"]["code"] for error in answer["errors"]] == ["FORBIDDEN"]
