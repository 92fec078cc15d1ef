"""Creating and deleting posts: unique timestamps, one post per source, no partial commits."""

from dataclasses import dataclass

import pytest

from storage.chat.roles import Moderator
from storage.errors import Conflict, Forbidden, NotFound
from storage.feed.changes import PostPlan
from storage.feed.records import Post, author_stream, home_stream
from storage.idempotency import DuplicateRequest, IdempotencyKey, idempotency_key
from storage.identity.records import user_stream
from storage.ids import PostKey, post_key
from storage.mongo import Document
from storage.streams.changes import Batch, DocumentKey, SystemChange
from storage.streams.log import jobs_stream
from tests.storage.feed.feed_scenario import FeedScenario, gather_list
from tests.storage.topic_scenario import OpenStores

pytestmark = pytest.mark.anyio


@dataclass
class PublishPost(SystemChange[Post]):
    """Commits a publication together with its post, as the publishing area does."""

    max_timestamps = 1
    post: PostPlan
    publication: Document
    idempotency: IdempotencyKey | None = None

    def needs(self) -> list[DocumentKey]:
        return [*self.post.needs(), ("publications", self.publication["_id"])]

    def plan(self, batch: Batch) -> Post:
        post = self.post.put(batch)
        batch.put("publications", {**self.publication, "state": "PUBLISHED"})
        return post


async def test_posts_of_many_authors_have_unique_timestamps(feed: FeedScenario, open_process: OpenStores) -> None:
    authors = [f"author-{n}" for n in range(12)]
    await feed.sign_in(*authors)
    async with open_process() as stores:
        process_feeds = [feed, feed.with_stores(stores)]
        posts = await gather_list(
            *(
                process_feed.post(author, f"{n}")
                for n in range(5)
                for author in authors
                for process_feed in process_feeds
            )
        )
    assert len({post.timestamp for post in posts}) == len(posts) == 120
    stored = await feed.documents("posts")
    assert [document["_id"]["ts"] for document in stored] == sorted(post.timestamp for post in posts)


async def test_consecutive_posts_of_author_have_rising_timestamps(feed: FeedScenario) -> None:
    posts = [await feed.post(text=str(n)) for n in range(20)]
    assert [post.timestamp for post in posts] == sorted({post.timestamp for post in posts})


async def test_created_post_is_in_author_own_feed(feed: FeedScenario) -> None:
    post = await feed.post()
    (item,) = await feed.documents("feed_items")
    assert item["_id"] == {"o": feed.organization_id, "u": "ann", "ts": post.timestamp}
    for stream, kind in (
        (author_stream(feed.organization_id, "ann"), "PostArrived"),
        (home_stream(feed.organization_id, "ann"), "PostArrived"),
        (jobs_stream(feed.organization_id), "FanOutChanged"),
    ):
        assert [(event.kind, event.ref) for event in await feed.events(stream)] == [(kind, post.timestamp)]


async def test_mentioned_user_is_notified_once_but_not_author(feed: FeedScenario) -> None:
    await feed.post(text="@bob @ann", mention_ids=["bob", "ann"])
    assert [event.kind for event in await feed.events(user_stream(feed.organization_id, "bob"))] == [
        "NotificationArrived"
    ]
    assert await feed.events(user_stream(feed.organization_id, "ann")) == []


async def test_source_tried_concurrently_makes_one_post(feed: FeedScenario, open_process: OpenStores) -> None:
    async def publish(process_feed: FeedScenario) -> str:
        plan = process_feed.stores.posts.plan(process_feed.new_post(source="pub:1"))
        change = PublishPost(plan, {"_id": f"{process_feed.organization_id}-1"})
        try:
            stream = author_stream(process_feed.organization_id, "ann")
            return (await process_feed.stores.sequencer.commit(stream, change)).id
        except DuplicateRequest as duplicate:
            return duplicate.result_id

    async with open_process() as stores:
        ids = await gather_list(
            *(publish(process_feed) for process_feed in (feed, feed.with_stores(stores)) for _ in range(15))
        )
    (stored,) = await feed.documents("posts")
    assert set(ids) == {PostKey(feed.organization_id, stored["_id"]["ts"]).id}


async def test_publishing_change_commits_with_post_or_not_at_all(feed: FeedScenario) -> None:
    plan, stream = (
        feed.stores.posts.plan(feed.new_post(source="pub:2")),
        author_stream(feed.organization_id, "ann"),
    )
    first, second = ({"_id": f"{feed.organization_id}-{n}"} for n in "ab")
    await feed.stores.sequencer.commit(stream, PublishPost(plan, first))
    with pytest.raises(DuplicateRequest):
        await feed.stores.sequencer.commit(stream, PublishPost(plan, second))
    publications = feed.stores.mongo["publications"]
    assert [await publications.count_documents(each) for each in (first, second)] == [1, 0]


async def test_source_in_other_organization_makes_another_post(feed: FeedScenario) -> None:
    other = FeedScenario(feed.stores)
    posts = [await each.post(source="pub:3") for each in (feed, other)]
    assert len({post.id for post in posts}) == 2


async def test_repeated_key_returns_post_unless_text_differs(feed: FeedScenario) -> None:
    def key(text: str) -> IdempotencyKey | None:
        return idempotency_key(feed.organization_id, "ann", "createPost", "k", {"text": text})

    posts = await gather_list(*(feed.stores.posts.create(feed.new_post(), key("hello")) for _ in range(10)))
    assert len({post.id for post in posts}) == 1
    with pytest.raises(Conflict):
        await feed.stores.posts.create(feed.new_post(text="other"), key("other"))
    assert len(await feed.documents("posts")) == 1


async def test_deleted_post_leaves_tombstone_once(feed: FeedScenario) -> None:
    post = await feed.post(
        text="secret #tag https://example.org/", hashtags=["tag"], media=["https://example.org/a.png"]
    )
    for _ in range(2):
        deleted = await feed.stores.posts.delete(post.key, Moderator("ann"))
        assert (deleted.text, deleted.media, deleted.deleted_at is not None) == ("", (), True)
    (stored,) = await feed.documents("posts")
    assert set(stored) == {"_id", "author", "merged", "at", "text", "deleted_at"}
    assert await feed.stores.posts.find(post.key) is None
    home_events = await feed.events(home_stream(feed.organization_id, "ann"))
    assert [event.kind for event in home_events] in (["PostArrived", "PostRemoved"], ["PostRemoved"])
    assert await feed.documents("feed_items") == []


async def test_delete_by_other_user_is_forbidden(feed: FeedScenario) -> None:
    post = await feed.post()
    with pytest.raises(Forbidden):
        await feed.stores.posts.delete(post.key, Moderator("bob"))
    with pytest.raises(NotFound):
        await feed.stores.posts.delete(PostKey(feed.organization_id, 1), Moderator("bob", is_admin=True))
    assert (await feed.stores.posts.delete(post.key, Moderator("bob", is_admin=True))).deleted_at is not None


@pytest.mark.parametrize("id_", ["", "-", "1", "nonsense", "abc-1", "-1700000000000000"])
def test_post_key_of_malformed_id_is_not_found(id_: str) -> None:
    with pytest.raises(NotFound):
        post_key("acme", id_)


def test_post_id_resolves_in_own_organization_only() -> None:
    key = PostKey("acme", 1_700_000_000_000_000)
    assert post_key("acme", key.id) == key
    for organization, id_ in (("globex", key.id), ("acme", key.id.replace("-", "-0")), ("acme", key.id + "٣")):
        with pytest.raises(NotFound):
            post_key(organization, id_)
