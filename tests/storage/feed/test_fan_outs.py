"""Fan-outs: one worker at a time, by a fence; nothing counted twice; failures tried five times, kept and counted."""

from dataclasses import replace

import pytest

from storage.feed.fan_outs import MAX_TRIES, FanOutClaim, FanOutRetry
from storage.feed.follows import FollowPair
from storage.feed.records import FanOut, FanOutState, Post
from storage.streams.log import jobs_stream
from tests.storage.feed.hall import Hall, together
from tests.storage.places import OpenStores

pytestmark = pytest.mark.anyio


@pytest.fixture
async def post(hall: Hall) -> Post:
    """A post of Ann's, whom Bob and Cyd follow."""
    await hall.enter("cyd")
    for name in ("bob", "cyd"):
        await hall.stores.follows.follow(FollowPair(hall.organization_id, name, "ann"))
    return await hall.post()


async def fan_out(hall: Hall, post: Post) -> FanOut:
    found = await hall.stores.fan_outs.find(post.key)
    assert found is not None
    return found


async def claimed(hall: Hall, post: Post) -> FanOutClaim:
    claim = await hall.stores.fan_outs.claim(post.key)
    assert claim is not None
    return claim


def numbers(fan_out: FanOut) -> tuple[str, int, int, int]:
    return fan_out.state.value, fan_out.total, fan_out.delivered, fan_out.failed


async def test_it_begins_with_the_post_even_without_followers(hall: Hall, post: Post) -> None:
    assert numbers(await fan_out(hall, post)) == ("PENDING", 2, 0, 0)
    alone = await hall.post("bob")
    assert numbers(await fan_out(hall, alone)) == ("PENDING", 0, 0, 0)
    assert {post.key, alone.key} <= set(await hall.stores.fan_outs.open(1000))
    assert await hall.stores.fan_outs.advance(await claimed(hall, alone), "", True) is not None
    assert numbers(await fan_out(hall, alone)) == ("COMPLETED", 0, 0, 0)


async def test_one_of_many_gets_the_claim_and_after_it_ran_out_another(
    hall: Hall, post: Post, another: OpenStores
) -> None:
    async with another() as stores:
        tries = (h.fan_outs.claim(post.key) for h in (hall.stores, stores) for _ in range(10))
        claims = [claim for claim in await together(*tries) if claim is not None]
    assert len(claims) == 1
    assert post.key not in await hall.stores.fan_outs.open(1000)
    await hall.expire("fan_outs", "lease_until")
    assert (await claimed(hall, post)).fence == claims[0].fence + 1


async def test_who_lost_the_claim_moves_nothing(hall: Hall, post: Post) -> None:
    first = await claimed(hall, post)
    await hall.expire("fan_outs", "lease_until")
    second = await claimed(hall, post)
    assert await hall.stores.fan_outs.advance(first, "cyd", True, 2) is None
    assert numbers(await fan_out(hall, post)) == ("RUNNING", 2, 0, 0)
    assert await hall.stores.fan_outs.advance(second, "cyd", True, 2) is not None
    assert numbers(await fan_out(hall, post)) == ("COMPLETED", 2, 2, 0)
    assert await hall.stores.fan_outs.claim(post.key) is None


async def test_a_step_that_is_repeated_is_counted_once(hall: Hall, post: Post) -> None:
    claim = await claimed(hall, post)
    moved = await hall.stores.fan_outs.advance(claim, "bob", False, 1)
    assert moved == replace(claim, after="bob")
    await hall.expire("fan_outs", "lease_until")
    assert (await claimed(hall, post)).after == "bob"
    assert (await fan_out(hall, post)).delivered == 1


async def test_a_failure_keeps_it_running_until_it_is_settled(hall: Hall, post: Post) -> None:
    await hall.stores.fan_outs.advance(await claimed(hall, post), "cyd", True, 1, ["bob"])
    assert numbers(await fan_out(hall, post)) == ("RUNNING", 2, 1, 0)
    assert await due(hall) == []
    await hall.expire("feed_retries", "due")
    (retry,) = await due(hall)
    assert retry == FanOutRetry(post.key, {"bob": 1})
    await together(*(hall.stores.fan_outs.settle_retries(retry, ()) for _ in range(5)))
    assert numbers(await fan_out(hall, post)) == ("COMPLETED", 2, 2, 0)


async def due(hall: Hall) -> list[FanOutRetry]:
    return [
        each
        for each in await hall.stores.fan_outs.due_retries(1000)
        if each.key.organization_id == hall.organization_id
    ]


async def test_after_five_more_tries_it_is_given_up_kept_and_counted(hall: Hall, post: Post) -> None:
    await hall.stores.fan_outs.advance(await claimed(hall, post), "cyd", True, 1, ["bob"])
    for number in range(1, MAX_TRIES + 1):
        await hall.expire("feed_retries", "due")
        (retry,) = await due(hall)
        assert retry.tries == {"bob": number}
        # Two workers may try at the same time.
        await together(*(hall.stores.fan_outs.settle_retries(retry, ["bob"]) for _ in range(2)))
    assert numbers(await fan_out(hall, post)) == ("COMPLETED", 2, 1, 1)
    (kept,) = await hall.documents("feed_retries")
    assert (kept["_id"]["u"], kept["tries"], "due" in kept) == ("bob", MAX_TRIES, False)


async def test_deleting_stops_it_whoever_holds_the_claim(hall: Hall, post: Post) -> None:
    claim = await claimed(hall, post)
    await hall.stores.posts.delete(post.key, "ann", False)
    assert await hall.stores.fan_outs.advance(claim, "cyd", True, 2) is None
    assert numbers(await fan_out(hall, post)) == ("COMPLETED", 0, 0, 0)
    removing = await claimed(hall, post)
    assert (removing.task, removing.after) == ("remove", "")
    await hall.stores.fan_outs.advance(removing, "cyd", True)
    assert (await fan_out(hall, post)).state is FanOutState.COMPLETED
    assert await hall.stores.fan_outs.claim(post.key) is None


async def test_its_authors_organization_hears_of_the_beginning_and_the_end(hall: Hall, post: Post) -> None:
    stream = jobs_stream(hall.organization_id)
    begun = len(await hall.events(stream))
    claim = await claimed(hall, post)
    for n in range(20):
        moved = await hall.stores.fan_outs.advance(claim, f"a{n:02}", False, 1)
        assert moved is not None
    between = len(await hall.events(stream))
    assert begun < between <= begun + 4
    await hall.stores.fan_outs.advance(claim, "cyd", True)
    last = (await hall.events(stream))[-1]
    assert (last.kind, last.ref) == ("FanOutChanged", post.timestamp)
    assert len(await hall.events(stream)) == between + 1
