"""Announcements of counted days on the stream of bounce rates."""

from itertools import pairwise

import pytest

from storage.mail.rate_events import bounce_rates_stream
from storage.mail.rates import day_of
from storage.mongo import Document
from tests.resolvers.people import until_outbox_is_empty
from tests.storage.mail.events import ok, yesterday_noon
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio


async def announced(mail: MailScenario) -> list[Document]:
    """Returns the events of the organization's stream, in order, once none is left to relay."""
    await until_outbox_is_empty(mail.stores)
    stream = bounce_rates_stream(mail.org).name
    return await mail.stores.mongo.find("events", {"_id.s": stream}, sort=[("_id.n", 1)])


async def test_counted_days_are_announced(mail: MailScenario) -> None:
    await mail.add_events(ok(), ok(days=2), ok("bob@other.example"))
    yesterday = day_of(yesterday_noon())
    assert {each["ref"] for each in await announced(mail)} == {yesterday, yesterday - 2}


async def test_announcements_are_far_apart(mail: MailScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.mail.rate_events.EVERY_S", 1.0)
    for number in range(4):
        await mail.add_events(ok(f"a{number}@example.org"), ok(f"b{number}@example.org", days=1))
    events = await announced(mail)
    instants = sorted({each["at"] for each in events})
    assert all((after - before).total_seconds() >= 1 for before, after in pairwise(instants))
    last = {each["ref"] for each in events if each["at"] == instants[-1]}
    yesterday = day_of(yesterday_noon())
    assert last == {yesterday, yesterday - 1}


async def test_rates_of_days_are_read_together(mail: MailScenario) -> None:
    await mail.add_events(ok(), ok("bob@other.example", days=2))
    yesterday = day_of(yesterday_noon())
    rates = await mail.stores.bounce_rates.of_days(mail.org, [yesterday, yesterday - 2])
    assert {day: rates[day].sent for day in (yesterday, yesterday - 2)} == {yesterday: 1, yesterday - 2: 1}
