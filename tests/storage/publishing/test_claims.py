"""A publication is claimed by one process at a time, until its lease ends. A sweep reads only those due to wake."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from storage.mongo import due_filter
from storage.mongo.leases import lease_filter
from storage.publishing.claims import MAIL_RETRY_S, UPLOAD_LEASE_S, PublicationClaims
from storage.publishing.networks import Network
from storage.publishing.records import Publication, PublishingPhase, ScheduledPost
from storage.publishing.reports.records import ReportReason
from storage.publishing.transitions import (
    LEASE_S,
    MANUAL_LEASE_S,
    BeginAttempt,
    MarkFailed,
    MarkUnknown,
    ReconciliationPolicy,
    ScheduleRetry,
)
from tests.storage.in_memory_stream import differences
from tests.storage.publishing.scenario import IMAGE, PublishingScenario, account_target
from tests.storage.topic_scenario import OpenStores

pytestmark = pytest.mark.anyio


async def claim(scenario: PublishingScenario, post: ScheduledPost) -> list[Publication]:
    """Claims all publications whose wake time has come, and returns the post's."""
    return [each for each in await scenario.stores.claims.claim(1000) if each.scheduled_post_id == post.id]


async def test_claim_takes_only_publications_due_within_5_s(scenario: PublishingScenario) -> None:
    near, far = await scenario.schedule(in_s=4.5), await scenario.schedule(in_s=30)
    claimed = await scenario.stores.claims.claim(1000)
    assert near.id in [each.scheduled_post_id for each in claimed]
    assert far.id not in [each.scheduled_post_id for each in claimed]


async def test_concurrent_claims_take_each_publication_once(
    scenario: PublishingScenario, open_process: OpenStores
) -> None:
    posts = [await scenario.schedule(in_s=1) for _ in range(20)]
    async with open_process() as stores:
        processes = [scenario, scenario.with_stores(stores)] * 5
        claims = await asyncio.gather(*(process.stores.claims.claim(1000) for process in processes))
    ids = [each.scheduled_post_id for claimed in claims for each in claimed]
    assert sorted(id_ for id_ in ids if id_ in {post.id for post in posts}) == sorted(post.id for post in posts)


async def test_expired_claim_is_taken_under_new_fence(scenario: PublishingScenario) -> None:
    post = await scenario.schedule(in_s=4.5)
    (first,) = await claim(scenario, post)
    assert await claim(scenario, post) == []
    await scenario.pass_time(4.5 + LEASE_S - 3)
    assert await claim(scenario, post) == [], "The lease must count from the due moment."
    await scenario.pass_time(3)
    (second,) = await claim(scenario, post)
    assert second.fence > first.fence


async def test_only_holder_renews_and_releases_claim(scenario: PublishingScenario) -> None:
    post = await scenario.schedule(in_s=-1)
    (first,) = await claim(scenario, post)
    await scenario.pass_time(LEASE_S + 1)
    (second,) = await claim(scenario, post)
    assert not await scenario.stores.claims.renew(first)
    await scenario.stores.claims.release([first])
    assert await claim(scenario, post) == []
    assert await scenario.stores.claims.renew(second)
    await scenario.stores.claims.release([second])
    assert len(await claim(scenario, post)) == 1


async def test_cancelled_publication_is_not_claimed(scenario: PublishingScenario) -> None:
    post = await scenario.schedule(in_s=1)
    await scenario.stores.scheduled_posts.cancel(scenario.organization_id, post.id)
    assert await claim(scenario, post) == []


async def claimed_pair(scenario: PublishingScenario) -> tuple[Publication, Publication]:
    """Returns two publications with equal fences, which were claimed together."""
    posts = [await scenario.schedule(in_s=-1) for _ in range(2)]
    claims = {each.scheduled_post_id: each for each in await scenario.stores.claims.claim(1000)}
    return claims[posts[0].id], claims[posts[1].id]


async def ends_after(scenario: PublishingScenario, publication: Publication, since: datetime, seconds: float) -> bool:
    """Returns whether the claim ends that many seconds after an instant between `since` and now."""
    ends_at: datetime = (await scenario.stored_document(publication))["wake_at"]
    return since <= ends_at - timedelta(seconds=seconds) <= await scenario.now()


async def take_alone(scenario: PublishingScenario) -> None:
    """Removes the work of earlier tests, so that only the scenario's publications can be claimed."""
    fields = dict.fromkeys(("wake_at", "upload_at", "mail_at"), "")
    await scenario.stores.mongo["publications"].update_many(
        {"org": {"$ne": scenario.organization_id}}, {"$unset": fields}
    )


async def test_claim_changes_fence_token_and_lease_only(scenario: PublishingScenario) -> None:
    post, since = await scenario.schedule(in_s=-60), await scenario.now()
    before = await scenario.stored_document(await scenario.publication(post))
    claimed = await scenario.claim(post)
    after = await scenario.stored_document(claimed)
    assert differences(before, after).keys() == {"claim", "fence", "wake_at", "leased_until"}
    assert claimed.fence == after["fence"] == before["fence"] + 1
    assert await ends_after(scenario, claimed, since, LEASE_S)


async def test_lease_of_early_claim_counts_from_due_moment(scenario: PublishingScenario) -> None:
    claimed = await scenario.claim(await scenario.schedule(in_s=4.5))
    assert (await scenario.stored_document(claimed))["wake_at"] == claimed.due_at + timedelta(seconds=LEASE_S)


async def test_claims_are_limited_to_earliest_and_sorted(scenario: PublishingScenario) -> None:
    await take_alone(scenario)
    posts = [await scenario.schedule(in_s=seconds) for seconds in (-1, -3, -2)]
    claim = scenario.stores.claims.claim
    assert [each.scheduled_post_id for each in await claim(2)] == [posts[1].id, posts[2].id]
    assert [each.scheduled_post_id for each in await claim(2)] == [posts[0].id]
    assert await claim(2) == []


async def test_renewal_extends_lease_of_its_publication_only(scenario: PublishingScenario) -> None:
    (one, other), claims = await claimed_pair(scenario), scenario.stores.claims
    untouched, since = await scenario.stored_document(other), await scenario.now()
    assert await claims.renew(one, 100)
    assert await ends_after(scenario, one, since, 100)
    assert await claims.renew(one)
    assert await ends_after(scenario, one, since, LEASE_S)
    await scenario.stores.scheduled_posts.cancel(scenario.organization_id, one.scheduled_post_id)
    assert not await claims.renew(one)
    assert await scenario.stored_document(other) == untouched


async def test_finished_publication_is_not_renewed(scenario: PublishingScenario) -> None:
    claimed = await scenario.claim(await scenario.schedule(in_s=-1))
    await scenario.stores.scheduled_posts.apply(MarkFailed(claimed, "X", "x"))
    assert not await scenario.stores.claims.renew(claimed)
    assert "wake_at" not in await scenario.stored_document(claimed)


@pytest.mark.parametrize("released", [0, 1])
async def test_release_ends_lease_of_its_publication_only(scenario: PublishingScenario, released: int) -> None:
    pair, since = await claimed_pair(scenario), await scenario.now()
    untouched = await scenario.stored_document(pair[1 - released])
    await scenario.stores.claims.release([pair[released]])
    assert await ends_after(scenario, pair[released], since, 0)
    assert await scenario.stored_document(pair[1 - released]) == untouched


async def test_begun_publication_is_not_released(scenario: PublishingScenario) -> None:
    post = await scenario.schedule(account_target(await scenario.connect_account()), in_s=-1)
    change = BeginAttempt(await scenario.claim(post), PublishingPhase.CALLING, "key")
    begun = await scenario.stores.scheduled_posts.apply(change)
    stored = await scenario.stored_document(begun)
    await scenario.stores.claims.release([begun])
    assert await scenario.stored_document(begun) == stored


def dead_worker(scenario: PublishingScenario) -> PublishingScenario:
    """Returns the scenario with the stores of a worker that is named `dead`."""
    return scenario.with_stores(replace(scenario.stores, claims=PublicationClaims(scenario.stores.mongo, "dead")))


async def test_claims_of_dead_worker_are_taken_at_once(scenario: PublishingScenario) -> None:
    dead, claims = dead_worker(scenario), scenario.stores.claims
    early, due = [await scenario.schedule(in_s=seconds) for seconds in (4.5, -1)]
    first = {each.scheduled_post_id: each for each in await dead.stores.claims.claim(1000)}
    assert await claims.claim(1000) == []
    assert await claims.release_of("dead") >= 2
    second = {each.scheduled_post_id: each for each in await claims.claim(1000)}
    for post in (early, due):
        assert second[post.id].fence == first[post.id].fence + 1
        assert not await claims.renew(first[post.id])
    assert await claims.release_of("dead") == 0


async def test_claims_of_other_workers_are_not_released(scenario: PublishingScenario) -> None:
    claimed = await scenario.claim(await scenario.schedule(in_s=-1))
    stored = await scenario.stored_document(claimed)
    for name in ("dead", ""):
        await scenario.stores.claims.release_of(name)
    assert await scenario.stored_document(claimed) == stored


async def begun_call(scenario: PublishingScenario) -> Publication:
    """Returns a publication whose network is being called."""
    post = await scenario.schedule(account_target(await scenario.connect_account()), in_s=-1)
    change = BeginAttempt(await scenario.claim(post), PublishingPhase.CALLING, "key")
    return await scenario.stores.scheduled_posts.apply(change)


@pytest.mark.parametrize("is_renewed", [False, True])
async def test_interrupted_call_is_released_in_its_phase(scenario: PublishingScenario, is_renewed: bool) -> None:
    dead = dead_worker(scenario)
    begun, since = await begun_call(dead), await scenario.now()
    if is_renewed:
        await dead.stores.claims.renew(begun, MANUAL_LEASE_S)
    stored = await scenario.stored_document(begun)
    await scenario.stores.claims.release_of("dead")
    assert differences(stored, await scenario.stored_document(begun)).keys() == {"wake_at"}
    assert await ends_after(scenario, begun, since, 0)


@pytest.mark.parametrize("is_claimed_again", [False, True])
@pytest.mark.parametrize("is_unknown", [False, True])
async def test_planned_time_is_kept_unless_it_was_claimed(
    scenario: PublishingScenario, is_unknown: bool, is_claimed_again: bool
) -> None:
    """The next try, or the next reconciliation, does not begin early because the worker that planned it has died."""
    dead = dead_worker(scenario)
    begun = await begun_call(dead)
    planned = MarkUnknown(begun, "lost", ReconciliationPolicy(9.0)) if is_unknown else ScheduleRetry(begun, 9.0, "busy")
    await scenario.stores.scheduled_posts.apply(planned)
    if is_claimed_again:
        await scenario.pass_time(10)
        await dead.stores.claims.claim(1000)
    stored = await scenario.stored_document(begun)
    await scenario.stores.claims.release_of("dead")
    changed = differences(stored, await scenario.stored_document(begun)).keys()
    assert changed == ({"wake_at"} if is_claimed_again else set())


def stages(plan: Any) -> list[Any]:
    """Returns every stage of a query plan."""
    if isinstance(plan, list):
        return [stage for each in plan for stage in stages(each)]
    if not isinstance(plan, dict):
        return []
    return ([plan] if "stage" in plan else []) + stages(list(plan.values()))


async def test_sweep_examines_only_due_index_entries(scenario: PublishingScenario) -> None:
    """The cost of a sweep, and of a release, must not depend on the number of publications that are not due."""
    later = await scenario.now() + timedelta(hours=1)
    waiting = [{"_id": f"{scenario.organization_id}-{i}", "wake_at": later, "state": "X"} for i in range(2000)]
    publications = scenario.stores.mongo["publications"]
    await publications.insert_many(waiting)
    post = await scenario.schedule(in_s=1)
    command = {"find": "publications", "filter": due_filter("wake_at"), "sort": {"wake_at": 1}, "limit": 500}
    explained = await scenario.stores.mongo.database.command({"explain": command, "verbosity": "executionStats"})
    index_names = [stage.get("indexName") for stage in stages(explained["queryPlanner"]["winningPlan"])]
    assert "wake_at_1" in index_names
    assert "SORT" not in [stage["stage"] for stage in stages(explained["queryPlanner"]["winningPlan"])]
    assert explained["executionStats"]["totalKeysExamined"] < 100
    released = {"find": "publications", "filter": lease_filter("dead", "wake_at", MANUAL_LEASE_S)}
    explained = await scenario.stores.mongo.database.command({"explain": released, "verbosity": "executionStats"})
    assert explained["executionStats"]["totalKeysExamined"] < 100
    assert await claim(scenario, post)
    await publications.delete_many({"_id": {"$in": [each["_id"] for each in waiting]}})


async def test_upload_is_claimed_once_ten_minutes_ahead(scenario: PublishingScenario) -> None:
    account = account_target(await scenario.connect_account(Network.MASTODON, "token", "https://example.org"))
    post = await scenario.schedule(account, media=[IMAGE], in_s=660)

    async def claim_upload_tokens() -> list[str]:
        claims = await scenario.stores.claims.claim_uploads(100)
        return [token for each, token in claims if each.scheduled_post_id == post.id]

    assert await claim_upload_tokens() == []
    await scenario.pass_time(61)
    (token,) = [
        token for tokens in await asyncio.gather(claim_upload_tokens(), claim_upload_tokens()) for token in tokens
    ]
    publication = await scenario.publication(post)
    assert await scenario.stores.claims.renew_upload(publication, token)
    await scenario.pass_time(UPLOAD_LEASE_S + 1)
    assert len(await claim_upload_tokens()) == 1
    assert not await scenario.stores.claims.renew_upload(publication, token)


async def test_uploads_of_dead_worker_are_taken_at_once(scenario: PublishingScenario) -> None:
    await take_alone(scenario)
    dead, claims = dead_worker(scenario).stores.claims, scenario.stores.claims
    account = account_target(await scenario.connect_account(Network.MASTODON, "token", "https://example.org"))
    for seconds in (9, 8):
        await scenario.schedule(account, media=[IMAGE], in_s=seconds)
    (_, lost), (kept, kept_token) = [*await dead.claim_uploads(1), *await claims.claim_uploads(1)]
    assert await claims.claim_uploads(2) == []
    assert await claims.release_of("dead") == 1
    ((again, token),) = await claims.claim_uploads(2)
    assert not await claims.renew_upload(again, lost)
    assert await claims.renew_upload(again, token)
    assert await claims.renew_upload(kept, kept_token)


async def test_uploads_claimed_together_are_renewed_separately(scenario: PublishingScenario) -> None:
    await take_alone(scenario)
    account = account_target(await scenario.connect_account(Network.MASTODON, "token", "https://example.org"))
    posts = [await scenario.schedule(account, media=[IMAGE], in_s=seconds) for seconds in (9, 8, 7)]
    before, since = await scenario.stored_document(await scenario.publication(posts[1])), await scenario.now()
    claims = scenario.stores.claims
    claimed = {each.scheduled_post_id: (each, token) for each, token in await claims.claim_uploads(2)}
    assert claimed.keys() == {posts[1].id, posts[2].id}
    changed = differences(before, await scenario.stored_document(claimed[posts[1].id][0]))
    lease = timedelta(seconds=UPLOAD_LEASE_S)
    assert since <= changed.pop("upload_at") - lease <= await scenario.now()
    assert changed == {"upload_claim": claimed[posts[1].id][1], "media_state": "UPLOADING"}
    for renewed, other in ((1, 2), (2, 1)):
        publication, token = claimed[posts[renewed].id]
        untouched, since = await scenario.stored_document(claimed[posts[other].id][0]), await scenario.now()
        assert await claims.renew_upload(publication, token)
        stored = await scenario.stored_document(publication)
        assert since <= stored["upload_at"] - lease <= await scenario.now()
        assert await scenario.stored_document(claimed[posts[other].id][0]) == untouched
    assert [each.scheduled_post_id for each, _ in await claims.claim_uploads(2)] == [posts[0].id]
    assert await claims.claim_uploads(2) == []


async def test_mail_is_claimed_once_per_retry_until_it_is_sent(scenario: PublishingScenario) -> None:
    await take_alone(scenario)
    claims, apply = scenario.stores.claims, scenario.stores.scheduled_posts.apply
    late, early = [await apply(MarkFailed(each, "X", "x")) for each in await claimed_pair(scenario)]
    earlier = {"mail_at": await scenario.now() - timedelta(hours=1)}
    await scenario.stores.mongo["publications"].update_one({"_id": early.id}, {"$set": earlier})
    (early_mail,) = await claims.claim_mails(1)
    assert (early_mail.publication.id, early_mail.is_current) == (early.id, True)
    since = await scenario.now()
    results = await asyncio.gather(*(claims.claim_mails(10) for _ in range(5)))
    (late_mail,) = [each for claimed in results for each in claimed]
    assert late_mail.publication.id == late.id
    mail_at = (await scenario.stored_document(late))["mail_at"]
    assert since <= mail_at - timedelta(seconds=MAIL_RETRY_S) <= await scenario.now()
    await claims.mark_mailed(early_mail)
    await scenario.pass_time(MAIL_RETRY_S + 1)
    assert [each.id for each in await claims.claim_mails(10)] == [late_mail.id]
    await claims.mark_mailed(late_mail)
    assert {"mail_at", "mail"}.isdisjoint(await scenario.stored_document(late))


async def test_sent_mail_leaves_mail_of_later_report(scenario: PublishingScenario) -> None:
    await take_alone(scenario)
    claims, stored = scenario.stores.claims, scenario.stores.mongo["publications"]
    failed = await scenario.stores.scheduled_posts.apply(MarkFailed((await claimed_pair(scenario))[0], "X", "x"))
    (mail,) = await claims.claim_mails(10)
    later = {"mail_at": await scenario.now(), "mail": {"reason": "FAILED", "attempt": mail.attempt + 1}}
    await stored.update_one({"_id": failed.id}, {"$set": later})
    await claims.mark_mailed(mail)
    assert (await scenario.stored_document(failed)).items() >= later.items()


async def test_failure_of_earlier_release_is_mailed(scenario: PublishingScenario) -> None:
    await take_alone(scenario)
    claims, stored = scenario.stores.claims, scenario.stores.mongo["publications"]
    failed = await scenario.stores.scheduled_posts.apply(MarkFailed((await claimed_pair(scenario))[0], "X", "x"))
    await stored.update_one({"_id": failed.id}, {"$unset": {"mail": ""}})
    (mail,) = await claims.claim_mails(10)
    assert (mail.reason, mail.is_current) == (ReportReason.FAILED, True)
    await claims.mark_mailed(mail)
    assert "mail_at" not in await scenario.stored_document(failed)
