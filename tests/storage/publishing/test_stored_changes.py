"""Everything that each change of a publication stores: the fields that differ, its event and its notification."""

from collections.abc import Callable
from typing import Any

import pytest

from storage.errors import Conflict, DomainError, NotFound
from storage.identity.audit import Actor
from storage.mongo import Document
from storage.publishing.events import emit_changed
from storage.publishing.records import Publication, PublishingPhase
from storage.publishing.resolution import PersonalAnswer, ResolveUnknown
from storage.publishing.transitions import (
    CALL_LEASE_S,
    LEASE_S,
    MANUAL,
    BeginAttempt,
    BeginReconciliation,
    ClaimLost,
    DeadlinePassed,
    MarkFailed,
    MarkPublished,
    MarkUnknown,
    NotYetDue,
    ReconciliationPolicy,
    ScheduleRetry,
    StoreUploadResult,
    StoreUploadResultAndBegin,
)
from storage.streams.changes import Batch, Change
from storage.streams.log import Stream
from tests.storage.in_memory_stream import BEGIN, ORG, REMOVED, differences, in_s, without
from tests.storage.publishing.in_memory_posts import ATTEMPT, InMemoryPosts, stored_publication

CALLING, PREPARING = PublishingPhase.CALLING, PublishingPhase.PREPARING
CHANGED = [("PublicationChanged", "pub")]
FAILURE_NOTICE = [("user:acme/ann", "PUBLICATION_FAILED", "pub")]
LATE_NOTICE = [("user:acme/ann", "PUBLICATION_LATE", "pub")]
UNKNOWN_NOTICE = [("user:acme/ann", "PUBLICATION_UNKNOWN", "pub")]
NO_WORK = dict.fromkeys(("wake_at", "claim", "upload_at", "upload_claim"), REMOVED)
UNKNOWN_ERROR = {"code": "UNKNOWN", "message": "no answer"}
TOO_LATE = "The post was not published within maxLatenessS after dueAt: the service or the network was down."


def progress(phase: str = "CALLING", **fields: Any) -> Document:
    return {"key": "first", "tries": 2, "phase": phase, "at": in_s(-8), "first_at": in_s(-9)} | fields


def publishing(phase: str = "CALLING", **fields: Any) -> Document:
    return stored_publication(state="PUBLISHING", progress=progress(phase, **fields))


def unknown(**fields: Any) -> Document:
    return stored_publication(state="UNKNOWN", progress=progress(), error={"code": "UNKNOWN", "message": "x"}, **fields)


def unknown_left_to_person(**fields: Any) -> Document:
    return without(unknown(**fields), *NO_WORK)


def attempts(outcome: str, detail: str | None) -> Document:
    return {"attempts": [ATTEMPT, {"at": BEGIN, "outcome": outcome, "detail": detail}]}


def failed(code: str, message: str) -> Document:
    fields = {"state": "FAILED", "error": {"code": code, "message": message}}
    return NO_WORK | mail("FAILED") | fields | attempts("FAILED", f"{code}: {message}")


def mail(reason: str, attempt: int = 2) -> Document:
    """Returns what a report stores about the mail to the author."""
    return {"mail_at": BEGIN, "mail": {"reason": reason, "attempt": attempt}}


BuildChange = Callable[[Publication], Change[Publication]]


def change(before: Document, build: BuildChange, notices: list[Any] | None = None) -> Document:
    """Commits a change. Returns the fields that differ. Checks the result, the events and the notifications."""
    stream = InMemoryPosts()
    changed = stream.change(build, before)
    assert (stream.result, stream.emitted, stream.notified) == (stream.publication(), CHANGED, notices or [])
    assert stream.reported == reports(stream)
    assert stream.team_reports == reports(stream)
    return changed


def reports(stream: InMemoryPosts) -> list[str]:
    """Returns the reports that belong to the notifications: one for each, of the last attempt."""
    attempt = len(stream.stored()["attempts"])
    return [f"pub/{kind.removeprefix('PUBLICATION_')}/{attempt}" for _, kind, _ in stream.notified]


@pytest.mark.parametrize("due", [-10, 0])
def test_preparation_stores_intent_and_lease(due: int) -> None:
    new_progress = {"key": "k", "tries": 0, "phase": "PREPARING", "at": BEGIN}
    changed = change(stored_publication(due=in_s(due)), lambda each: BeginAttempt(each, PREPARING, "k", 2.5))
    assert changed == {"state": "PUBLISHING", "progress": new_progress, "wake_at": in_s(LEASE_S)}


def test_first_call_stores_intent_and_the_given_lease() -> None:
    new_progress = {"key": "k", "tries": 1, "phase": "CALLING", "at": BEGIN, "first_at": BEGIN}
    changed = change(stored_publication(late_at=BEGIN), lambda each: BeginAttempt(each, CALLING, "k", 2.5))
    assert changed == {"state": "PUBLISHING", "progress": new_progress, "wake_at": in_s(2.5)}


@pytest.mark.parametrize("phase", ["PREPARING", "WAITING"])
def test_later_call_keeps_key_and_time_of_first_call(phase: str) -> None:
    changed = change(publishing(phase), lambda each: BeginAttempt(each, CALLING, "other"))
    assert changed == {"progress": progress("CALLING", tries=3, at=BEGIN), "wake_at": in_s(CALL_LEASE_S)}
    changed = change(publishing(phase), lambda each: BeginAttempt(each, PREPARING, "other"))
    new_progress = progress("PREPARING", at=BEGIN)
    assert changed == differences({"progress": progress(phase)}, {"progress": new_progress}) | {
        "wake_at": in_s(LEASE_S)
    }


def test_attempt_past_deadline_fails() -> None:
    before = publishing("WAITING") | {"late_at": in_s(-0.001)}
    changed = change(before, lambda each: BeginAttempt(each, CALLING, "k"), FAILURE_NOTICE)
    assert changed == failed("TOO_LATE", TOO_LATE) | {"progress": REMOVED}


def test_attempt_before_due_moment_is_refused() -> None:
    with pytest.raises(NotYetDue, match="not due yet") as raised:
        InMemoryPosts().change(lambda each: BeginAttempt(each, CALLING, "k"), stored_publication(due=in_s(0.5)))
    assert raised.value.wait_s == 0.5
    assert "more than maxLatenessS ago" in str(DeadlinePassed())


@pytest.mark.parametrize("before", [publishing(), unknown()])
def test_success_is_stored_with_start_of_its_call(before: Document) -> None:
    changed = change(before, lambda each: MarkPublished(each, "id", "https://example.org/1", "found"))
    stored = {"state": "PUBLISHED", "external_id": "id", "url": "https://example.org/1", "published_at": in_s(-8)}
    removed = {name: REMOVED for name in ("progress", "error") if name in before}
    assert changed == NO_WORK | stored | removed | attempts("PUBLISHED", "found")


@pytest.mark.parametrize("before", [stored_publication(), publishing(), unknown()])
def test_failure_is_stored_with_mail(before: Document) -> None:
    changed = change(before, lambda each: MarkFailed(each, "REFUSED", "no"), FAILURE_NOTICE)
    assert changed == failed("REFUSED", "no") | ({"progress": REMOVED} if "progress" in before else {})


@pytest.mark.parametrize(("phase", "tries"), [("CALLING", 2), ("CALLING", 4), ("PREPARING", 3)])
def test_retry_waits_and_counts_failed_uploads(phase: str, tries: int) -> None:
    is_call = phase == "CALLING"
    before = publishing(phase, tries=tries) | {"late_at": in_s(9)}
    new_progress = progress("WAITING", tries=tries if is_call else tries + 1, at=BEGIN)
    changed = change(before, lambda each: ScheduleRetry(each, 9, "no connection"))
    assert changed == {"progress": new_progress, "wake_at": in_s(9)} | attempts("NO_EFFECT", "no connection")


def test_retry_with_lost_upload_drops_it() -> None:
    changed = change(publishing(), lambda each: ScheduleRetry(each, 9, "gone", must_upload_again=True))
    dropped = dict.fromkeys(("upload", "upload_at", "upload_claim"), REMOVED) | {"media_state": "STALE"}
    new_progress = progress("WAITING", at=BEGIN)
    assert changed == {"progress": new_progress, "wake_at": in_s(9)} | dropped | attempts("NO_EFFECT", "gone")


@pytest.mark.parametrize(
    "before",
    [publishing(tries=5), publishing("PREPARING", tries=4), publishing() | {"late_at": in_s(8.999)}],
)
def test_no_retry_follows_fifth_try_or_passes_deadline(before: Document) -> None:
    changed = change(before, lambda each: ScheduleRetry(each, 9, "no connection"), FAILURE_NOTICE)
    assert changed == failed("UNREACHABLE", "no connection") | {"progress": REMOVED}


@pytest.mark.parametrize(
    ("delay_s", "max_age_s", "needs_person"),
    [(None, None, True), (None, 3600, True), (5, None, False), (5, 44, False), (5, 43.9, True), (4.9, 44, False)],
)
def test_person_is_needed_before_network_forgets(delay_s: float, max_age_s: float, needs_person: bool) -> None:
    """The first call was 9 s ago, and no call begins in the last 30 s in which the network knows its key."""
    policy = ReconciliationPolicy(delay_s, max_age_s)
    stored: Any = progress()
    assert policy.needs_person(stored, BEGIN) is needs_person


@pytest.mark.parametrize(
    ("fields", "is_notified"),
    [
        ({"due": in_s(-68)}, False),
        ({"due": in_s(-68.001)}, True),
        ({"due": in_s(-99), "late_from": in_s(-68)}, False),
        ({"due": in_s(-99), "late_from": in_s(-68.001)}, True),
        ({"due": in_s(-99), "author_notified": True}, False),
    ],
)
def test_author_is_notified_of_more_than_a_minute(fields: Document, is_notified: bool) -> None:
    """The call began 8 s ago. An author who knows that the outcome was unknown is not notified of the delay."""
    notices = LATE_NOTICE if is_notified else []
    before = stored_publication(state="PUBLISHING", progress=progress(), **fields)
    changed = change(before, lambda each: MarkPublished(each, "id", None), notices)
    assert changed["state"] == "PUBLISHED"
    assert [changed.get("mail_at"), changed.get("mail")] == ([*mail("LATE").values()] if is_notified else [None, None])


UNKNOWN = {"state": "UNKNOWN", "error": UNKNOWN_ERROR} | attempts("UNKNOWN", "no answer")


def mark_unknown(policy: ReconciliationPolicy) -> BuildChange:
    return lambda each: MarkUnknown(each, "no answer", policy)


@pytest.mark.parametrize("policy", [MANUAL, ReconciliationPolicy(5, 43)])
@pytest.mark.parametrize("is_notified", [True, False])
def test_unknown_that_only_person_resolves_leaves_no_work(policy: ReconciliationPolicy, is_notified: bool) -> None:
    before = publishing() | ({"author_notified": True} if is_notified else {})
    changed = change(before, mark_unknown(policy), [] if is_notified else UNKNOWN_NOTICE)
    reported = {"author_notified": True} | mail("UNKNOWN")
    assert changed == NO_WORK | UNKNOWN | ({} if is_notified else reported)


@pytest.mark.parametrize(
    ("late", "delay_s", "reconcile_s", "is_notified"),
    [(50, 5, 5, False), (50, 99, 60, False), (80, 99, 80, False), (0, 5, 5, False), (-0.001, 99, 99, True)],
)
def test_unknown_is_reconciled_at_most_minute_after_deadline(
    late: float, delay_s: float, reconcile_s: float, is_notified: bool
) -> None:
    before = publishing() | {"late_at": in_s(late)}
    changed = change(before, mark_unknown(ReconciliationPolicy(delay_s)), UNKNOWN_NOTICE if is_notified else [])
    planned = UNKNOWN | {"claim": REMOVED}
    reported = {"author_notified": True} | mail("UNKNOWN")
    assert changed == planned | {"wake_at": in_s(reconcile_s)} | (reported if is_notified else {})
    changed = change(before | {"author_notified": True}, mark_unknown(ReconciliationPolicy(delay_s)))
    assert changed == planned | {"wake_at": in_s(delay_s)}


def test_reconciliation_holds_lease_and_emits_nothing() -> None:
    for repeats_call, new_progress in ((True, {"progress": progress(at=BEGIN)}), (False, {})):
        stream = InMemoryPosts()
        policy = ReconciliationPolicy(5, None)
        changed = stream.change(lambda each: BeginReconciliation(each, policy, repeats_call), unknown())  # noqa: B023
        assert changed == {"wake_at": in_s(CALL_LEASE_S)} | new_progress
        assert (stream.result, stream.emitted, stream.notified) == (stream.publication(), [], [])
    assert BeginReconciliation(stream.publication(), policy).repeats_call


def test_reconciliation_past_retention_is_left_to_person() -> None:
    stream = InMemoryPosts()
    changed = stream.change(lambda each: BeginReconciliation(each, ReconciliationPolicy(5, 43)), unknown())
    assert changed == NO_WORK | {"author_notified": True} | mail("UNKNOWN", attempt=1)
    assert (stream.result.progress, stream.emitted, stream.notified) == (None, CHANGED, UNKNOWN_NOTICE)
    assert stream.reported == ["pub/UNKNOWN/1"]
    assert stream.publication().progress is not None


@pytest.mark.parametrize(("expires_in_s", "expires_at"), [(None, None), (60, in_s(60))])
def test_upload_is_stored_with_its_expiry(expires_in_s: float | None, expires_at: Any) -> None:
    upload = {"media_state": "READY", "upload": {"references": ["m"], "expires_at": expires_at}}
    released = {"upload_at": REMOVED, "upload_claim": REMOVED}
    assert (
        change(stored_publication(), lambda each: StoreUploadResult(each, "u", ("m",), expires_in_s))
        == upload | released
    )
    changed = change(
        publishing("PREPARING"), lambda each: StoreUploadResultAndBegin(each, ("m",), expires_in_s, "k", 2.5)
    )
    new_progress = progress("CALLING", tries=3, at=BEGIN)
    assert changed == upload | released | {"progress": new_progress, "wake_at": in_s(2.5)}


@pytest.mark.parametrize(("retry_in_s", "upload_at"), [(None, REMOVED), (30, in_s(30))])
def test_failed_upload_is_stored_with_its_retry(retry_in_s: float | None, upload_at: Any) -> None:
    changed = change(
        stored_publication(), lambda each: StoreUploadResult(each, "u", None, message="no", retry_in_s=retry_in_s)
    )
    stored = {"media_state": "FAILED", "upload_at": upload_at, "upload_claim": REMOVED}
    assert changed == stored | attempts("UPLOAD_FAILED", "no")


ADA = Actor(ORG, "ada")
IS_THERE = PersonalAnswer(is_published=True)


@pytest.mark.parametrize("actor", [None, Actor(ORG, "ann"), ADA])
@pytest.mark.parametrize("is_published", [True, False])
def test_resolution_is_audited_if_actor_is_not_the_author(actor: Actor | None, is_published: bool) -> None:
    stream = InMemoryPosts()
    answer = PersonalAnswer(is_published, "id", "https://x.test/id")
    changed = stream.change(lambda each: ResolveUnknown(each, answer, actor), unknown_left_to_person())
    message = "A person looked at the account and found that the post was not published."
    stored = (
        {"state": "PUBLISHED", "published_at": in_s(-8), "external_id": "id", "url": "https://x.test/id"}
        | {"error": REMOVED}
        if is_published
        else {"state": "FAILED", "error": {"code": "NOT_PUBLISHED", "message": message}}
    )
    history = attempts(str(stored["state"]), "resolved by a person")
    assert changed == stored | history | {"progress": REMOVED, "fence": 8}
    assert (stream.result, stream.emitted, stream.notified) == (stream.publication(), CHANGED, [])
    entries = stream.audited
    expected = {"action": "PUBLICATION_RESOLVED", "kind": "PUBLICATION", "target": "pub"}
    expected |= {"actor": "ada", "details": {"author": "ann", "state": stored["state"]}}
    assert entries == ([expected] if actor is ADA else [])


@pytest.mark.parametrize(
    ("before", "build", "error"),
    [
        (stored_publication(fence=8), lambda each: BeginAttempt(each, CALLING, "k"), ClaimLost),
        (stored_publication(), lambda each: MarkPublished(each, "id", None), ClaimLost),
        (publishing(), lambda each: BeginAttempt(each, CALLING, "k"), ClaimLost),
        (publishing(), lambda each: StoreUploadResultAndBegin(each, ["m"], None, "k"), ClaimLost),
        (stored_publication(), lambda each: StoreUploadResult(each, "other", ["m"]), ClaimLost),
        (without(stored_publication(), "upload_claim"), lambda each: StoreUploadResult(each, "u", ["m"]), ClaimLost),
        (publishing(), lambda each: ResolveUnknown(each, IS_THERE), Conflict),
        (unknown(org="other"), lambda each: ResolveUnknown(each, IS_THERE), NotFound),
    ],
)
def test_refused_change_stores_nothing(before: Document, build: BuildChange, error: type[DomainError]) -> None:
    stream = InMemoryPosts()
    stream.put_all(before)
    publication = InMemoryPosts()
    publication.put_all(stored_publication())
    with pytest.raises(error, match=r"\w"):
        stream.commit(build(publication.publication()))
    assert stream.stored() == before


def test_change_of_removed_publication_is_refused() -> None:
    stream = InMemoryPosts()
    stream.put_all(stored_publication())
    publication = stream.publication()
    stream.documents.clear()
    for each in (MarkFailed(publication, "X", "x"), StoreUploadResult(publication, "u", ["m"])):
        with pytest.raises(ClaimLost, match=r"\w"):
            stream.commit(each)
    with pytest.raises(NotFound):
        stream.commit(ResolveUnknown(publication, IS_THERE))


def test_change_in_topic_reaches_jobs_stream_through_outbox() -> None:
    batch = Batch(Stream("topic", "t"), {"committed_at": BEGIN}, 0, 1)
    publication: Any = stored_publication()
    emit_changed(batch, publication)
    (row,) = batch.outbox
    assert (row["stream"], row["kind"], row["ref"], batch.events) == ("jobs:acme", "PublicationChanged", "pub", [])
