"""The state machine of a publication to the outside, step by step: what each allows, refuses, stores and tells."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from jobs.providers.social.http import CALL_TIMEOUT_S
from storage.errors import Conflict, NotFound
from storage.publishing.progress import (
    CALL_LEASE_S,
    PERSON,
    PERSONS_LEASE_S,
    AskAgain,
    Begin,
    Doubt,
    Early,
    Fail,
    Lost,
    Prepared,
    PublicationChange,
    Settling,
    Succeed,
    TryAgain,
)
from storage.publishing.records import Phase, Publication, PublicationState, post_state
from tests.storage.places import soon
from tests.storage.publishing.newsroom import Newsroom, account_target

pytestmark = pytest.mark.anyio

S = PublicationState


async def claimed(newsroom: Newsroom, in_s: float = -1, **more: object) -> Publication:
    account = account_target(await newsroom.account())
    return await newsroom.claimed(await newsroom.schedule(account, in_s=in_s, **more))


async def calling(newsroom: Newsroom) -> Publication:
    return await step(newsroom, Begin(await claimed(newsroom), Phase.CALLING, "key"))


async def step(newsroom: Newsroom, change: PublicationChange) -> Publication:
    return await newsroom.stores.scheduled_posts.step(change)


async def reclaimed(newsroom: Newsroom, publication: Publication, after_s: float) -> Publication:
    await newsroom.pass_time(after_s)
    (found,) = [each for each in await newsroom.stores.claims.claim(1000) if each.id == publication.id]
    return found


async def notified(newsroom: Newsroom) -> list[str]:
    rows = newsroom.stores.mongo["notifications"].find({"_id.o": newsroom.organization_id})
    return [row["kind"] async for row in rows]


async def test_the_intent_is_stored_before_the_call_and_never_early(newsroom: Newsroom) -> None:
    early = await claimed(newsroom, in_s=4.5)
    with pytest.raises(Early):
        await step(newsroom, Begin(early, Phase.CALLING, "key"))
    assert (await newsroom.stored(early))["state"] == "SCHEDULED"
    begun = await calling(newsroom)
    assert begun.state is S.PUBLISHING
    assert begun.step is not None
    assert (begun.step.phase, begun.step.key, begun.step.tries) == (Phase.CALLING, "key", 1)


async def test_a_call_is_begun_once(newsroom: Newsroom) -> None:
    begun = await calling(newsroom)
    with pytest.raises(Lost):
        await step(newsroom, Begin(begun, Phase.CALLING, "key"))
    again = await reclaimed(newsroom, begun, CALL_LEASE_S + 1)
    with pytest.raises(Lost):
        await step(newsroom, Begin(again, Phase.CALLING, "key"))


async def test_a_cut_off_preparation_is_begun_again_with_the_first_key(newsroom: Newsroom) -> None:
    begun = await step(newsroom, Begin(await claimed(newsroom), Phase.PREPARING, "first"))
    again = await reclaimed(newsroom, begun, 10)
    with pytest.raises(Lost):
        await step(newsroom, Prepared(begun, ["m"], None, "first"))
    prepared = await step(newsroom, Prepared(again, ["m"], 60, "other"))
    assert prepared.step is not None
    assert prepared.upload is not None
    assert (prepared.step.key, prepared.step.phase, prepared.upload.references) == ("first", Phase.CALLING, ["m"])


async def test_success_is_counted_from_the_call(newsroom: Newsroom) -> None:
    begun = await calling(newsroom)
    assert begun.step is not None
    done = await step(newsroom, Succeed(begun, "id", "https://example.org/1"))
    assert (done.state, done.external_id, done.url) == (S.PUBLISHED, "id", "https://example.org/1")
    assert done.published_at == begun.step.at
    assert (await newsroom.stored(done)).keys().isdisjoint({"wake_at", "step", "claim"})
    with pytest.raises(Lost):
        await step(newsroom, Succeed(begun, "other", None))


async def test_a_failure_is_final_and_told(newsroom: Newsroom) -> None:
    done = await step(newsroom, Fail(await calling(newsroom), "REFUSED", "no"))
    assert done.state is S.FAILED
    assert done.error is not None
    assert (done.error.code, done.error.message) == ("REFUSED", "no")
    assert "mail_at" in await newsroom.stored(done)
    assert await soon(lambda: notified(newsroom)) == ["PUBLICATION_FAILED"]


async def test_what_had_no_effect_is_tried_five_times(newsroom: Newsroom) -> None:
    publication = await claimed(newsroom)
    for number in range(1, 5):
        begun = await step(newsroom, Begin(publication, Phase.CALLING, "key"))
        waiting = await step(newsroom, TryAgain(begun, 1, "no connection"))
        assert waiting.state is S.PUBLISHING
        assert waiting.step is not None
        assert (waiting.step.tries, waiting.step.phase) == (number, Phase.WAITING)
        publication = await reclaimed(newsroom, waiting, 1.1)
    begun = await step(newsroom, Begin(publication, Phase.CALLING, "key"))
    assert (await step(newsroom, TryAgain(begun, 1, "no connection"))).state is S.FAILED


async def test_no_try_follows_after_max_lateness(newsroom: Newsroom) -> None:
    publication = await claimed(newsroom, max_lateness_s=10)
    begun = await step(newsroom, Begin(publication, Phase.CALLING, "key"))
    assert (await step(newsroom, TryAgain(begun, 30, "no connection"))).state is S.FAILED
    late = await claimed(newsroom, max_lateness_s=10)
    await newsroom.pass_time(20)
    late = await reclaimed(newsroom, late, 0)
    failed = await step(newsroom, Begin(late, Phase.CALLING, "key"))
    assert failed.error is not None
    assert (failed.state, failed.error.code) == (S.FAILED, "TOO_LATE")


async def test_media_that_are_gone_are_uploaded_anew(newsroom: Newsroom) -> None:
    begun = await step(newsroom, Begin(await claimed(newsroom), Phase.PREPARING, "key"))
    begun = await step(newsroom, Prepared(begun, ["m"], None, "key"))
    waiting = await step(newsroom, TryAgain(begun, 0, "gone", upload_gone=True))
    assert (waiting.upload, waiting.media_state.value) == (None, "STALE")


async def test_a_doubt_only_a_person_can_settle_is_told_at_once(newsroom: Newsroom) -> None:
    doubtful = await step(newsroom, Doubt(await calling(newsroom), "no answer", PERSON))
    assert doubtful.state is S.UNKNOWN
    assert "wake_at" not in await newsroom.stored(doubtful)
    assert await soon(lambda: notified(newsroom)) == ["PUBLICATION_UNKNOWN"]


async def test_a_doubt_that_settles_itself_is_looked_at_again_and_told_to_nobody(newsroom: Newsroom) -> None:
    doubtful = await step(newsroom, Doubt(await calling(newsroom), "no answer", Settling(5, 3600)))
    again = await reclaimed(newsroom, doubtful, 5.1)
    assert (await step(newsroom, AskAgain(again, Settling(5, 3600)))).step is not None
    done = await step(newsroom, Succeed(again, "id", None))
    assert (done.state, done.error) == (S.PUBLISHED, None)
    assert await notified(newsroom) == []


@pytest.mark.parametrize("ask", [True, False])
async def test_a_key_is_not_sent_again_when_the_network_may_have_forgotten_it(newsroom: Newsroom, ask: bool) -> None:
    settling = Settling(5, 3600)
    doubtful = await step(newsroom, Doubt(await calling(newsroom), "no answer", settling))
    again = await reclaimed(newsroom, doubtful, 3590)
    left = await step(newsroom, AskAgain(again, settling) if ask else Doubt(again, "no answer", settling))
    assert left.state is S.UNKNOWN
    assert not ask or left.step is None
    assert "wake_at" not in await newsroom.stored(left)
    assert await soon(lambda: notified(newsroom)) == ["PUBLICATION_UNKNOWN"]


async def test_a_person_settles_an_unknown_one_once(newsroom: Newsroom) -> None:
    resolve = newsroom.stores.scheduled_posts.resolve
    for published in (True, False):
        doubtful = await step(newsroom, Doubt(await calling(newsroom), "no answer", PERSON))
        done = await resolve(doubtful, published, "id" if published else None)
        assert done.state is (S.PUBLISHED if published else S.FAILED)
        assert (done.published_at is not None) == published
        with pytest.raises(Conflict):
            await resolve(doubtful, True, None)
        with pytest.raises(Lost):
            await step(newsroom, Succeed(doubtful, "late", None))
    with pytest.raises(Conflict):
        await resolve(await calling(newsroom), True, None)


async def test_a_person_of_another_organization_settles_nothing(newsroom: Newsroom) -> None:
    doubtful = await step(newsroom, Doubt(await calling(newsroom), "no answer", PERSON))
    with pytest.raises(NotFound):
        await newsroom.stores.scheduled_posts.resolve(replace(doubtful, organization_id="elsewhere"), True, None)


CHANGES: dict[str, Callable[[Publication], PublicationChange]] = {
    "begin": lambda held: Begin(held, Phase.CALLING, "key"),
    "succeed": lambda held: Succeed(held, "id", None),
    "fail": lambda held: Fail(held, "X", "x"),
    "again": lambda held: TryAgain(held, 1, "x"),
    "doubt": lambda held: Doubt(held, "x", PERSON),
    "ask": lambda held: AskAgain(held, PERSON),
    "prepared": lambda held: Prepared(held, [], None, "key"),
}
ALLOWED = {
    S.SCHEDULED: {"begin", "fail"},
    S.PUBLISHING: {"succeed", "fail", "again", "doubt"},
    S.UNKNOWN: {"succeed", "fail", "doubt", "ask"},
    S.PUBLISHED: set(),
    S.FAILED: set(),
    S.CANCELLED: set(),
}


async def in_state(newsroom: Newsroom, state: PublicationState) -> Publication:
    if state is S.SCHEDULED:
        return await claimed(newsroom)
    if state is S.CANCELLED:
        held = await claimed(newsroom)
        await newsroom.stores.scheduled_posts.cancel(newsroom.organization_id, held.scheduled_post_id)
        return (
            await newsroom.publications(
                await newsroom.stores.scheduled_posts.get(newsroom.organization_id, held.scheduled_post_id)
            )
        )[0]
    begun = await calling(newsroom)
    change = {
        S.PUBLISHING: None,
        S.UNKNOWN: Doubt(begun, "x", Settling(1, None)),
        S.PUBLISHED: Succeed(begun, "id", None),
        S.FAILED: Fail(begun, "X", "x"),
    }[state]
    return begun if change is None else await step(newsroom, change)


@pytest.mark.parametrize("state", list(S))
async def test_only_what_the_drawing_shows_is_allowed(newsroom: Newsroom, state: PublicationState) -> None:
    allowed = set()
    for name, change in CHANGES.items():
        held = await in_state(newsroom, state)
        try:
            await step(newsroom, change(held))
            allowed.add(name)
        except Lost:
            assert (await newsroom.stored(held))["state"] == state.value
    assert allowed == ALLOWED[state]


def test_the_states_of_publications_make_the_state_of_their_post() -> None:
    cases = {
        "SCHEDULED": [[S.SCHEDULED], [S.SCHEDULED, S.SCHEDULED]],
        "PUBLISHING": [[S.PUBLISHING, S.UNKNOWN], [S.SCHEDULED, S.PUBLISHED], [S.SCHEDULED, S.UNKNOWN]],
        "UNKNOWN": [[S.UNKNOWN], [S.UNKNOWN, S.PUBLISHED], [S.FAILED, S.UNKNOWN, S.CANCELLED]],
        "PUBLISHED": [[S.PUBLISHED, S.PUBLISHED]],
        "FAILED": [[S.FAILED]],
        "CANCELLED": [[S.CANCELLED]],
        "PARTIAL": [[S.PUBLISHED, S.FAILED], [S.PUBLISHED, S.CANCELLED], [S.FAILED, S.CANCELLED]],
    }
    assert {name: {post_state(each).value for each in states} for name, states in cases.items()} == {
        name: {name} for name in cases
    }


@pytest.mark.parametrize("lease_s", [CALL_LEASE_S, PERSONS_LEASE_S])
async def test_the_lease_of_a_call_counts_from_its_beginning(newsroom: Newsroom, lease_s: float) -> None:
    begun = await step(newsroom, Begin(await claimed(newsroom), Phase.CALLING, "key", lease_s))
    assert begun.step is not None
    assert (await newsroom.stored(begun))["wake_at"] == begun.step.at + timedelta(seconds=lease_s)


def test_what_only_a_person_can_settle_is_held_for_longer_than_a_call_takes() -> None:
    assert PERSONS_LEASE_S > CALL_TIMEOUT_S + CALL_LEASE_S / 3
