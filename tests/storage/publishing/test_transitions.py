"""The state machine of a publication to an external target: what each change allows, stores and emits."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from jobs.providers.social.http import CALL_TIMEOUT_S
from storage.errors import Conflict, NotFound
from storage.publishing.attention import HoldForAttention, ResumePublication
from storage.publishing.records import Publication, PublicationState, PublishingPhase
from storage.publishing.resolution import PersonalAnswer
from storage.publishing.transitions import (
    CALL_LEASE_S,
    MANUAL,
    MANUAL_LEASE_S,
    BeginAttempt,
    BeginReconciliation,
    ClaimLost,
    MarkFailed,
    MarkPublished,
    MarkUnknown,
    NotYetDue,
    PublicationChange,
    ReconciliationPolicy,
    ScheduleRetry,
    StoreUploadResultAndBegin,
)
from tests.storage.publishing.scenario import PublishingScenario, account_target
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

S = PublicationState


async def claim(scenario: PublishingScenario, in_s: float = -1, **more: object) -> Publication:
    account = account_target(await scenario.connect_account())
    return await scenario.claim(await scenario.schedule(account, in_s=in_s, **more))


async def begin_call(scenario: PublishingScenario) -> Publication:
    return await apply(scenario, BeginAttempt(await claim(scenario), PublishingPhase.CALLING, "key"))


async def apply(scenario: PublishingScenario, change: PublicationChange) -> Publication:
    return await scenario.stores.scheduled_posts.apply(change)


async def claim_again(scenario: PublishingScenario, publication: Publication, after_s: float) -> Publication:
    await scenario.pass_time(after_s)
    (claimed,) = [each for each in await scenario.stores.claims.claim(1000) if each.id == publication.id]
    return claimed


async def notification_kinds(scenario: PublishingScenario) -> list[str]:
    rows = scenario.stores.mongo["notifications"].find({"_id.o": scenario.organization_id})
    return [row["kind"] async for row in rows]


async def test_begin_stores_intent_at_due_moment(scenario: PublishingScenario) -> None:
    early = await claim(scenario, in_s=4.5)
    with pytest.raises(NotYetDue):
        await apply(scenario, BeginAttempt(early, PublishingPhase.CALLING, "key"))
    assert (await scenario.stored_document(early))["state"] == "SCHEDULED"
    begun = await begin_call(scenario)
    assert begun.state is S.PUBLISHING
    assert begun.progress is not None
    assert (begun.progress.phase, begun.progress.key, begun.progress.tries) == (PublishingPhase.CALLING, "key", 1)


async def test_second_begin_of_call_loses_claim(scenario: PublishingScenario) -> None:
    begun = await begin_call(scenario)
    with pytest.raises(ClaimLost):
        await apply(scenario, BeginAttempt(begun, PublishingPhase.CALLING, "key"))
    reclaimed = await claim_again(scenario, begun, CALL_LEASE_S + 1)
    with pytest.raises(ClaimLost):
        await apply(scenario, BeginAttempt(reclaimed, PublishingPhase.CALLING, "key"))


async def test_repeated_preparation_keeps_first_key(scenario: PublishingScenario) -> None:
    begun = await apply(scenario, BeginAttempt(await claim(scenario), PublishingPhase.PREPARING, "first"))
    reclaimed = await claim_again(scenario, begun, 10)
    with pytest.raises(ClaimLost):
        await apply(scenario, StoreUploadResultAndBegin(begun, ["m"], None, "first"))
    prepared = await apply(scenario, StoreUploadResultAndBegin(reclaimed, ["m"], 60, "other"))
    assert prepared.progress is not None
    assert prepared.upload is not None
    assert (prepared.progress.key, prepared.progress.phase, prepared.upload.references) == (
        "first",
        PublishingPhase.CALLING,
        ["m"],
    )


async def test_published_at_is_start_of_call(scenario: PublishingScenario) -> None:
    begun = await begin_call(scenario)
    assert begun.progress is not None
    finished = await apply(scenario, MarkPublished(begun, "id", "https://example.org/1"))
    assert (finished.state, finished.external_id, finished.url) == (S.PUBLISHED, "id", "https://example.org/1")
    assert finished.published_at == begun.progress.at
    assert (await scenario.stored_document(finished)).keys().isdisjoint({"wake_at", "progress", "claim"})
    with pytest.raises(ClaimLost):
        await apply(scenario, MarkPublished(begun, "other", None))


async def test_failure_is_final_and_notified(scenario: PublishingScenario) -> None:
    finished = await apply(scenario, MarkFailed(await begin_call(scenario), "REFUSED", "no"))
    assert finished.state is S.FAILED
    assert finished.error is not None
    assert (finished.error.code, finished.error.message) == ("REFUSED", "no")
    assert "mail_at" in await scenario.stored_document(finished)
    assert await poll_until_true(lambda: notification_kinds(scenario)) == ["PUBLICATION_FAILED"]


async def test_calls_without_effect_are_tried_five_times(scenario: PublishingScenario) -> None:
    publication = await claim(scenario)
    for number in range(1, 5):
        begun = await apply(scenario, BeginAttempt(publication, PublishingPhase.CALLING, "key"))
        waiting = await apply(scenario, ScheduleRetry(begun, 1, "no connection"))
        assert waiting.state is S.PUBLISHING
        assert waiting.progress is not None
        assert (waiting.progress.tries, waiting.progress.phase) == (number, PublishingPhase.WAITING)
        publication = await claim_again(scenario, waiting, 1.1)
    begun = await apply(scenario, BeginAttempt(publication, PublishingPhase.CALLING, "key"))
    assert (await apply(scenario, ScheduleRetry(begun, 1, "no connection"))).state is S.FAILED


async def test_no_retry_begins_past_deadline(scenario: PublishingScenario) -> None:
    publication = await claim(scenario, max_lateness_s=10)
    begun = await apply(scenario, BeginAttempt(publication, PublishingPhase.CALLING, "key"))
    assert (await apply(scenario, ScheduleRetry(begun, 30, "no connection"))).state is S.FAILED
    late_publication = await claim(scenario, max_lateness_s=10)
    await scenario.pass_time(20)
    late_publication = await claim_again(scenario, late_publication, 0)
    failed = await apply(scenario, BeginAttempt(late_publication, PublishingPhase.CALLING, "key"))
    assert failed.error is not None
    assert (failed.state, failed.error.code) == (S.FAILED, "TOO_LATE")


async def test_lost_upload_becomes_stale(scenario: PublishingScenario) -> None:
    begun = await apply(scenario, BeginAttempt(await claim(scenario), PublishingPhase.PREPARING, "key"))
    begun = await apply(scenario, StoreUploadResultAndBegin(begun, ["m"], None, "key"))
    waiting = await apply(scenario, ScheduleRetry(begun, 0, "gone", must_upload_again=True))
    assert (waiting.upload, waiting.media_state.value) == (None, "STALE")


async def test_unknown_that_only_person_resolves_is_notified_at_once(scenario: PublishingScenario) -> None:
    unknown = await apply(scenario, MarkUnknown(await begin_call(scenario), "no answer", MANUAL))
    assert unknown.state is S.UNKNOWN
    assert "wake_at" not in await scenario.stored_document(unknown)
    assert await poll_until_true(lambda: notification_kinds(scenario)) == ["PUBLICATION_UNKNOWN"]


async def test_reconcilable_unknown_is_not_notified(scenario: PublishingScenario) -> None:
    unknown = await apply(scenario, MarkUnknown(await begin_call(scenario), "no answer", ReconciliationPolicy(5, 3600)))
    reclaimed = await claim_again(scenario, unknown, 5.1)
    assert (await apply(scenario, BeginReconciliation(reclaimed, ReconciliationPolicy(5, 3600)))).progress is not None
    finished = await apply(scenario, MarkPublished(reclaimed, "id", None))
    assert (finished.state, finished.error) == (S.PUBLISHED, None)
    assert await notification_kinds(scenario) == []


@pytest.mark.parametrize("begins_reconciliation", [True, False])
async def test_reconciliation_past_retention_waits_for_person(
    scenario: PublishingScenario, begins_reconciliation: bool
) -> None:
    policy = ReconciliationPolicy(5, 3600)
    unknown = await apply(scenario, MarkUnknown(await begin_call(scenario), "no answer", policy))
    reclaimed = await claim_again(scenario, unknown, 3590)
    result = await apply(
        scenario,
        BeginReconciliation(reclaimed, policy)
        if begins_reconciliation
        else MarkUnknown(reclaimed, "no answer", policy),
    )
    assert result.state is S.UNKNOWN
    assert not begins_reconciliation or result.progress is None
    assert "wake_at" not in await scenario.stored_document(result)
    assert await poll_until_true(lambda: notification_kinds(scenario)) == ["PUBLICATION_UNKNOWN"]


IS_THERE = PersonalAnswer(is_published=True)


async def test_person_resolves_unknown_once(scenario: PublishingScenario) -> None:
    resolve = scenario.stores.scheduled_posts.resolve
    for published in (True, False):
        unknown = await apply(scenario, MarkUnknown(await begin_call(scenario), "no answer", MANUAL))
        finished = await resolve(unknown, PersonalAnswer(published, "id" if published else None))
        assert finished.state is (S.PUBLISHED if published else S.FAILED)
        assert (finished.published_at is not None) == published
        with pytest.raises(Conflict):
            await resolve(unknown, IS_THERE)
        with pytest.raises(ClaimLost):
            await apply(scenario, MarkPublished(unknown, "late", None))
    with pytest.raises(Conflict):
        await resolve(await begin_call(scenario), IS_THERE)


async def test_resolution_by_other_organization_is_not_found(scenario: PublishingScenario) -> None:
    unknown = await apply(scenario, MarkUnknown(await begin_call(scenario), "no answer", MANUAL))
    with pytest.raises(NotFound):
        await scenario.stores.scheduled_posts.resolve(replace(unknown, organization_id="elsewhere"), IS_THERE)


CHANGES: dict[str, Callable[[Publication], PublicationChange]] = {
    "begin": lambda publication: BeginAttempt(publication, PublishingPhase.CALLING, "key"),
    "succeed": lambda publication: MarkPublished(publication, "id", None),
    "fail": lambda publication: MarkFailed(publication, "X", "x"),
    "retry": lambda publication: ScheduleRetry(publication, 1, "x"),
    "mark unknown": lambda publication: MarkUnknown(publication, "x", MANUAL),
    "reconcile": lambda publication: BeginReconciliation(publication, MANUAL),
    "store upload": lambda publication: StoreUploadResultAndBegin(publication, [], None, "key"),
    "hold": lambda publication: HoldForAttention(publication, "X", "x", None),
    "resume": lambda publication: ResumePublication(publication),
}
ALLOWED_CHANGES = {
    S.SCHEDULED: {"begin", "fail", "hold"},
    S.PUBLISHING: {"succeed", "fail", "retry", "mark unknown", "hold"},
    S.NEEDS_ATTENTION: {"fail", "resume"},
    S.UNKNOWN: {"succeed", "fail", "mark unknown", "reconcile"},
    S.PUBLISHED: set(),
    S.FAILED: set(),
    S.CANCELLED: set(),
}


async def create_in_state(scenario: PublishingScenario, state: PublicationState) -> Publication:
    if state is S.SCHEDULED:
        return await claim(scenario)
    if state is S.CANCELLED:
        publication = await claim(scenario)
        await scenario.stores.scheduled_posts.cancel(scenario.organization_id, publication.scheduled_post_id)
        return (
            await scenario.publications(
                await scenario.stores.scheduled_posts.get(scenario.organization_id, publication.scheduled_post_id)
            )
        )[0]
    begun = await begin_call(scenario)
    change = {
        S.PUBLISHING: None,
        S.UNKNOWN: MarkUnknown(begun, "x", ReconciliationPolicy(1, None)),
        S.PUBLISHED: MarkPublished(begun, "id", None),
        S.FAILED: MarkFailed(begun, "X", "x"),
        S.NEEDS_ATTENTION: HoldForAttention(begun, "X", "x", await scenario.credentials_nonce(begun)),
    }[state]
    return begun if change is None else await apply(scenario, change)


@pytest.mark.parametrize("state", list(S))
async def test_each_state_allows_only_its_transitions(scenario: PublishingScenario, state: PublicationState) -> None:
    allowed_changes = set()
    publication = await create_in_state(scenario, state)
    for name, change in CHANGES.items():
        before = await scenario.stored_document(publication)
        try:
            await apply(scenario, change(publication))
        except ClaimLost:
            assert await scenario.stored_document(publication) == before
        else:
            allowed_changes.add(name)
            publication = await create_in_state(scenario, state)
    assert before["state"] == state.value
    assert allowed_changes == ALLOWED_CHANGES[state]


@pytest.mark.parametrize("lease_s", [CALL_LEASE_S, MANUAL_LEASE_S])
async def test_call_lease_counts_from_start_of_call(scenario: PublishingScenario, lease_s: float) -> None:
    begun = await apply(scenario, BeginAttempt(await claim(scenario), PublishingPhase.CALLING, "key", lease_s))
    assert begun.progress is not None
    assert (await scenario.stored_document(begun))["wake_at"] == begun.progress.at + timedelta(seconds=lease_s)


def test_manual_lease_outlasts_call() -> None:
    assert MANUAL_LEASE_S > CALL_TIMEOUT_S + CALL_LEASE_S / 3
