"""Daily summaries: what they hold, whose day is recorded, and when an organization is closed."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from storage.ids import UserKey
from storage.publishing.attention import HoldForAttention
from storage.publishing.records import PublishingPhase
from storage.publishing.reports.records import ReportReason
from storage.publishing.reports.summaries import SummaryContent, next_morning
from storage.publishing.transitions import MANUAL, BeginAttempt, MarkFailed, MarkPublished, MarkUnknown
from tests.resolvers.people import until_outbox_is_empty
from tests.storage.publishing.scenario import PublishingScenario, account_target


@pytest.mark.parametrize(
    ("after", "zone", "morning"),
    [
        (datetime(2026, 11, 22, 7, 59, tzinfo=UTC), "UTC", datetime(2026, 11, 22, 8, tzinfo=UTC)),
        (datetime(2026, 11, 22, 8, tzinfo=UTC), "UTC", datetime(2026, 11, 23, 8, tzinfo=UTC)),
        (datetime(2026, 11, 22, 20, tzinfo=UTC), "Asia/Tokyo", datetime(2026, 11, 22, 23, tzinfo=UTC)),
        (datetime(2026, 3, 28, 12, tzinfo=UTC), "Europe/Berlin", datetime(2026, 3, 29, 6, tzinfo=UTC)),
    ],
)
def test_morning_is_local(after: datetime, zone: str, morning: datetime) -> None:
    assert next_morning(after, zone) == morning


def numbers(content: SummaryContent) -> dict[str, int]:
    return {reason.value: len(found) for reason, found in content.publications.items() if found}


@pytest.mark.anyio
async def test_content_has_what_ended_since_and_what_waits(scenario: PublishingScenario) -> None:
    stores, account = scenario.stores, await scenario.connect_account()
    apply, content = stores.scheduled_posts.apply, stores.publication_summaries.content
    before = await scenario.now()
    assert (await content(scenario.organization_id, before)).is_empty
    posts = [await scenario.schedule(account_target(account), in_s=1) for _ in range(5)]
    await scenario.pass_time(181)
    claimed = {each.scheduled_post_id: each for each in await stores.claims.claim(1000)}
    failed, held, unknown, late, working = [claimed[post.id] for post in posts]
    begun = [await apply(BeginAttempt(each, PublishingPhase.CALLING, "k")) for each in (unknown, late, working)]
    await apply(MarkFailed(failed, "REFUSED", "no"))
    await apply(HoldForAttention(held, "UNAUTHORIZED", "no", await scenario.credentials_nonce(held)))
    await apply(MarkUnknown(begun[0], "no answer", MANUAL))
    await apply(MarkPublished(begun[1], "id", None))
    found = await content(scenario.organization_id, before)
    assert numbers(found) == {"FAILED": 1, "NEEDS_ATTENTION": 1, "UNKNOWN": 1, "LATE": 1}
    assert [each.id for each in found.publications[ReportReason.LATE]] == [late.id]
    assert list(found.accounts) == [account.name]
    later = await content(scenario.organization_id, await scenario.now() + timedelta(seconds=1))
    assert numbers(later) == {"NEEDS_ATTENTION": 1, "UNKNOWN": 1}
    assert (await content("other", before)).is_empty


@pytest.mark.anyio
async def test_day_of_a_person_is_recorded_once(scenario: PublishingScenario) -> None:
    store, person = scenario.stores.publication_summaries, UserKey(scenario.organization_id, "ann")
    now = await scenario.now()
    recorded = await asyncio.gather(*(store.record(person, "2026-11-22", now) for _ in range(5)))
    assert sorted(recorded) == [False] * 4 + [True]
    assert await store.last_sent(person) == now
    assert await store.record(person, "2026-11-23", now + timedelta(days=1))
    await store.reopen(person, "2026-11-23", now)
    assert await store.last_sent(person) == now
    assert await store.record(person, "2026-11-23", now + timedelta(days=1))
    await store.reopen(person, "2026-11-23", None)
    assert await store.last_sent(person) is None


async def report(scenario: PublishingScenario) -> None:
    """Lets a publication fail, and waits until the team was notified."""
    claimed = await scenario.claim(await scenario.schedule(in_s=-1))
    await scenario.stores.scheduled_posts.apply(MarkFailed(claimed, "REFUSED", "no"))
    await until_outbox_is_empty(scenario.stores)


@pytest.mark.anyio
async def test_organization_is_open_until_nothing_more_was_reported(scenario: PublishingScenario) -> None:
    store, problems = scenario.stores.publication_summaries, scenario.stores.mongo["publication_problems"]
    await problems.delete_many({})
    for _ in range(2):
        await report(scenario)
    first = await store.claim()
    assert first is not None
    assert (first.organization_id, first.reports) == (scenario.organization_id, 2)
    assert await store.claim() is None
    await report(scenario)
    await store.close(first)
    (stored,) = await problems.find().to_list(None)
    assert (stored["reports"], stored["since"]) == (3, first.since)
    await problems.update_one({}, [{"$set": {"due": "$$NOW"}}])
    last = await store.claim()
    assert last is not None
    await store.close(last)
    assert await problems.count_documents({}) == 0
