"""Records hold every field of the stored documents, and the state of a post follows from its publications."""

import itertools
from datetime import timedelta
from typing import Any

import pytest

from storage.publishing.networks import MediaKind, Network
from storage.publishing.records import (
    AccountTarget,
    ConnectedAccount,
    HomeFeedTarget,
    MediaState,
    Publication,
    PublicationAttempt,
    PublicationError,
    PublicationState,
    PublishingPhase,
    PublishingProgress,
    ScheduledMedia,
    ScheduledPost,
    StoredMediaUpload,
    Target,
    TopicTarget,
    account_record,
    media_documents,
    post_record,
    post_state,
    publication_record,
    publication_states_to_search,
    target_document,
)
from storage.timeline import Timestamp
from tests.storage.in_memory_stream import BEGIN, ORG, in_s
from tests.storage.publishing.in_memory_posts import ATTEMPT, MEDIUM, stored_post, stored_publication

S = PublicationState
IMAGE = ScheduledMedia("https://example.org/a.png", "A hill", MediaKind.IMAGE)


def record(**fields: Any) -> Publication:
    stored: Any = stored_publication(**fields)
    return publication_record(stored)


def test_publication_record_holds_every_field() -> None:
    progress = {"phase": "CALLING", "key": "k", "tries": 2, "at": in_s(-8), "first_at": in_s(-9)}
    found = record(
        state="UNKNOWN",
        progress=progress,
        upload={"references": ["m"], "expires_at": in_s(9)},
        error={"code": "X", "message": "x"},
        published_at=in_s(-7),
        external_id="id",
        url="https://example.org/1",
        held_at=in_s(-6),
    )
    assert found == Publication(
        id="pub",
        organization_id=ORG,
        scheduled_post_id="post",
        author_id="ann",
        target=AccountTarget("account", Network.MASTODON),
        state=S.UNKNOWN,
        fence=7,
        due_at=in_s(-10),
        late_at=in_s(50),
        media_state=MediaState.UPLOADING,
        upload=StoredMediaUpload(["m"], in_s(9)),
        progress=PublishingProgress(PublishingPhase.CALLING, "k", 2, in_s(-8), in_s(-9)),
        published_at=in_s(-7),
        external_id="id",
        url="https://example.org/1",
        error=PublicationError("X", "x"),
        attempts=[PublicationAttempt(ATTEMPT["at"], "NO_EFFECT", "earlier")],  # type: ignore[arg-type]
        held_at=in_s(-6),
        wake_at=in_s(3),
    )


def test_record_of_waiting_publication_has_no_outcome() -> None:
    stored: Any = stored_publication(attempts=[{"at": BEGIN, "outcome": "FAILED"}])
    del stored["upload"]
    found = publication_record(stored)
    assert (found.upload, found.progress, found.error, found.held_at) == (None, None, None, None)
    assert (found.published_at, found.external_id, found.url) == (None, None, None)
    assert found.attempts == [PublicationAttempt(BEGIN, "FAILED", None)]


@pytest.mark.parametrize(("late_s", "lateness_ms"), [(None, None), (0.25, 250), (-1, 0)])
def test_lateness_is_never_negative(late_s: float | None, lateness_ms: int | None) -> None:
    published_at = {} if late_s is None else {"published_at": in_s(-10) + timedelta(seconds=late_s)}
    assert record(**published_at).lateness_ms == lateness_ms


@pytest.mark.parametrize("target", [HomeFeedTarget("ann"), TopicTarget("t", "c"), AccountTarget("a", Network.SANDBOX)])
def test_target_is_read_as_it_was_stored(target: Target) -> None:
    assert record(target=target_document(target)).target == target


def test_post_record_holds_every_field() -> None:
    stored: Any = stored_post()
    assert media_documents([IMAGE]) == [MEDIUM]
    assert post_record(stored) == ScheduledPost(
        id="post",
        organization_id=ORG,
        timestamp=Timestamp(5),
        author_id="ann",
        text="hello",
        media=[IMAGE],
        due_at=in_s(-10),
        time_zone="UTC",
        max_lateness_s=60,
        created_at=in_s(-99),
        revision=3,
    )


@pytest.mark.parametrize(
    "more", [{}, {"disconnected_at": BEGIN}, {"handle": "@ann", "network_id": "7", "verified_at": BEGIN}]
)
def test_account_record_holds_every_field(more: dict[str, Any]) -> None:
    stored: Any = {"_id": "a", "org": ORG, "network": "X", "name": "ours", "base_url": "https://example.org"}
    expected = ("a", ORG, Network.X, "ours", "https://example.org", in_s(-1), more.get("disconnected_at"))
    said = {name: more.get(name) for name in ("handle", "network_id", "verified_at")}
    assert account_record(stored | {"connected_at": in_s(-1)} | more) == ConnectedAccount(*expected, **said)


def test_post_state_follows_publication_states() -> None:
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


def test_candidate_states_cover_every_post_state() -> None:
    combinations = [
        states for size in (1, 2, 3) for states in itertools.combinations_with_replacement(PublicationState, size)
    ]
    assert all(publication_states_to_search([post_state(states)]) & set(states) for states in combinations)
