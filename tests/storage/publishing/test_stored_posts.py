"""Everything that each change of a scheduled post stores, in the post and in its publications."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from storage.errors import BadUserInput, Conflict, DomainError, Forbidden, NotFound
from storage.identity.audit import Actor
from storage.identity.records import user_document_id
from storage.identity.roles import Role
from storage.mongo import Document
from storage.publishing.documents import PUBLICATIONS, SCHEDULED_POSTS
from storage.publishing.editing import ScheduledPostEdit, UpdateScheduledPost
from storage.publishing.erasing import ERASED_MESSAGE, EraseScheduledPost
from storage.publishing.free_timestamps import FreeTimestamps, microseconds
from storage.publishing.holding import HoldScheduledPost, ReleaseScheduledPost
from storage.publishing.networks import Network
from storage.publishing.records import AccountTarget, HomeFeedTarget, TopicTarget
from storage.publishing.scheduling import (
    CancelScheduledPost,
    NewScheduledPost,
    SchedulePost,
    check_not_too_late,
    invalidate_upload,
    put_scheduled,
)
from storage.streams.changes import Batch, Change
from storage.streams.log import jobs_stream
from tests.storage.in_memory_stream import BEGIN, ORG, REMOVED, differences, in_s
from tests.storage.publishing.in_memory_posts import ATTEMPT, MEDIUM, InMemoryPosts, stored_post, stored_publication
from tests.storage.publishing.scenario import IMAGE

ADA = Actor(ORG, "ada")
UPLOAD = {"references": ["m"]}
NO_WORK = dict.fromkeys(("wake_at", "claim", "upload_at", "upload_claim"), REMOVED)


def stream_of(*documents: Document, free: Sequence[int] = ()) -> InMemoryPosts:
    """Returns a stream with these posts and publications, and free timestamps."""
    stream = InMemoryPosts(shared={SCHEDULED_POSTS: FreeTimestamps(free=set(free))})
    stream.put_all(*documents)
    return stream


def commit(stream: InMemoryPosts, change: Change[str]) -> None:
    """Commits the change after loading all stored publications and users. Asserts that the result is the post's id."""
    loaded = [(collection, id_) for collection, id_ in stream.ids() if collection != SCHEDULED_POSTS]
    assert stream.commit(change, *loaded) == "post"


def test_new_post_is_stored_with_a_publication_for_each_target() -> None:
    targets = (HomeFeedTarget("ann"), TopicTarget("topic", "community"), AccountTarget("account", Network.MASTODON))
    change = SchedulePost(NewScheduledPost(ORG, "ann", "hello", (IMAGE,), targets, in_s(99), "Asia/Tokyo", 60))
    stream, timestamp = stream_of(free=[microseconds(in_s(99)) + 1]), microseconds(in_s(99)) + 1
    id_ = stream.commit(change)
    ids = change.publication_ids
    assert (id_, change.result_id(id_), len(set(ids))) == (change.id, id_, 3)
    post = {"_id": id_, "ts": timestamp, "due": in_s(99), "zone": "Asia/Tokyo", "publications": ids, "at": BEGIN}
    assert stream.stored(id_, SCHEDULED_POSTS) == stored_post(**post, revision=1)
    common: Document = {"org": ORG, "post": id_, "author": "ann", "state": "SCHEDULED", "fence": 1, "ts": timestamp}
    common |= {"due": in_s(99), "late_at": in_s(159), "wake_at": in_s(94), "attempts": []}
    assert [stream.stored(each) for each in ids] == [
        {**common, "_id": ids[0], "target": {"kind": "HOME_FEED", "id": "ann"}, "place": 0, "media_state": "NONE"},
        {
            **common,
            "_id": ids[1],
            "target": {"kind": "TOPIC", "id": "topic", "community": "community"},
            "place": 1,
            "media_state": "NONE",
        },
        {
            **common,
            "_id": ids[2],
            "target": {"kind": "ACCOUNT", "id": "account", "network": "MASTODON"},
            "place": 2,
            "media_state": "PENDING",
            "upload_at": in_s(99 - 600),
        },
    ]
    assert stream.emitted == [("PublicationChanged", each) for each in ids]


def test_due_moment_may_be_past_by_max_lateness() -> None:
    check_not_too_late(in_s(-60), 60, BEGIN)
    with pytest.raises(BadUserInput, match=r"at most maxLatenessS \(60 s\) ago \(it was 61 s ago\)"):
        check_not_too_late(in_s(-61), 60, BEGIN)
    with pytest.raises(BadUserInput):
        check_not_too_late(in_s(-60.001), 60, BEGIN)
    late = NewScheduledPost(ORG, "ann", "hello", (), (HomeFeedTarget("ann"),), in_s(-61), "UTC", 60)
    with pytest.raises(BadUserInput):
        stream_of().commit(SchedulePost(late))


def medium(kind: str) -> Document:
    return {**MEDIUM, "kind": kind}


@pytest.mark.parametrize(
    ("network", "kinds", "state", "expected", "lead_s"),
    [
        (None, ["IMAGE"], "PENDING", "NONE", None),
        ("WEBHOOK", ["IMAGE"], "READY", "NONE", None),
        ("MASTODON", [], "READY", "NONE", None),
        ("MASTODON", ["IMAGE"], "NONE", "PENDING", 600),
        ("MASTODON", ["VIDEO"], "FAILED", "PENDING", 600),
        ("MASTODON", ["IMAGE"], "STALE", "STALE", 600),
        ("BLUESKY", ["IMAGE"], "UPLOADING", "PENDING", 60),
        ("BLUESKY", ["IMAGE", "REEL"], "PENDING", "PENDING", 240),
    ],
)
def test_upload_is_planned_by_network_and_media(
    network: str | None, kinds: list[str], state: str, expected: str, lead_s: int | None
) -> None:
    target = {"kind": "ACCOUNT", "id": "a", "network": network} if network else {"kind": "TOPIC", "id": "t"}
    before = stored_publication(target=target, media_state=state)
    post: Any = stored_post(media=[medium(kind) for kind in kinds], due=in_s(900), ts=6)
    publication: Any = dict(before)
    batch = Batch(jobs_stream(ORG), {"committed_at": BEGIN}, 0, 1)
    put_scheduled(batch, publication, post, 1)
    upload = {"media_state": expected} if expected != state else {}
    planned = {"upload_at": REMOVED if lead_s is None else in_s(900 - lead_s)}
    times = {"ts": 6, "due": in_s(900), "late_at": in_s(960), "wake_at": in_s(895)}
    dropped = {"upload": REMOVED, "upload_claim": REMOVED, "claim": REMOVED}
    assert differences(before, publication) == {"place": 1, "fence": 8} | times | dropped | upload | planned
    assert batch.get(PUBLICATIONS, "pub") is publication
    assert [each.ref for each in batch.events] == ["pub"]


def test_empty_edit_keeps_ready_upload() -> None:
    before = stored_publication(media_state="READY")
    stream = stream_of(stored_post(), before)
    commit(stream, UpdateScheduledPost(ORG, "post", ScheduledPostEdit()))
    assert differences(before, stream.stored()) == {
        "fence": 8,
        "claim": REMOVED,
        "wake_at": in_s(-15),
        "late_from": in_s(0),
    }


@pytest.mark.parametrize(
    ("state", "upload", "has_new_content", "expected"),
    [
        ("PENDING", None, True, "PENDING"),
        ("UPLOADING", None, False, "STALE"),
        ("READY", UPLOAD, False, "READY"),
        ("READY", UPLOAD, True, "STALE"),
        ("READY", UPLOAD | {"expires_at": None}, False, "READY"),
        ("READY", UPLOAD | {"expires_at": in_s(-10)}, False, "STALE"),
        ("READY", UPLOAD | {"expires_at": in_s(-9.999)}, False, "READY"),
    ],
)
def test_upload_is_stale_after_edit_or_expiry(
    state: str, upload: Document | None, has_new_content: bool, expected: str
) -> None:
    publication: Any = {"media_state": state} | ({} if upload is None else {"upload": upload})
    post: Any = stored_post()
    invalidate_upload(publication, post, has_new_content)
    assert publication["media_state"] == expected


@pytest.mark.parametrize(
    ("edit", "fields", "is_stale"),
    [
        (ScheduledPostEdit(), {}, False),
        (ScheduledPostEdit(revision=3, text="hello"), {}, False),
        (ScheduledPostEdit(text="other"), {"text": "other"}, True),
        (ScheduledPostEdit(media=[replace(IMAGE, alt_text="B")]), {"media": [{**MEDIUM, "alt": "B"}]}, True),
        (ScheduledPostEdit(time_zone="Asia/Tokyo"), {"zone": "Asia/Tokyo"}, False),
        (ScheduledPostEdit(max_lateness_s=99), {"max_lateness_s": 99}, False),
        (ScheduledPostEdit(due_at=in_s(-10)), {}, False),
        (ScheduledPostEdit(due_at=in_s(99)), {"due": in_s(99), "ts": microseconds(in_s(99)) + 1}, False),
    ],
)
def test_edit_stores_exactly_its_fields(edit: ScheduledPostEdit, fields: Document, is_stale: bool) -> None:
    post, before = stored_post(), stored_publication(media_state="READY")
    stream = stream_of(post, before, free=[microseconds(in_s(99)) + 1])
    commit(stream, UpdateScheduledPost(ORG, "post", edit))
    stored = stream.stored("post", SCHEDULED_POSTS)
    assert differences(post, stored) == {"revision": 4} | fields
    publication, due_in_s = stream.stored(), 99 if "due" in fields else -10
    times = {"ts": stored["ts"], "due": stored["due"], "late_at": in_s(due_in_s + stored["max_lateness_s"])}
    assert publication.items() >= (times | {"fence": 8, "wake_at": in_s(due_in_s - 5)}).items()
    assert publication["media_state"] == ("STALE" if is_stale else "READY")
    assert stream.emitted == [("PublicationChanged", "pub")]


def test_edit_of_targets_keeps_adds_and_removes_publications() -> None:
    topics: list[Document] = [{"kind": "TOPIC", "id": id_, "community": "c"} for id_ in ("x", "y")]
    before = [stored_publication(_id=each["id"], target=each, media_state="NONE") for each in topics]
    stream = stream_of(stored_post(publications=["x", "y"]), *before)
    targets = [AccountTarget("y", Network.SANDBOX), TopicTarget("y", "c")]
    change = UpdateScheduledPost(ORG, "post", ScheduledPostEdit(targets=targets))
    commit(stream, change)
    added = change.new_ids[0]
    assert stream.stored("post", SCHEDULED_POSTS)["publications"] == [added, "y"]
    assert stream.stored("x") == {}
    assert [stream.stored(each)["place"] for each in (added, "y")] == [0, 1]
    assert stream.stored(added)["target"] == {"kind": "ACCOUNT", "id": "y", "network": "SANDBOX"}
    assert [stream.stored(each)["fence"] for each in (added, "y")] == [1, 8]
    assert stream.emitted == [("PublicationChanged", added), ("PublicationChanged", "y")]


@pytest.mark.parametrize(
    ("change", "publication", "error"),
    [
        (UpdateScheduledPost("elsewhere", "post", ScheduledPostEdit()), {}, NotFound),
        (UpdateScheduledPost(ORG, "post", ScheduledPostEdit(revision=2)), {}, Conflict),
        (UpdateScheduledPost(ORG, "post", ScheduledPostEdit()), {"held_at": BEGIN}, Conflict),
        (UpdateScheduledPost(ORG, "post", ScheduledPostEdit()), {"state": "PUBLISHING"}, Conflict),
        (UpdateScheduledPost(ORG, "post", ScheduledPostEdit(max_lateness_s=9)), {}, BadUserInput),
        (UpdateScheduledPost(ORG, "post", ScheduledPostEdit(due_at=in_s(-61))), {}, BadUserInput),
        (CancelScheduledPost(ORG, "post"), {"state": "UNKNOWN"}, Conflict),
        (ReleaseScheduledPost(ORG, "post", "bob", BEGIN, ADA), {}, Conflict),
        (ReleaseScheduledPost(ORG, "post", "bob", in_s(-61), ADA), {"held_at": BEGIN}, BadUserInput),
        (ReleaseScheduledPost(ORG, "post", "eve", BEGIN, ADA), {"held_at": BEGIN}, Conflict),
        (ReleaseScheduledPost(ORG, "post", "gone", BEGIN, ADA), {"held_at": BEGIN}, Conflict),
        (ReleaseScheduledPost(ORG, "post", "bob", BEGIN, Actor(ORG, "bob")), {"held_at": BEGIN}, Forbidden),
        (ReleaseScheduledPost(ORG, "post", "bob", BEGIN, Actor(ORG, "gone")), {"held_at": BEGIN}, Forbidden),
    ],
)
def test_refused_change_of_post_stores_nothing(
    change: Change[str], publication: Document, error: type[DomainError]
) -> None:
    stream = with_people(stream_of(stored_post(), stored_publication(**publication), free=[microseconds(in_s(-61))]))
    before = dict(stream.documents)
    with pytest.raises(error, match=r"\w"):
        commit(stream, change)
    assert stream.documents == before


def test_change_of_unknown_post_is_not_found() -> None:
    for change in (CancelScheduledPost(ORG, "post"), EraseScheduledPost(ORG, "post")):
        with pytest.raises(NotFound):
            commit(stream_of(), change)


@pytest.mark.parametrize("actor", [None, Actor(ORG, "ann"), ADA])
def test_cancellation_is_audited_if_actor_is_not_the_author(actor: Actor | None) -> None:
    post = stored_post(publications=["pub", "held", "done", "lost"])
    before = [
        stored_publication(),
        stored_publication(_id="held", held_at=BEGIN),
        stored_publication(_id="done", state="PUBLISHED"),
    ]
    stream = stream_of(post, *before)
    commit(stream, CancelScheduledPost(ORG, "post", actor))
    assert differences(post, stream.stored("post", SCHEDULED_POSTS)) == {"revision": 4}
    cancelled = NO_WORK | {"state": "CANCELLED", "fence": 8}
    changed = [differences(each, stream.stored(each["_id"])) for each in before]
    assert changed == [cancelled, cancelled | {"held_at": REMOVED}, {}]
    assert stream.emitted == [("PublicationChanged", "pub"), ("PublicationChanged", "held")]
    entry = {"actor": "ada", "action": "SCHEDULED_POST_CANCELLED", "kind": "SCHEDULED_POST", "target": "post"}
    assert stream.audited == ([entry | {"details": {"author": "ann"}}] if actor is ADA else [])


def with_people(stream: InMemoryPosts) -> InMemoryPosts:
    """Adds the ADMIN Ada, the MEMBER Bob, and the deactivated Ann and Eve."""
    for name in ("ada", "bob", "ann", "eve"):
        roles = [Role.ADMIN.value] if name == "ada" else []
        user: Document = {"_id": user_document_id(ORG, name), "roles": roles, "roles_granted": True}
        stream.put("users", user | ({"deactivated_at": BEGIN} if name in ("ann", "eve") else {}))
    return stream


def test_posts_of_deactivated_author_are_held_unless_started() -> None:
    kinds: dict[str, Document] = {
        "pub": {},
        "started": {"state": "PUBLISHING"},
        "held": {"held_at": in_s(-1)},
        "other": {"author": "bob"},
    }
    before = [stored_publication(_id=name, **fields) for name, fields in kinds.items()]
    stream = with_people(stream_of(stored_post(publications=list(kinds)), *before))
    commit(stream, HoldScheduledPost(ORG, "post", "ann"))
    changed = [differences(each, stream.stored(each["_id"])) for each in before]
    assert changed == [NO_WORK | {"fence": 8, "held_at": BEGIN}, {}, {}, {}]
    assert stream.emitted == [("PublicationChanged", "pub")]


@pytest.mark.parametrize("author", ["bob", "gone"])
def test_posts_of_active_or_missing_author_are_not_held(author: str) -> None:
    stream = with_people(stream_of(stored_post(), stored_publication(author=author)))
    commit(stream, HoldScheduledPost(ORG, "post", author))
    assert stream.emitted == []


@pytest.mark.parametrize(("due", "late_from"), [(in_s(-0.001), BEGIN), (BEGIN, None)])
def test_late_scheduling_is_remembered_until_the_next(due: Any, late_from: Any) -> None:
    publication: Any = stored_publication(late_from=in_s(-50))
    post: Any = stored_post(due=due)
    put_scheduled(Batch(jobs_stream(ORG), {"committed_at": BEGIN}, 0, 1), publication, post, 0)
    assert publication.get("late_from") == late_from


@pytest.mark.parametrize("due", [-10, 99])
def test_release_gives_held_publications_to_other_person(due: int) -> None:
    timestamp = 5 if due == -10 else microseconds(in_s(due)) + 1
    post = stored_post(publications=["done", "home", "topic", "pub"])
    waits: Document = {"held_at": in_s(-1), "media_state": "NONE"}
    before = [
        stored_publication(_id="done", state="PUBLISHED"),
        stored_publication(_id="home", target={"kind": "HOME_FEED", "id": "ann"}, place=1, **waits),
        stored_publication(_id="topic", target={"kind": "TOPIC", "id": "topic", "community": "c"}, place=2, **waits),
        stored_publication(place=3, held_at=in_s(-1), media_state="READY", upload=UPLOAD | {"expires_at": in_s(50)}),
    ]
    stream = with_people(stream_of(post, *before, free=[timestamp]))
    commit(stream, ReleaseScheduledPost(ORG, "post", "bob", in_s(due), ADA))
    moved: Document = {} if due == -10 else {"due": in_s(due), "ts": timestamp}
    stored = stream.stored("post", SCHEDULED_POSTS)
    assert differences(post, stored) == {"author": "bob", "revision": 4} | moved
    times = moved | ({"late_from": BEGIN} if due == -10 else {"late_at": in_s(159)}) | {"wake_at": in_s(due - 5)}
    released = times | {"author": "bob", "fence": 8, "held_at": REMOVED, "claim": REMOVED}
    dropped = dict.fromkeys(("upload", "upload_at", "upload_claim"), REMOVED)
    stale = {} if due == -10 else dropped | {"media_state": "STALE", "upload_at": in_s(due - 600)}
    changed = [differences(each, stream.stored(each["_id"])) for each in before]
    home = {"target": {"kind": "HOME_FEED", "id": "bob"}}
    assert changed == [{}, released | dropped | home, released | dropped, released | stale]
    assert stream.emitted == [("PublicationChanged", each) for each in ("home", "topic", "pub")]
    entry = {"actor": "ada", "action": "SCHEDULED_POST_RELEASED", "kind": "SCHEDULED_POST", "target": "post"}
    assert stream.audited == [entry | {"details": {"author": "ann", "responsible": "bob"}}]


ERASED_ERROR = {"code": "FORBIDDEN", "message": ERASED_MESSAGE}


@pytest.mark.parametrize(
    ("fields", "erased"),
    [
        ({"state": "SCHEDULED"}, {"state": "CANCELLED"}),
        ({"state": "PUBLISHING"}, {"state": "FAILED", "error": ERASED_ERROR}),
        (
            {"state": "UNKNOWN", "error": {"code": "UNKNOWN", "message": "x"}},
            {"state": "FAILED", "error": ERASED_ERROR},
        ),
        ({"state": "PUBLISHED"}, {}),
        (
            {"state": "FAILED", "error": {"code": "REFUSED", "message": "x"}},
            {"error": {"code": "REFUSED", "message": ERASED_MESSAGE}},
        ),
    ],
)
def test_erasure_empties_post_and_ends_publication(fields: Document, erased: Document) -> None:
    removed: Document = {"progress": {"key": "k"}, "mail_at": BEGIN, "mail": {"reason": "FAILED", "attempt": 1}}
    removed |= {"external_id": "id", "url": "https://example.org/1"}
    post, before = stored_post(), stored_publication(**removed, **fields)
    stream = stream_of(post, before)
    for _ in range(2):
        commit(stream, EraseScheduledPost(ORG, "post"))
    assert differences(post, stream.stored("post", SCHEDULED_POSTS)) == {"text": "", "media": [], "revision": 4}
    gone = NO_WORK | dict.fromkeys(("progress", "mail_at", "mail", "upload"), REMOVED)
    emptied = {"external_id": None, "url": None, "fence": 8, "attempts": [{**ATTEMPT, "detail": None}]}
    assert differences(before, stream.stored()) == gone | emptied | erased
    assert stream.emitted == [("PublicationChanged", "pub")]


@pytest.mark.parametrize("fields", [{"text": ""}, {"media": []}])
def test_post_with_text_or_media_only_is_erased(fields: Document) -> None:
    stream = stream_of(stored_post(**fields), stored_publication())
    commit(stream, EraseScheduledPost(ORG, "post"))
    assert stream.stored("post", SCHEDULED_POSTS).items() >= {"text": "", "media": [], "revision": 4}.items()
