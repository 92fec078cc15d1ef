"""Making and deleting posts: one place each in the organization, one post a source, nothing half done."""

from dataclasses import dataclass

import pytest

from storage.errors import Conflict, Forbidden, NotFound
from storage.feed.changes import PostPlan
from storage.feed.records import Post, author_stream, home_stream
from storage.idempotency import AlreadyDone, IdempotencyKey, idempotency_key
from storage.identity.records import user_stream
from storage.mongo import Document
from storage.references import PostKey, post_key
from storage.streams.changes import Batch, Change, Need
from storage.streams.log import jobs_stream
from tests.storage.feed.hall import Hall, together
from tests.storage.places import OpenStores

pytestmark = pytest.mark.anyio


@dataclass
class Publish(Change[Post]):
    """How another area publishes: its own document changes with the post, or not at all."""

    timestamps = 1
    post: PostPlan
    publication: Document
    idempotency: IdempotencyKey | None = None

    def needs(self) -> list[Need]:
        return [*self.post.needs(), ("publications", self.publication["_id"])]

    def plan(self, batch: Batch) -> Post:
        post = self.post.put(batch)
        batch.put("publications", {**self.publication, "state": "PUBLISHED"})
        return post


async def test_posts_of_many_authors_in_two_processes_have_a_timestamp_each(hall: Hall, another: OpenStores) -> None:
    authors = [f"author-{n}" for n in range(12)]
    await hall.enter(*authors)
    async with another() as stores:
        halls = [hall, hall.through(stores)]
        posts = await together(*(h.post(author, f"{n}") for n in range(5) for author in authors for h in halls))
    assert len({post.timestamp for post in posts}) == len(posts) == 120
    stored = await hall.documents("posts")
    assert [document["_id"]["ts"] for document in stored] == sorted(post.timestamp for post in posts)


async def test_one_authors_posts_rise_in_the_order_of_answers(hall: Hall) -> None:
    posts = [await hall.post(text=str(n)) for n in range(20)]
    assert [post.timestamp for post in posts] == sorted({post.timestamp for post in posts})


async def test_a_post_is_in_its_authors_own_feed_when_it_was_made(hall: Hall) -> None:
    post = await hall.post()
    (item,) = await hall.documents("feed_items")
    assert item["_id"] == {"o": hall.organization_id, "u": "ann", "ts": post.timestamp}
    for stream, kind in (
        (author_stream(hall.organization_id, "ann"), "PostArrived"),
        (home_stream(hall.organization_id, "ann"), "PostArrived"),
        (jobs_stream(hall.organization_id), "FanOutChanged"),
    ):
        assert [(event.kind, event.ref) for event in await hall.events(stream)] == [(kind, post.timestamp)]


async def test_who_is_mentioned_is_told_once_and_nobody_of_themselves(hall: Hall) -> None:
    await hall.post(text="@bob @ann", mention_ids=["bob", "ann"])
    assert [event.kind for event in await hall.events(user_stream(hall.organization_id, "bob"))] == [
        "NotificationArrived"
    ]
    assert await hall.events(user_stream(hall.organization_id, "ann")) == []


async def test_a_source_makes_one_post_whoever_tries_and_how_often(hall: Hall, another: OpenStores) -> None:
    async def publish(h: Hall) -> str:
        plan = h.stores.posts.plan(h.new(source="pub:1"))
        change = Publish(plan, {"_id": f"{h.organization_id}-1"})
        try:
            return (await h.stores.sequencer.commit(author_stream(h.organization_id, "ann"), change)).id
        except AlreadyDone as done:
            return done.id

    async with another() as stores:
        ids = await together(*(publish(h) for h in (hall, hall.through(stores)) for _ in range(15)))
    (stored,) = await hall.documents("posts")
    assert set(ids) == {PostKey(hall.organization_id, stored["_id"]["ts"]).id}


async def test_what_publishes_changes_with_the_post_or_not_at_all(hall: Hall) -> None:
    plan, stream = hall.stores.posts.plan(hall.new(source="pub:2")), author_stream(hall.organization_id, "ann")
    first, second = ({"_id": f"{hall.organization_id}-{n}"} for n in "ab")
    await hall.stores.sequencer.commit(stream, Publish(plan, first))
    with pytest.raises(AlreadyDone):
        await hall.stores.sequencer.commit(stream, Publish(plan, second))
    publications = hall.stores.mongo["publications"]
    assert [await publications.count_documents(each) for each in (first, second)] == [1, 0]


async def test_the_same_source_in_another_organization_makes_a_post_there(hall: Hall) -> None:
    other = Hall(hall.stores)
    posts = [await each.post(source="pub:3") for each in (hall, other)]
    assert len({post.id for post in posts}) == 2


async def test_a_repeated_key_gives_the_post_and_with_other_arguments_is_a_conflict(hall: Hall) -> None:
    def key(text: str) -> IdempotencyKey | None:
        return idempotency_key(hall.organization_id, "ann", "createPost", "k", {"text": text})

    posts = await together(*(hall.stores.posts.create(hall.new(), key("hello")) for _ in range(10)))
    assert len({post.id for post in posts}) == 1
    with pytest.raises(Conflict):
        await hall.stores.posts.create(hall.new(text="other"), key("other"))
    assert len(await hall.documents("posts")) == 1


async def test_deleting_leaves_nothing_but_the_place_and_twice_is_once(hall: Hall) -> None:
    post = await hall.post(
        text="secret #tag https://example.org/", hashtags=["tag"], media=["https://example.org/a.png"]
    )
    for _ in range(2):
        gone = await hall.stores.posts.delete(post.key, "ann", False)
        assert (gone.text, gone.media, gone.deleted_at is not None) == ("", (), True)
    (stored,) = await hall.documents("posts")
    assert set(stored) == {"_id", "author", "merged", "at", "text", "deleted_at"}
    assert await hall.stores.posts.find(post.key) is None
    home = await hall.events(home_stream(hall.organization_id, "ann"))
    assert [event.kind for event in home] in (["PostArrived", "PostRemoved"], ["PostRemoved"])
    assert await hall.documents("feed_items") == []


async def test_only_its_author_or_who_may_delete_any_deletes_a_post(hall: Hall) -> None:
    post = await hall.post()
    with pytest.raises(Forbidden):
        await hall.stores.posts.delete(post.key, "bob", False)
    with pytest.raises(NotFound):
        await hall.stores.posts.delete(PostKey(hall.organization_id, 1), "bob", True)
    assert (await hall.stores.posts.delete(post.key, "bob", True)).deleted_at is not None


@pytest.mark.parametrize("id_", ["", "-", "1", "nonsense", "abc-1", "-1700000000000000"])
def test_what_is_no_id_of_a_post_is_not_found(id_: str) -> None:
    with pytest.raises(NotFound):
        post_key("acme", id_)


def test_an_id_leads_to_its_key_in_its_own_organization_only() -> None:
    key = PostKey("acme", 1_700_000_000_000_000)
    assert post_key("acme", key.id) == key
    for organization, id_ in (("globex", key.id), ("acme", key.id.replace("-", "-0")), ("acme", key.id + "٣")):
        with pytest.raises(NotFound):
            post_key(organization, id_)
