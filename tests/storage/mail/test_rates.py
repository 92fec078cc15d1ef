"""Bounce rates by day and domain."""

from datetime import timedelta

import pytest

from storage.mail.rates import day_of
from storage.mail.records import BounceRate, DeliveryEvent
from tests.storage.mail.events import event, hard, ok, soft, yesterday_noon
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio


async def daily_counts(mail: MailScenario, domain: str | None = None) -> list[tuple[int, int]]:
    """Returns how many messages were sent and bounced on each of three days, the last of which is yesterday."""
    last_day = day_of(yesterday_noon())
    rates = await mail.stores.bounce_rates.between(mail.org, domain, last_day - 2, last_day)
    assert [each.day for each in rates] == [
        yesterday_noon().replace(hour=0) - timedelta(days=days_back) for days_back in (2, 1, 0)
    ]
    return [(each.sent, each.bounced) for each in rates]


async def test_rates_count_delivered_and_bounced_messages_by_day(mail: MailScenario) -> None:
    await mail.add_events(
        *(ok(f"a{n}@example.org") for n in range(7)),
        hard("b@example.org"),
        hard("b@other.example"),
        soft("c@example.org", message="m"),
        soft("c@example.org", message="m"),
        event("d@example.org", 450, "4.7.1"),
        event("d@example.org", 550, "5.7.1"),
        ok("a@example.org", days=2),
    )
    assert await daily_counts(mail) == [(1, 0), (0, 0), (10, 3)]
    assert await daily_counts(mail, "example.org") == [(1, 0), (0, 0), (9, 2)]
    assert await daily_counts(mail, "new.example") == [(0, 0), (0, 0), (0, 0)]


async def test_rates_count_no_event_of_another_organization(mail: MailScenario) -> None:
    await MailScenario(mail.stores, f"{mail.org}x").add_events(ok(), hard("b@example.org"))
    for domain in (None, "example.org"):
        assert await daily_counts(mail, domain) == [(0, 0)] * 3


async def test_rates_of_day_by_organization(mail: MailScenario) -> None:
    await mail.add_events(ok(), hard("b@example.org"))
    day = day_of(yesterday_noon())
    rate = (await mail.stores.bounce_rates.of_day(day))[mail.org]
    assert (rate.sent, rate.bounced, rate.rate) == (2, 1, 0.5)
    assert await mail.stores.bounce_rates.of_day(day - 300) == {}


async def test_complaints_count_for_the_organization(mail: MailScenario) -> None:
    await mail.add_events(
        *(ok(f"a{n}@example.org") for n in range(4)), event("a0@example.org", complaint=True), event(complaint=True)
    )
    day = day_of(yesterday_noon())
    (rate,) = await mail.stores.bounce_rates.between(mail.org, None, day, day)
    assert (rate.sent, rate.complaints, rate.complaint_rate) == (4, 2, 0.5)
    assert (await mail.stores.bounce_rates.of_day(day))[mail.org] == rate
    (quiet,) = await mail.stores.bounce_rates.between(mail.org, None, day - 1, day - 1)
    assert (quiet.complaints, quiet.complaint_rate) == (0, 0.0)
    for at in (day, day - 1):
        (of_domain,) = await mail.stores.bounce_rates.between(mail.org, "example.org", at, at)
        assert (of_domain.complaints, of_domain.complaint_rate) == (None, None)


async def test_worst_domains_have_most_bounces(mail: MailScenario) -> None:
    await mail.add_events(hard("a@one.example"), hard("b@two.example"), hard("c@two.example"), ok("d@three.example"))
    worst = await mail.stores.bounce_rates.worst_domains(mail.org, day_of(yesterday_noon()))
    assert [(each.domain, each.sent, each.bounced) for each in worst] == [("two.example", 2, 2), ("one.example", 1, 1)]


async def test_highest_rates_need_enough_mail(mail: MailScenario) -> None:
    def mail_to(domain: str, delivered: int, bounced: int, days: float = 0) -> list[DeliveryEvent]:
        events = [ok] * delivered + [hard] * bounced
        return [event(f"a{n}@{domain}", days=days) for n, event in enumerate(events)]

    await mail.add_events(
        *mail_to("small.example", 35, 15), *mail_to("big.example", 190, 10), *mail_to("fine.example", 60, 0)
    )
    await mail.add_events(*mail_to("tiny.example", 0, 49), *mail_to("past.example", 0, 60, days=1))
    day, rates = day_of(yesterday_noon()), mail.stores.bounce_rates

    async def highest(day: int, above: float) -> list[tuple[str | None, float]]:
        return [(each.domain, each.rate) for org, each in await rates.highest(day, above) if org == mail.org]

    assert await highest(day, 0) == [("small.example", 0.3), ("big.example", 0.05)]
    assert await highest(day, 0.05) == [("small.example", 0.3)]
    assert await highest(day - 1, 0.05) == [("past.example", 1.0)]


def test_rate_without_mail_is_zero() -> None:
    assert BounceRate(yesterday_noon(), None, 0, 0).rate == 0.0
