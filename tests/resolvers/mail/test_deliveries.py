"""Recording delivery events through the API."""

import pytest

from storage.identity.roles import Role
from storage.ids import new_id
from storage.stores import Stores
from tests.resolvers.people import Person, SignIn
from tests.storage.mail.events import yesterday_noon
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

RECORD = """
mutation ($events: [DeliveryEventInput!]!) {
  done: recordDeliveries(events: $events) { accepted duplicates rejected { index eventId message } }
}
"""


@pytest.fixture
async def service(sign_in: SignIn) -> Person:
    return await sign_in("mta-1", "acme", [Role.SERVICE])


@pytest.fixture
def mail(stores: Stores) -> MailScenario:
    return MailScenario(stores, "acme")


def event(**more: object) -> dict[str, object]:
    return {"eventId": new_id(), "address": "ann@example.org", "at": yesterday_noon().isoformat(), **more}


async def test_record_deliveries_counts_events_once(service: Person, mail: MailScenario) -> None:
    events = [event(smtpCode=550, enhancedStatus="5.1.1", diagnostic="User unknown", messageId="4Q"), event()]
    assert await service.do(RECORD, events=events) == {"accepted": 2, "duplicates": 0, "rejected": []}
    assert await service.do(RECORD, events=events) == {"accepted": 0, "duplicates": 2, "rejected": []}
    assert await mail.aggregate() == 2
    standing = await mail.standing()
    assert (standing.hard_bounce, standing.soft_bounce) == (1, 0)


async def test_record_deliveries_complaint_blocks_address(service: Person, mail: MailScenario) -> None:
    await service.do(RECORD, events=[event(kind="COMPLAINT")])
    await mail.aggregate()
    assert (await mail.standing()).blocked


async def test_record_deliveries_rejects_invalid_events_by_index(service: Person) -> None:
    events = [event(), event(address="nobody", eventId="bad"), event(at="2020-01-01T00:00:00Z", smtpCode=None)]
    result = await service.do(RECORD, events=events)
    assert result["accepted"] == 1
    assert [(each["index"], each["message"].partition(":")[0]) for each in result["rejected"]] == [
        (1, "address"),
        (2, "at"),
    ]
    assert result["rejected"][0]["eventId"] == "bad"


async def test_record_deliveries_accepts_at_most_1000(service: Person) -> None:
    assert (await service.do(RECORD, events=[event() for _ in range(1000)]))["accepted"] == 1000
    extensions = await service.fails(RECORD, events=[event() for _ in range(1001)])
    assert (extensions["code"], extensions["field"]) == ("BAD_USER_INPUT", "events")


async def test_record_deliveries_empty_list_succeeds(service: Person) -> None:
    assert await service.do(RECORD, events=[]) == {"accepted": 0, "duplicates": 0, "rejected": []}
