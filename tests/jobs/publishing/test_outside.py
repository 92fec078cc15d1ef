"""What becomes of calls that fail, hang, or lose their answer: once or never, and never silently repeated."""

from collections.abc import Sequence

import pytest

from jobs.providers.egress import Egress
from jobs.publishing.desk import Desk
from storage.publishing.networks import Network
from storage.publishing.progress import Begin
from storage.publishing.records import Phase, Publication, PublicationState
from storage.secrets.credentials import Credentials
from tests.jobs.publishing.desks import TWINS, connected, quick_networks, settled, uploaded, worked
from tests.storage.places import soon
from tests.storage.publishing.newsroom import IMAGE, Newsroom, account_target
from tests.twins.instagram import InstagramTwin
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import Fault
from tests.twins.webhook import WebhookTwin

pytestmark = pytest.mark.anyio

S = PublicationState
SETTLING = [network for network in TWINS if network is not Network.X]
AFTER = [Fault.FAIL_AFTER, Fault.CUT_AFTER]
BEFORE = [Fault.FAIL_BEFORE, Fault.CUT_BEFORE]


def media(network: Network) -> Sequence[object]:
    return [IMAGE] if network is Network.INSTAGRAM else []


def outcomes(publication: Publication) -> list[str]:
    return [each.outcome for each in publication.attempts]


async def notified(newsroom: Newsroom) -> list[str]:
    rows = newsroom.stores.mongo["notifications"].find({"_id.o": newsroom.organization_id})
    return [row["kind"] async for row in rows]


@pytest.mark.parametrize("fault", [*AFTER, *BEFORE])
@pytest.mark.parametrize("network", SETTLING)
async def test_a_lost_answer_of_a_network_that_can_tell_settles_itself(
    newsroom: Newsroom, desk: Desk, network: Network, fault: Fault
) -> None:
    async with connected(newsroom, network) as (twin, account):
        twin.faults.append(fault)
        post = await newsroom.schedule(account_target(account), in_s=-1, media=media(network))
        unknown = await worked(desk, newsroom, post)
        assert unknown.state is S.UNKNOWN
        done = await settled(desk, newsroom, post)
        assert done.state is S.PUBLISHED, done
        assert done.published_at is not None
        assert outcomes(done) == ["UNKNOWN", "PUBLISHED"]
        assert len(twin.ledger) == 1
        assert await notified(newsroom) == []


async def test_a_call_that_is_never_answered_is_given_up_and_settles_itself(
    newsroom: Newsroom, desk: Desk, egress: Egress
) -> None:
    hurried = Desk(newsroom.stores, quick_networks(newsroom.stores, egress, call_timeout_s=2))
    async with connected(newsroom, Network.WEBHOOK) as (twin, account):
        twin.faults.append(Fault.SILENT_AFTER)
        post = await newsroom.schedule(account_target(account), in_s=-1)
        assert (await worked(hurried, newsroom, post)).state is S.UNKNOWN
        assert (await settled(desk, newsroom, post)).state is S.PUBLISHED
        assert len(twin.ledger) == 1


@pytest.mark.parametrize(
    ("network", "is_last"),
    [*((network, False) for network in SETTLING), (Network.INSTAGRAM, True), (Network.WEBHOOK, True)],
)
async def test_a_call_that_takes_effect_after_it_was_given_up_is_there_once_and_not_recorded_as_failed(
    newsroom: Newsroom, desk: Desk, network: Network, is_last: bool
) -> None:
    """Either it takes effect just before the call that repeats it, or last of all."""
    async with connected(newsroom, network) as (twin, account):
        twin.faults.append(Fault.LATE)
        twin.late_until_told = is_last
        post = await newsroom.schedule(account_target(account), in_s=-1, media=media(network))
        assert (await worked(desk, newsroom, post)).state is S.UNKNOWN
        done = await settled(desk, newsroom, post)
        await twin.act_late()
        assert done.state is S.PUBLISHED, done
        assert len(twin.ledger) == 1
        assert await notified(newsroom) == []


async def test_an_x_post_that_is_there_late_is_left_to_a_person(newsroom: Newsroom, desk: Desk) -> None:
    async with connected(newsroom, Network.X) as (twin, account):
        twin.faults.append(Fault.LATE)
        post = await newsroom.schedule(account_target(account), in_s=-1)
        assert (await settled(desk, newsroom, post)).state is S.UNKNOWN
        await twin.act_late()
        await newsroom.pass_time(3600)
        assert (await settled(desk, newsroom, post)).state is S.UNKNOWN
        assert len(twin.ledger) == 1


@pytest.mark.parametrize("fault", [Fault.FAIL_BEFORE, Fault.FAIL_AFTER, Fault.LATE])
@pytest.mark.parametrize("network", [Network.MASTODON, Network.INSTAGRAM])
async def test_what_was_sent_again_counts_from_the_last_call_that_may_have_done_it(
    newsroom: Newsroom, desk: Desk, network: Network, fault: Fault
) -> None:
    async with connected(newsroom, network) as (twin, account):
        twin.faults.append(fault)
        post = await newsroom.schedule(account_target(account), in_s=0, media=media(network))
        first = await worked(desk, newsroom, post)
        assert first.step is not None
        await newsroom.pass_time(40)
        done = await settled(desk, newsroom, post)
        assert done.state is S.PUBLISHED
        assert done.lateness_ms is not None
        is_looked_up = network is Network.INSTAGRAM and fault is Fault.FAIL_AFTER
        assert (done.lateness_ms < 40_000) == is_looked_up, done


async def test_an_author_is_told_once_of_what_is_unknown_past_its_lateness(newsroom: Newsroom, desk: Desk) -> None:
    async with connected(newsroom, Network.BLUESKY) as (twin, account):
        twin.faults.extend([Fault.FAIL_AFTER] * 12)
        post = await newsroom.schedule(account_target(account), in_s=-1, max_lateness_s=200)
        for _ in range(11):
            await worked(desk, newsroom, post)
            await newsroom.pass_time(16)
        assert await notified(newsroom) == []
        for _ in range(20):
            await newsroom.pass_time(16)
            await worked(desk, newsroom, post)
        assert await soon(lambda: notified(newsroom)) == ["PUBLICATION_UNKNOWN"]
        twin.faults.clear()
        await newsroom.pass_time(1800)
        assert (await settled(desk, newsroom, post)).state is S.PUBLISHED
        assert await notified(newsroom) == ["PUBLICATION_UNKNOWN"]


@pytest.mark.parametrize("fault", [*AFTER, *BEFORE])
async def test_a_lost_answer_of_x_is_left_to_a_person_at_once(newsroom: Newsroom, desk: Desk, fault: Fault) -> None:
    async with connected(newsroom, Network.X) as (twin, account):
        twin.faults.append(fault)
        post = await newsroom.schedule(account_target(account), in_s=-1)
        assert (await settled(desk, newsroom, post)).state is S.UNKNOWN
        assert len(twin.ledger) == (fault in AFTER)
        assert await soon(lambda: notified(newsroom)) == ["PUBLICATION_UNKNOWN"]
        await newsroom.pass_time(3600)
        assert (await worked(desk, newsroom, post)).state is S.UNKNOWN
        assert twin.asked["POST /2/tweets"] == 1


@pytest.mark.parametrize("network", list(TWINS))
async def test_a_worker_that_died_during_the_call_leaves_it_unknown_and_never_repeats_it_blindly(
    newsroom: Newsroom, desk: Desk, network: Network
) -> None:
    async with connected(newsroom, network) as (twin, account):
        post = await newsroom.schedule(account_target(account), in_s=-1)
        claimed = await newsroom.claimed(post)
        key = quick_networks(newsroom.stores, Egress())[network].new_key(claimed.id, claimed.due_at)
        await newsroom.stores.scheduled_posts.step(Begin(claimed, Phase.CALLING, key))
        await newsroom.pass_time(16)
        unknown = await worked(desk, newsroom, post)
        assert (unknown.state, twin.ledger) == (S.UNKNOWN, [])
        done = await settled(desk, newsroom, post)
        expected = {Network.X: S.UNKNOWN, Network.INSTAGRAM: S.FAILED}.get(network, S.PUBLISHED)
        assert done.state is expected, done
        assert len(twin.ledger) == (expected is S.PUBLISHED)


async def test_a_forgotten_key_is_not_sent_again(newsroom: Newsroom, desk: Desk) -> None:
    async with connected(newsroom, Network.MASTODON) as (twin, account):
        assert isinstance(twin, MastodonTwin)
        twin.faults.append(Fault.CUT_AFTER)
        post = await newsroom.schedule(account_target(account), in_s=-1)
        await worked(desk, newsroom, post)
        twin.retention_s = 0
        await newsroom.pass_time(3600)
        left = await worked(desk, newsroom, post)
        assert left.state is S.UNKNOWN
        assert "wake_at" not in await newsroom.stored(left)
        assert len(twin.ledger) == 1
        assert await soon(lambda: notified(newsroom)) == ["PUBLICATION_UNKNOWN"]


async def test_doubts_that_stay_are_asked_for_less_and_less_often(newsroom: Newsroom, desk: Desk) -> None:
    async with connected(newsroom, Network.WEBHOOK) as (twin, account):
        twin.faults.extend([Fault.FAIL_AFTER] * 4)
        post = await newsroom.schedule(account_target(account), in_s=-1)
        assert (await settled(desk, newsroom, post)).state is S.PUBLISHED
        assert len(twin.ledger) == 1
        assert outcomes(await newsroom.only(post)) == ["UNKNOWN"] * 4 + ["PUBLISHED"]


async def test_a_token_that_stopped_counting_does_not_turn_a_doubt_into_a_failure(
    newsroom: Newsroom, desk: Desk
) -> None:
    async with connected(newsroom, Network.MASTODON) as (twin, account):
        twin.faults.append(Fault.CUT_AFTER)
        post = await newsroom.schedule(account_target(account), in_s=-1)
        await worked(desk, newsroom, post)
        twin.token = "another"
        left = await settled(desk, newsroom, post)
        assert left.state is S.UNKNOWN
        assert "wake_at" not in await newsroom.stored(left)


async def test_a_disconnected_account_leaves_a_doubt_to_a_person(newsroom: Newsroom, desk: Desk) -> None:
    async with connected(newsroom, Network.WEBHOOK) as (twin, account):
        twin.faults.append(Fault.FAIL_AFTER)
        post = await newsroom.schedule(account_target(account), in_s=-1)
        await worked(desk, newsroom, post)
        await newsroom.stores.accounts.disconnect(account)
        left = await settled(desk, newsroom, post)
        assert left.state is S.UNKNOWN
        assert "wake_at" not in await newsroom.stored(left)


async def test_a_refused_connection_is_tried_again_and_no_more_than_five_times(newsroom: Newsroom, desk: Desk) -> None:
    account = await newsroom.account(Network.WEBHOOK, WebhookTwin.secret, "http://127.0.0.1:1/hook")
    post = await newsroom.schedule(account_target(account), in_s=-1)
    first = await worked(desk, newsroom, post)
    assert (first.state, outcomes(first)) == (S.PUBLISHING, ["NO_EFFECT"])
    done = await settled(desk, newsroom, post)
    assert done.error is not None
    assert (done.state, done.error.code) == (S.FAILED, "UNREACHABLE")
    assert outcomes(done) == ["NO_EFFECT"] * 4 + ["FAILED"]


async def test_a_network_that_is_busy_is_tried_when_it_says(newsroom: Newsroom, desk: Desk) -> None:
    async with connected(newsroom, Network.MASTODON) as (twin, account):
        twin.faults.append(Fault.BUSY)
        twin.busy_headers = {"Retry-After": "10"}
        post = await newsroom.schedule(account_target(account), in_s=-1)
        await worked(desk, newsroom, post)
        await newsroom.pass_time(8)
        assert (await worked(desk, newsroom, post)).state is S.PUBLISHING
        await newsroom.pass_time(3)
        assert (await worked(desk, newsroom, post)).state is S.PUBLISHED
        assert len(twin.ledger) == 1


async def test_a_refusal_is_final_and_told(newsroom: Newsroom, desk: Desk) -> None:
    async with connected(newsroom, Network.WEBHOOK) as (twin, account):
        assert isinstance(twin, WebhookTwin)
        twin.refusal = 410
        post = await newsroom.schedule(account_target(account), in_s=-1)
        failed = await settled(desk, newsroom, post)
        assert failed.error is not None
        assert (failed.state, failed.error.code) == (S.FAILED, "REFUSED")
        assert "410" in failed.error.message
        twin.refusal = None
        await newsroom.pass_time(600)
        assert (await worked(desk, newsroom, post)).state is S.FAILED
        assert twin.ledger == []
        assert await soon(lambda: notified(newsroom)) == ["PUBLICATION_FAILED"]


async def test_an_expired_container_is_uploaded_anew(newsroom: Newsroom, desk: Desk) -> None:
    async with connected(newsroom, Network.INSTAGRAM) as (twin, account):
        assert isinstance(twin, InstagramTwin)
        post = await newsroom.schedule(account_target(account), in_s=30, media=[IMAGE])
        await uploaded(desk)
        (container,) = twin.containers.values()
        container["status"] = "EXPIRED"
        await newsroom.pass_time(31)
        assert (await settled(desk, newsroom, post)).state is S.PUBLISHED
        assert len(twin.containers) == 2
        assert len(twin.ledger) == 1


async def test_credentials_that_can_not_be_opened_fail_it(newsroom: Newsroom, desk: Desk) -> None:
    account = await newsroom.account()
    sealed = Credentials({"9": b"z" * 32}).seal("ok", account.id)
    await newsroom.stores.mongo["accounts"].update_one({"_id": account.id}, {"$set": {"credentials": sealed}})
    post = await newsroom.schedule(account_target(account), in_s=-1)
    failed = await worked(desk, newsroom, post)
    assert failed.error is not None
    assert (failed.state, failed.error.code) == (S.FAILED, "CREDENTIALS_LOST")


async def test_an_address_that_is_not_public_is_refused(newsroom: Newsroom) -> None:
    egress = Egress()
    desk = Desk(newsroom.stores, quick_networks(newsroom.stores, egress))
    account = await newsroom.account(Network.WEBHOOK, "secret", "http://127.0.0.1:9/hook")
    failed = await worked(desk, newsroom, await newsroom.schedule(account_target(account), in_s=-1))
    await egress.aclose()
    assert failed.error is not None
    assert (failed.state, failed.error.code) == (S.FAILED, "BAD_ADDRESS")


@pytest.mark.parametrize(
    ("mood", "state"), [("ok", S.PUBLISHED), ("fail", S.FAILED), ("lose", S.UNKNOWN), ("slow", S.PUBLISHED)]
)
async def test_the_sandbox_shows_what_can_happen(
    newsroom: Newsroom, desk: Desk, mood: str, state: PublicationState
) -> None:
    account = await newsroom.account(secret=mood)
    post = await newsroom.schedule(account_target(account), in_s=-1)
    assert (await settled(desk, newsroom, post)).state is state
