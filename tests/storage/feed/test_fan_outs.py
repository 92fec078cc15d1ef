"""Fan-outs: fenced claims of one worker at a time, exact counts, and five retries of each failed insert."""

from dataclasses import replace

import pytest

from storage.chat.roles import Moderator
from storage.feed.fan_outs import MAX_TRIES, FanOutClaim, FanOutRetry
from storage.feed.follows import FollowPair
from storage.feed.records import FanOut, FanOutState, Post
from storage.streams.log import jobs_stream
from tests.storage.feed.feed_scenario import FeedScenario, gather_list
from tests.storage.topic_scenario import OpenStores

pytestmark = pytest.mark.anyio


@pytest.fixture
async def post(feed: FeedScenario) -> Post:
    """A post of Ann, whose followers are Bob and Cyd."""
    await feed.sign_in("cyd")
    for name in ("bob", "cyd"):
        await feed.stores.follows.follow(FollowPair(feed.organization_id, name, "ann"))
    return await feed.post()


async def stored_fan_out(feed: FeedScenario, post: Post) -> FanOut:
    fan_out = await feed.stores.fan_outs.find(post.key)
    assert fan_out is not None
    return fan_out


async def claim_fan_out(feed: FeedScenario, post: Post) -> FanOutClaim:
    claim = await feed.stores.fan_outs.claim(post.key)
    assert claim is not None
    return claim


def state_and_counts(fan_out: FanOut) -> tuple[str, int, int, int]:
    return fan_out.state.value, fan_out.total, fan_out.delivered, fan_out.failed


async def test_fan_out_starts_pending_even_without_followers(feed: FeedScenario, post: Post) -> None:
    assert state_and_counts(await stored_fan_out(feed, post)) == ("PENDING", 2, 0, 0)
    without_followers = await feed.post("bob")
    assert state_and_counts(await stored_fan_out(feed, without_followers)) == ("PENDING", 0, 0, 0)
    assert {post.key, without_followers.key} <= set(await feed.stores.fan_outs.unclaimed(1000))
    assert await feed.stores.fan_outs.advance(await claim_fan_out(feed, without_followers), "", True) is not None
    assert state_and_counts(await stored_fan_out(feed, without_followers)) == ("COMPLETED", 0, 0, 0)


async def test_claim_is_exclusive_until_it_expires(feed: FeedScenario, post: Post, open_process: OpenStores) -> None:
    async with open_process() as stores:
        tries = (process_stores.fan_outs.claim(post.key) for process_stores in (feed.stores, stores) for _ in range(10))
        claims = [claim for claim in await gather_list(*tries) if claim is not None]
    assert len(claims) == 1
    assert post.key not in await feed.stores.fan_outs.unclaimed(1000)
    await feed.backdate("fan_outs", "lease_until")
    assert (await claim_fan_out(feed, post)).fence == claims[0].fence + 1


async def test_lost_claim_advances_nothing(feed: FeedScenario, post: Post) -> None:
    first = await claim_fan_out(feed, post)
    await feed.backdate("fan_outs", "lease_until")
    second = await claim_fan_out(feed, post)
    assert await feed.stores.fan_outs.advance(first, "cyd", True, 2) is None
    assert state_and_counts(await stored_fan_out(feed, post)) == ("RUNNING", 2, 0, 0)
    assert await feed.stores.fan_outs.advance(second, "cyd", True, 2) is not None
    assert state_and_counts(await stored_fan_out(feed, post)) == ("COMPLETED", 2, 2, 0)
    assert await feed.stores.fan_outs.claim(post.key) is None


async def test_next_claim_continues_after_the_last_advance(feed: FeedScenario, post: Post) -> None:
    claim = await claim_fan_out(feed, post)
    advanced = await feed.stores.fan_outs.advance(claim, "bob", False, 1)
    assert advanced == replace(claim, after="bob")
    await feed.backdate("fan_outs", "lease_until")
    assert (await claim_fan_out(feed, post)).after == "bob"
    assert (await stored_fan_out(feed, post)).delivered == 1


async def test_claim_advances_only_once(feed: FeedScenario, post: Post) -> None:
    claim = await claim_fan_out(feed, post)
    assert await feed.stores.fan_outs.advance(claim, "bob", False, 1) is not None
    assert await feed.stores.fan_outs.advance(claim, "bob", False, 1) is None
    assert state_and_counts(await stored_fan_out(feed, post)) == ("RUNNING", 2, 1, 0)


async def test_failed_insert_keeps_fan_out_running_until_retried(feed: FeedScenario, post: Post) -> None:
    await feed.stores.fan_outs.advance(await claim_fan_out(feed, post), "cyd", True, 1, ["bob"])
    assert state_and_counts(await stored_fan_out(feed, post)) == ("RUNNING", 2, 1, 0)
    assert await due_retries(feed) == []
    await feed.backdate("feed_retries", "due")
    (retry,) = await due_retries(feed)
    assert retry == FanOutRetry(post.key, {"bob": 1})
    await gather_list(*(feed.stores.fan_outs.store_retry_outcomes(retry, ()) for _ in range(5)))
    assert state_and_counts(await stored_fan_out(feed, post)) == ("COMPLETED", 2, 2, 0)


async def due_retries(feed: FeedScenario) -> list[FanOutRetry]:
    """Returns the due retries of the scenario's organization."""
    return [
        each
        for each in await feed.stores.fan_outs.due_retries(1000)
        if each.key.organization_id == feed.organization_id
    ]


async def test_failed_insert_after_five_retries_is_given_up(feed: FeedScenario, post: Post) -> None:
    await feed.stores.fan_outs.advance(await claim_fan_out(feed, post), "cyd", True, 1, ["bob"])
    for number in range(1, MAX_TRIES + 1):
        await feed.backdate("feed_retries", "due")
        (retry,) = await due_retries(feed)
        assert retry.tries == {"bob": number}
        # Two workers may retry at the same time.
        await gather_list(*(feed.stores.fan_outs.store_retry_outcomes(retry, ["bob"]) for _ in range(2)))
    assert state_and_counts(await stored_fan_out(feed, post)) == ("COMPLETED", 2, 1, 1)
    (retry_document,) = await feed.documents("feed_retries")
    assert (retry_document["_id"]["u"], retry_document["tries"], "due" in retry_document) == ("bob", MAX_TRIES, False)


async def test_deleted_post_fences_off_running_claim(feed: FeedScenario, post: Post) -> None:
    claim = await claim_fan_out(feed, post)
    await feed.stores.posts.delete(post.key, Moderator("ann"))
    assert await feed.stores.fan_outs.advance(claim, "cyd", True, 2) is None
    assert state_and_counts(await stored_fan_out(feed, post)) == ("COMPLETED", 0, 0, 0)
    removal_claim = await claim_fan_out(feed, post)
    assert (removal_claim.task, removal_claim.after) == ("remove", "")
    await feed.stores.fan_outs.advance(removal_claim, "cyd", True)
    assert (await stored_fan_out(feed, post)).state is FanOutState.COMPLETED
    assert await feed.stores.fan_outs.claim(post.key) is None


async def test_fan_out_emits_job_events_at_start_and_end(feed: FeedScenario, post: Post) -> None:
    stream = jobs_stream(feed.organization_id)
    event_count = len(await feed.events(stream))
    claim = await claim_fan_out(feed, post)
    for n in range(20):
        advanced = await feed.stores.fan_outs.advance(claim, f"a{n:02}", False, 1)
        assert advanced is not None
        claim = advanced
    middle_count = len(await feed.events(stream))
    assert event_count < middle_count <= event_count + 4
    await feed.stores.fan_outs.advance(claim, "cyd", True)
    last = (await feed.events(stream))[-1]
    assert (last.kind, last.ref) == ("FanOutChanged", post.timestamp)
    assert len(await feed.events(stream)) == middle_count + 1
