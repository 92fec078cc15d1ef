"""Answers of people about unknown outcomes: what they store, what is refused, and many answers at once."""

import asyncio
from typing import Any

import pytest

from storage.errors import Conflict, NotFound
from storage.idempotency import idempotency_key
from storage.mongo import Document
from storage.publishing.attention import ACCOUNTS
from storage.publishing.networks import Network
from storage.publishing.records import Publication, PublicationState, PublishingPhase
from storage.publishing.resolution import NOT_FOUND_BY_PERSON, PersonalAnswer, ResolveUnknown
from storage.publishing.transitions import (
    MANUAL,
    BeginAttempt,
    BeginReconciliation,
    ClaimLost,
    MarkPublished,
    MarkUnknown,
    ReconciliationPolicy,
)
from tests.storage.in_memory_stream import BEGIN, REMOVED, in_s
from tests.storage.publishing.in_memory_posts import InMemoryPosts, stored_post
from tests.storage.publishing.scenario import PublishingScenario, account_target
from tests.storage.publishing.test_attention import stored_account
from tests.storage.publishing.test_stored_changes import attempts, unknown, unknown_left_to_person

IS_THERE = PersonalAnswer(is_published=True)
IS_NOT_THERE = PersonalAnswer(is_published=False)
AGAIN = PersonalAnswer(is_published=False, publishes_again=True)
NEGATIVE = [IS_NOT_THERE, AGAIN]
FILE = {"id": "file", "name": "a.png", "type": "image/png", "size": 1}
KEY_LATER_THAN_RETENTION_S = 3700


def answered(before: Document, answer: PersonalAnswer, **post: Any) -> tuple[InMemoryPosts, Document]:
    """Stores an answer about the publication. Returns the stream and the fields that differ."""
    stream = InMemoryPosts()
    stream.put_all(stored_post(**post))
    stream.put(ACCOUNTS, stored_account())
    return stream, stream.change(lambda each: ResolveUnknown(each, answer), before)


def test_publication_again_is_due_at_once_under_same_key() -> None:
    stream, changed = answered(unknown_left_to_person(author_notified=True, media_state="READY"), AGAIN)
    progress = {"key": "first", "tries": 0, "phase": "WAITING", "at": BEGIN, "first_at": in_s(-9)}
    assert changed == attempts("NO_EFFECT", NOT_FOUND_BY_PERSON) | {
        "state": "SCHEDULED",
        "fence": 8,
        "late_at": in_s(60),
        "wake_at": BEGIN,
        "late_from": BEGIN,
        "progress": progress,
        "media_state": "STALE",
        "upload": REMOVED,
        "error": REMOVED,
        "author_notified": REMOVED,
    }
    assert (stream.result, stream.emitted, stream.notified) == (
        stream.publication(),
        [("PublicationChanged", "pub")],
        [],
    )


def test_retention_begins_anew_for_forgotten_key() -> None:
    before = unknown_left_to_person()
    before["progress"] |= {"first_at": in_s(-KEY_LATER_THAN_RETENTION_S)}
    _, changed = answered(before, AGAIN)
    assert changed["progress"] == {"key": "first", "tries": 0, "phase": "WAITING", "at": BEGIN}


@pytest.mark.parametrize("answer", NEGATIVE)
def test_negative_answer_during_a_call_is_refused(answer: PersonalAnswer) -> None:
    stream, before = InMemoryPosts(), unknown()
    stream.put_all(stored_post(), before)
    with pytest.raises(Conflict, match="asked at this moment"):
        stream.commit(ResolveUnknown(stream.publication(), answer))
    assert stream.stored() == before


def test_positive_answer_during_a_call_is_stored() -> None:
    _, changed = answered(unknown(), IS_THERE)
    assert changed["state"] == "PUBLISHED"


@pytest.mark.parametrize("again", [True, False])
def test_answer_about_earlier_call_is_refused(again: bool) -> None:
    earlier = PersonalAnswer(is_published=False, publishes_again=again, last_call_at=in_s(-9))
    with pytest.raises(Conflict, match="called again since"):
        answered(unknown_left_to_person(), earlier)
    current = PersonalAnswer(is_published=False, publishes_again=again, last_call_at=in_s(-8))
    assert answered(unknown_left_to_person(), current)[1]["state"] == ("SCHEDULED" if again else "FAILED")


def test_files_stay_until_the_answer() -> None:
    _, changed = answered(unknown_left_to_person(attachments=[FILE]), AGAIN, attachments=[FILE])
    assert "attachments" not in changed
    with pytest.raises(Conflict, match="files"):
        answered(unknown_left_to_person(), AGAIN, attachments=[FILE])


def test_publication_again_of_removed_post_is_not_found() -> None:
    stream = InMemoryPosts()
    stream.put_all(unknown_left_to_person())
    stream.put(ACCOUNTS, stored_account())
    with pytest.raises(NotFound):
        stream.commit(ResolveUnknown(stream.publication(), AGAIN))


@pytest.mark.parametrize(("account", "post"), [({"disconnected_at": BEGIN}, {}), ({}, {"text": "", "media": []})])
def test_post_that_cannot_be_published_again_stays_unknown(account: Document, post: Document) -> None:
    stream, before = InMemoryPosts(), unknown_left_to_person()
    stream.put_all(stored_post(**post), before)
    stream.put(ACCOUNTS, stored_account(**account))
    with pytest.raises(Conflict, match=r"\w"):
        stream.commit(ResolveUnknown(stream.publication(), AGAIN))
    assert stream.stored() == before


async def unknown_publication(scenario: PublishingScenario, policy: ReconciliationPolicy = MANUAL) -> Publication:
    """Returns a publication to a new account whose answer was lost."""
    account = await scenario.connect_account(Network.SANDBOX)
    post = await scenario.schedule(account_target(account), in_s=-1)
    apply = scenario.stores.scheduled_posts.apply
    called = await apply(BeginAttempt(await scenario.claim(post), PublishingPhase.CALLING, "key"))
    return await apply(MarkUnknown(called, "no answer", policy))


async def outcomes_of(*calls: Any) -> list[Any]:
    """Returns the results and errors of calls at the same time."""
    return await asyncio.gather(*calls, return_exceptions=True)


@pytest.mark.anyio
async def test_exactly_one_of_many_answers_counts(scenario: PublishingScenario) -> None:
    lost, store = await unknown_publication(scenario), scenario.stores.scheduled_posts
    answers = [AGAIN, IS_THERE, IS_NOT_THERE] * 10
    outcomes = await outcomes_of(*(store.resolve(lost, each) for each in answers))
    (won,) = [each for each in outcomes if isinstance(each, Publication)]
    assert sum(isinstance(each, Conflict) for each in outcomes) == len(answers) - 1
    stored = await store.publication(scenario.organization_id, lost.id)
    assert (stored.state, stored.fence, len(stored.attempts)) == (won.state, lost.fence + 1, len(lost.attempts) + 1)


@pytest.mark.anyio
async def test_answers_and_claims_never_both_call(scenario: PublishingScenario) -> None:
    """A worker that reconciles and people who have it published again: only one of them goes on."""
    policy, store = ReconciliationPolicy(1, 3600), scenario.stores.scheduled_posts
    for _ in range(5):
        lost = await unknown_publication(scenario, policy)
        await scenario.pass_time(2)

        async def reconcile(publication: Publication = lost) -> Publication:
            (claimed,) = [each for each in await scenario.stores.claims.claim(100) if each.id == publication.id]
            if claimed.state is PublicationState.UNKNOWN:
                return await store.apply(BeginReconciliation(claimed, policy))
            return await store.apply(BeginAttempt(claimed, PublishingPhase.CALLING, "key"))

        worker, *answers = await outcomes_of(reconcile(), *(store.resolve(lost, AGAIN) for _ in range(5)))
        won = [each for each in answers if isinstance(each, Publication)]
        assert len(won) + sum(isinstance(each, Conflict) for each in answers) == 5, answers
        stored = await store.publication(scenario.organization_id, lost.id)
        calls = isinstance(worker, Publication)
        assert (stored.state, stored.fence - lost.fence) == {
            (True, 0): (PublicationState.UNKNOWN, 1),
            (True, 1): (PublicationState.PUBLISHING, 2),
            (False, 1): (PublicationState.SCHEDULED, 1),
        }[calls, len(won)], "The worker asks about the lost call, makes the new one, or leaves it to the next worker."


@pytest.mark.anyio
async def test_worker_that_was_answered_stores_nothing(scenario: PublishingScenario) -> None:
    lost, store = await unknown_publication(scenario), scenario.stores.scheduled_posts
    await store.resolve(lost, AGAIN)
    with pytest.raises(ClaimLost):
        await store.apply(MarkPublished(lost, "late", None))


@pytest.mark.anyio
async def test_repeated_key_answers_once(scenario: PublishingScenario) -> None:
    lost, store = await unknown_publication(scenario), scenario.stores.scheduled_posts
    key = idempotency_key(scenario.organization_id, "ann", "resolvePublication", "k", {"id": lost.id})
    repeated = await outcomes_of(*(store.resolve(lost, AGAIN, None, key) for _ in range(5)))
    assert {(each.state, each.fence) for each in repeated} == {(PublicationState.SCHEDULED, lost.fence + 1)}
    assert (await store.resolve(lost, AGAIN, None, key)).fence == lost.fence + 1
