"""Everything that a retry by a person stores, and the publications that can't be tried again."""

from typing import Any

import pytest

from storage.errors import Conflict, DomainError, Forbidden, NotFound
from storage.idempotency import idempotency_key
from storage.identity.audit import Actor
from storage.mongo import Document
from storage.publishing.attention import ACCOUNTS
from storage.publishing.documents import SCHEDULED_POSTS
from storage.publishing.records import PublicationState
from storage.publishing.retrying import RetryPublication
from storage.publishing.transitions import MarkFailed
from tests.storage.in_memory_stream import BEGIN, ORG, REMOVED, in_s
from tests.storage.publishing.in_memory_posts import InMemoryPosts, stored_post, stored_publication
from tests.storage.publishing.scenario import PublishingScenario, account_target
from tests.storage.publishing.test_attention import MARK, NO_UPLOAD, held_publication, stored_account

ADA = Actor(ORG, "ada")
FAILED = {"state": "FAILED", "error": {"code": "REFUSED", "message": "no"}, "mail_at": BEGIN}
FAILED |= {"mail": {"reason": "FAILED", "attempt": 1}}
SCHEDULED = NO_UPLOAD | {"state": "SCHEDULED", "fence": 8, "wake_at": BEGIN, "claim": REMOVED, "error": REMOVED}
SCHEDULED |= {"late_from": BEGIN}
NEW_TIMES = {"due": BEGIN, "late_at": in_s(60)}


def retry(stream: InMemoryPosts, before: Document, actor: Actor | None = None) -> Document:
    """Retries the publication. Returns the fields that differ."""
    if stream.get(SCHEDULED_POSTS, "post") is None:
        stream.put_all(stored_post())
    if stream.get(ACCOUNTS, "account") is None:
        stream.put(ACCOUNTS, stored_account(attention=MARK))
    return stream.change(lambda each: RetryPublication(each, actor), before)


def test_failed_publication_is_due_at_once_with_new_deadline() -> None:
    stream = InMemoryPosts()
    changed = retry(stream, stored_publication(**FAILED))
    assert changed == SCHEDULED | NEW_TIMES | {"mail_at": REMOVED, "mail": REMOVED}
    assert stream.stored("account", ACCOUNTS) == stored_account()
    assert (stream.result, stream.emitted, stream.notified) == (
        stream.publication(),
        [("PublicationChanged", "pub")],
        [],
    )


def test_held_publication_keeps_its_deadline() -> None:
    stream = InMemoryPosts()
    assert retry(stream, held_publication(attention_notified=True)) == SCHEDULED
    assert stream.stored("account", ACCOUNTS) == stored_account()
    late = retry(InMemoryPosts(), held_publication(late_at=in_s(-0.001)))
    assert late == SCHEDULED | NEW_TIMES


def test_failed_publication_to_topic_is_tried_again() -> None:
    target = {"kind": "TOPIC", "id": "topic", "community": "c"}
    changed = retry(InMemoryPosts(), stored_publication(**FAILED, target=target))
    assert changed["state"] == "SCHEDULED"


@pytest.mark.parametrize("actor", [None, Actor(ORG, "ann"), ADA])
def test_retry_is_audited_if_actor_is_not_the_author(actor: Actor | None) -> None:
    stream = InMemoryPosts()
    retry(stream, stored_publication(**FAILED), actor)
    expected = {"action": "PUBLICATION_RETRIED", "kind": "PUBLICATION", "target": "pub", "actor": "ada"}
    expected |= {"details": {"author": "ann", "state": "FAILED"}}
    assert stream.audited == ([expected] if actor is ADA else [])


FINAL_OR_ACTIVE = set(PublicationState) - {PublicationState.FAILED, PublicationState.NEEDS_ATTENTION}
FILE = {"id": "file", "name": "a.png", "type": "image/png", "size": 1}


@pytest.mark.parametrize(
    ("publication", "post", "account", "error"),
    [
        *[({"state": each.value}, {}, {}, Conflict) for each in sorted(FINAL_OR_ACTIVE, key=str)],
        (FAILED, {"text": "", "media": []}, {}, Conflict),
        (FAILED, {}, {"disconnected_at": BEGIN}, Conflict),
        (FAILED, {"attachments": [FILE]}, {}, Conflict),
    ],
)
def test_publication_that_cannot_be_published_stays(
    publication: Document, post: Document, account: Document, error: type[DomainError]
) -> None:
    stream, before = InMemoryPosts(), stored_publication(**publication)
    stream.put_all(stored_post(**post))
    stream.put(ACCOUNTS, stored_account(**account))
    with pytest.raises(error, match=r"\w"):
        retry(stream, before)
    assert stream.stored() == before


def test_held_publication_with_files_is_tried_again() -> None:
    stream = InMemoryPosts()
    stream.put_all(stored_post(attachments=[FILE]))
    assert retry(stream, held_publication(attachments=[FILE]))["state"] == "SCHEDULED"


def test_retry_of_others_needs_operator() -> None:
    with pytest.raises(Forbidden):
        retry(InMemoryPosts(), stored_publication(**FAILED), Actor(ORG, "bob"))


def test_retry_of_removed_publication_is_not_found() -> None:
    stream = InMemoryPosts()
    stream.put_all(stored_publication(**FAILED))
    publication: Any = stream.publication()
    with pytest.raises(NotFound):
        stream.commit(RetryPublication(publication))


@pytest.mark.anyio
async def test_repeated_key_retries_once(scenario: PublishingScenario) -> None:
    account = await scenario.connect_account()
    store, post = scenario.stores.scheduled_posts, await scenario.schedule(account_target(account), in_s=-1)
    failed = await store.apply(MarkFailed(await scenario.claim(post), "REFUSED", "no"))
    key = idempotency_key(scenario.organization_id, "ann", "retryPublication", "k", {"id": failed.id})
    retried = await store.retry(failed, None, key)
    assert retried.state is PublicationState.SCHEDULED
    claimed = await scenario.claim(post)
    await store.apply(MarkFailed(claimed, "REFUSED", "again"))
    again = await store.retry(failed, None, key)
    assert (again.state, again.fence) == (PublicationState.FAILED, claimed.fence)
