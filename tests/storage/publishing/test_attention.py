"""Everything that the changes store that hold publications for other credentials, and schedule them again."""

from typing import Any

import pytest

from storage.identity.audit import Actor
from storage.mongo import Document
from storage.publishing.attention import ACCOUNTS, DISCONNECTED, MAX_MAILED_AUTHORS, HoldForAttention, ResumePublication
from storage.publishing.documents import SCHEDULED_POSTS
from storage.publishing.editing import ScheduledPostEdit, UpdateScheduledPost
from storage.publishing.erasing import EraseScheduledPost
from storage.publishing.free_timestamps import FreeTimestamps
from storage.publishing.holding import HoldScheduledPost
from storage.publishing.records import PublicationState
from storage.publishing.scheduling import CancelScheduledPost
from storage.publishing.transitions import MarkFailed
from storage.streams.changes import Change
from tests.storage.in_memory_stream import BEGIN, ORG, REMOVED, differences, in_s
from tests.storage.publishing.in_memory_posts import ATTEMPT, InMemoryPosts, stored_post, stored_publication
from tests.storage.publishing.scenario import PublishingScenario, account_target

NONCE = b"present"
ERROR = {"code": "UNAUTHORIZED", "message": "no"}
MARK = {**ERROR, "since": BEGIN, "nonce": NONCE}
NO_UPLOAD = dict.fromkeys(("upload", "upload_at", "upload_claim"), REMOVED) | {"media_state": "STALE"}
PROGRESS = {"key": "k", "tries": 2, "phase": "CALLING", "at": in_s(-8), "first_at": in_s(-9)}
NOTICE = [("user:acme/ann", "PUBLICATION_NEEDS_ATTENTION", "pub")]
DUE_AGAIN = NO_UPLOAD | {"state": "SCHEDULED", "fence": 8, "wake_at": BEGIN, "claim": REMOVED, "late_from": BEGIN}


def stored_account(**fields: Any) -> Document:
    credentials = {"version": "1", "nonce": NONCE, "sealed": b"s"}
    account: Document = {"_id": "account", "org": ORG, "network": "MASTODON", "name": "a", "base_url": None}
    return account | {"connected_at": in_s(-99), "credentials": credentials} | fields


def held_publication(**fields: Any) -> Document:
    return stored_publication(**{"state": "NEEDS_ATTENTION", "error": ERROR, "wake_at": in_s(50)} | fields)


def stream_with(account: Document) -> InMemoryPosts:
    stream = InMemoryPosts(shared={SCHEDULED_POSTS: FreeTimestamps(free=set())})
    stream.put(ACCOUNTS, account)
    return stream


def hold(stream: InMemoryPosts, before: Document, nonce: bytes | None = NONCE) -> Document:
    """Holds the publication. Returns the fields that differ."""
    return stream.change(lambda each: HoldForAttention(each, "UNAUTHORIZED", "no", nonce), before)


def attempts(outcome: str) -> list[Document]:
    return [ATTEMPT, {"at": BEGIN, "outcome": outcome, "detail": "UNAUTHORIZED: no"}]


@pytest.mark.parametrize("before", [{}, {"state": "PUBLISHING", "progress": PROGRESS}])
@pytest.mark.parametrize("is_notified", [False, True])
def test_first_refusal_holds_publication_and_marks_account(before: Document, is_notified: bool) -> None:
    stream, notified = stream_with(stored_account()), {"attention_notified": True}
    changed = hold(stream, stored_publication(**before, **(notified if is_notified else {})))
    held = {"state": "NEEDS_ATTENTION", "error": ERROR, "wake_at": in_s(50), "claim": REMOVED}
    removed = {"progress": REMOVED} if "progress" in before else {}
    reported = notified | {"mail_at": BEGIN, "mail": {"reason": "NEEDS_ATTENTION", "attempt": 2}}
    assert changed == held | NO_UPLOAD | removed | {"attempts": attempts("NEEDS_ATTENTION")} | (
        {} if is_notified else reported
    )
    mark = MARK if is_notified else {**MARK, "mailed": ["ann"]}
    assert stream.stored("account", ACCOUNTS) == stored_account(attention=mark)
    assert (stream.result, stream.emitted) == (stream.publication(), [("PublicationChanged", "pub")])
    assert stream.notified == ([] if is_notified else NOTICE)
    assert stream.reported == stream.team_reports == ([] if is_notified else ["pub/NEEDS_ATTENTION/2"])


@pytest.mark.parametrize("nonce", [NONCE, None])
def test_refusal_keeps_earlier_mark(nonce: bytes | None) -> None:
    account = stored_account(attention={**MARK, "since": in_s(-60), "mailed": ["ann"]})
    stream = stream_with(account)
    changed = hold(stream, stored_publication(), nonce)
    assert changed["state"] == "NEEDS_ATTENTION"
    assert "mail_at" not in changed
    assert (stream.notified, stream.reported) == (NOTICE, ["pub/NEEDS_ATTENTION/2"])
    assert stream.team_reports == []
    assert stream.stored("account", ACCOUNTS) == account


def mailed_authors(*mailed: str) -> list[str]:
    """Holds a publication of Ann for a marked account. Returns the authors who were mailed then."""
    stream = stream_with(stored_account(attention={**MARK, "mailed": [*mailed]}))
    is_mailed = "mail_at" in hold(stream, stored_publication(), None)
    authors: list[str] = stream.stored("account", ACCOUNTS)["attention"]["mailed"]
    assert is_mailed is (authors != [*mailed])
    return authors


def test_first_held_post_of_each_author_is_mailed() -> None:
    assert mailed_authors("bob") == ["bob", "ann"]
    assert mailed_authors("ann", "bob") == ["ann", "bob"]


def test_mailed_authors_of_an_account_are_limited() -> None:
    others = [f"u{number}" for number in range(MAX_MAILED_AUTHORS)]
    assert mailed_authors(*others[1:]) == [*others[1:], "ann"]
    assert mailed_authors(*others) == others


def test_refusal_replaces_mark_of_earlier_credentials() -> None:
    stream = stream_with(stored_account(attention={**MARK, "nonce": b"earlier", "mailed": ["ann", "bob"]}))
    assert "mail_at" in hold(stream, stored_publication())
    assert stream.stored("account", ACCOUNTS)["attention"] == {**MARK, "mailed": ["ann"]}


@pytest.mark.parametrize(
    ("account", "nonce"),
    [
        (stored_account(), b"earlier"),
        (stored_account(attention=MARK), b"earlier"),
        (stored_account(), None),
        (stored_account(attention={**MARK, "nonce": b"earlier"}), None),
    ],
)
def test_refusal_of_replaced_credentials_schedules_again(account: Document, nonce: bytes | None) -> None:
    stream = stream_with(account)
    changed = hold(stream, stored_publication(state="PUBLISHING", progress=PROGRESS), nonce)
    assert changed == DUE_AGAIN | {"progress": REMOVED}
    assert stream.stored("account", ACCOUNTS) == account
    assert stream.notified == []


def test_late_refusal_fails_publication() -> None:
    stream = stream_with(stored_account())
    changed = hold(stream, stored_publication(late_at=in_s(-0.001)))
    assert (changed["state"], changed["error"], changed["attempts"]) == ("FAILED", ERROR, attempts("FAILED"))
    assert hold(stream_with(stored_account()), stored_publication(late_at=BEGIN))["state"] == "NEEDS_ATTENTION"


def test_refusal_by_disconnected_account_fails_publication() -> None:
    account = stored_account(disconnected_at=BEGIN)
    del account["credentials"]
    for nonce in (NONCE, None):
        stream = stream_with(account)
        changed = hold(stream, stored_publication(), nonce)
        assert (changed["state"], tuple(changed["error"].values())) == ("FAILED", DISCONNECTED)
        assert stream.stored("account", ACCOUNTS) == account


@pytest.mark.parametrize("account", [stored_account(), stored_account(attention={**MARK, "nonce": b"earlier"})])
def test_resumed_publication_is_due_at_once(account: Document) -> None:
    stream = stream_with(account)
    changed = stream.change(ResumePublication, held_publication())
    assert changed == DUE_AGAIN | {"error": REMOVED}
    assert (stream.result, stream.emitted) == (stream.publication(), [("PublicationChanged", "pub")])


@pytest.mark.parametrize(
    ("account", "late_at"), [(stored_account(attention=MARK), in_s(50)), (stored_account(), in_s(-0.001))]
)
def test_marked_or_late_publication_stays(account: Document, late_at: Any) -> None:
    stream = stream_with(account)
    assert stream.change(ResumePublication, held_publication(late_at=late_at)) == {}
    assert (stream.emitted, stream.result.state) == ([], PublicationState.NEEDS_ATTENTION)


def change_post(change: Change[str], *, is_deactivated: bool = False) -> Document:
    """Commits the change of a post whose publication is held. Returns the fields that differ."""
    before, stream = held_publication(media_state="STALE"), stream_with(stored_account(attention=MARK))
    stream.put_all(stored_post(), before)
    user: Document = {"_id": {"org": ORG, "id": "ann"}}
    stream.put("users", user | ({"deactivated_at": BEGIN} if is_deactivated else {}))
    loaded = [(collection, id_) for collection, id_ in stream.ids() if collection != SCHEDULED_POSTS]
    stream.commit(change, *loaded)
    return differences(before, stream.stored())


def test_held_publication_is_edited_like_a_scheduled_one() -> None:
    changed = change_post(UpdateScheduledPost(ORG, "post", ScheduledPostEdit(text="other")))
    assert changed.items() >= {"state": "SCHEDULED", "error": REMOVED, "fence": 8, "wake_at": in_s(-15)}.items()


def test_held_publication_is_cancelled_like_a_scheduled_one() -> None:
    changed = change_post(CancelScheduledPost(ORG, "post", Actor(ORG, "ann")))
    assert changed.items() >= {"state": "CANCELLED", "error": REMOVED, "fence": 8, "wake_at": REMOVED}.items()


def test_held_publication_of_deactivated_author_waits_for_admin() -> None:
    changed = change_post(HoldScheduledPost(ORG, "post", "ann"), is_deactivated=True)
    expected = {"state": "SCHEDULED", "error": REMOVED, "fence": 8, "wake_at": REMOVED, "held_at": BEGIN}
    assert changed.items() >= expected.items()


def test_erasure_cancels_held_publication() -> None:
    changed = change_post(EraseScheduledPost(ORG, "post"))
    assert changed.items() >= {"state": "CANCELLED", "error": REMOVED, "fence": 8, "wake_at": REMOVED}.items()


def test_held_publication_fails_with_mail() -> None:
    changed = InMemoryPosts().change(lambda each: MarkFailed(each, "UNAUTHORIZED", "no"), held_publication())
    assert changed.items() >= {"state": "FAILED", "mail_at": BEGIN, "wake_at": REMOVED}.items()


@pytest.mark.anyio
async def test_held_publications_are_found_by_their_index(scenario: PublishingScenario) -> None:
    account = await scenario.connect_account()
    for _ in range(20):
        await scenario.schedule(account_target(account))
    post = await scenario.schedule(account_target(account), in_s=-1)
    claimed = await scenario.claim(post)
    hold_change = HoldForAttention(claimed, "UNAUTHORIZED", "no", await scenario.credentials_nonce(claimed))
    await scenario.stores.scheduled_posts.apply(hold_change)
    assert (scenario.organization_id, account.id) in (
        await scenario.stores.scheduled_posts.find_accounts_needing_attention()
    )
    query = {"state": "NEEDS_ATTENTION", "target.id": account.id, "_id": {"$gt": ""}}
    command = {"find": "publications", "filter": query, "sort": {"_id": 1}, "limit": 100}
    explained = await scenario.stores.mongo.database.command({"explain": command, "verbosity": "executionStats"})
    assert explained["executionStats"]["totalKeysExamined"] <= 2
    assert "needing_attention" in str(explained["queryPlanner"]["winningPlan"])


@pytest.mark.anyio
async def test_accounts_needing_attention_are_found_once_each(scenario: PublishingScenario) -> None:
    accounts = [await scenario.connect_account() for _ in range(3)]
    for account in [*accounts, *accounts]:
        claimed = await scenario.claim(await scenario.schedule(account_target(account), in_s=-1))
        nonce = await scenario.credentials_nonce(claimed)
        await scenario.stores.scheduled_posts.apply(HoldForAttention(claimed, "UNAUTHORIZED", "no", nonce))
    found = await scenario.stores.scheduled_posts.find_accounts_needing_attention()
    own = [id_ for organization_id, id_ in found if organization_id == scenario.organization_id]
    assert own == sorted(account.id for account in accounts)


@pytest.mark.anyio
async def test_resumption_passes_batches(scenario: PublishingScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.publishing.posts.RESUME_BATCH_SIZE", 3)
    account = await scenario.connect_account()
    posts = [await scenario.schedule(account_target(account), in_s=-1) for _ in range(10)]
    by_post = {each.scheduled_post_id: each for each in await scenario.stores.claims.claim(1000)}
    nonce = await scenario.credentials_nonce(by_post[posts[0].id])
    store = scenario.stores.scheduled_posts
    for post in posts:
        await store.apply(HoldForAttention(by_post[post.id], "UNAUTHORIZED", "no", nonce))
    assert await store.resume_account(account) == 0
    await scenario.replace_credentials(account, "ok")
    assert await store.resume_account(account) == 10
    assert {(await scenario.publication(post)).state for post in posts} == {PublicationState.SCHEDULED}
    assert await store.resume_account(account) == 0


@pytest.mark.anyio
async def test_disconnection_fails_held_publications(scenario: PublishingScenario) -> None:
    account = await scenario.connect_account()
    post = await scenario.schedule(account_target(account), in_s=-1)
    claimed = await scenario.claim(post)
    nonce = await scenario.credentials_nonce(claimed)
    await scenario.stores.scheduled_posts.apply(HoldForAttention(claimed, "UNAUTHORIZED", "no", nonce))
    await scenario.stores.accounts.disconnect(account)
    assert await scenario.stores.scheduled_posts.fail_scheduled(account) == 1
    assert (await scenario.publication(post)).state is PublicationState.FAILED
