"""Files of scheduled posts at networks: bytes, types and descriptions arrive; files that are gone fail the post."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import pytest
from starlette.routing import Route

from jobs.files import delete_expired_files
from jobs.providers.egress import Egress
from jobs.providers.social.bluesky import Bluesky
from jobs.providers.social.bluesky_video import VideoService
from jobs.providers.social.http import HttpClient
from jobs.providers.social.network import PublishingRefused
from jobs.publishing.publisher import PostPublisher
from server.http.files import media_route
from storage.errors import BadUserInput
from storage.files.attachments import NewAttachment
from storage.publishing.editing import ScheduledPostEdit
from storage.publishing.erasing import EraseScheduledPost
from storage.publishing.networks import Network
from storage.publishing.records import MediaState, Publication, PublicationState, ScheduledPost
from storage.secrets.download_urls import DownloadUrls
from storage.stores import Stores
from storage.streams.log import jobs_stream
from tests.jobs.contexts import job_context
from tests.jobs.publishing.runs import connected_twin, quick_networks, run_once, run_until_finished, run_uploads
from tests.storage.publishing.scenario import PublishingScenario, account_target
from tests.twins.bluesky import BlueskyTwin
from tests.twins.instagram import InstagramTwin
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import NetworkFault, NetworkTwin, running_twin
from tests.twins.webhook import WebhookTwin
from tests.twins.x import XTwin

pytestmark = pytest.mark.anyio

JPEG, MP4 = b"\xff\xd8\xff" + b"pixels" * 100, b"ftyp" * 400_000
HILL = ("A hill at night", "image/jpeg", JPEG)
CLIP = ("A beacon burns", "video/mp4", MP4)
S = PublicationState


class FileServer(NetworkTwin):
    """A web process's route of files, from which networks fetch media."""

    def __init__(self, stores: Stores) -> None:
        super().__init__()
        self._stores = stores
        self.urls = DownloadUrls("", b"secret", "media")

    def routes(self) -> list[Route]:
        return [media_route(self._stores, self.urls)]


@pytest.fixture
async def server(shared_stores: Stores) -> AsyncIterator[FileServer]:
    async with running_twin(FileServer(shared_stores)) as server:
        assert isinstance(server, FileServer)
        server.urls = DownloadUrls(server.url, b"secret", "media")
        yield server


@pytest.fixture
async def publisher(shared_stores: Stores, egress: Egress, server: FileServer) -> AsyncIterator[PostPublisher]:
    publisher = PostPublisher(shared_stores, quick_networks(shared_stores, egress), server.urls.sign_until)
    yield publisher
    await publisher.close()


async def attach(scenario: PublishingScenario, *files: tuple[str, str, bytes]) -> list[NewAttachment]:
    return [NewAttachment(await scenario.upload(data, type_), alt) for alt, type_, data in files]


async def schedule(
    scenario: PublishingScenario, account: Any, *files: tuple[str, str, bytes], in_s: float = -1
) -> ScheduledPost:
    attachments = await attach(scenario, *files)
    return await scenario.schedule(account_target(account), in_s=in_s, attachments=attachments)


async def received_by(twin: NetworkTwin) -> Sequence[tuple[str, str, bytes]]:
    """Returns the alternative text, type and bytes of each medium of the last published post."""
    match twin:
        case MastodonTwin():
            return [(each["description"], each["type"], each["content"]) for each in twin.media.values()]
        case XTwin():
            uploads = twin.media.values()
            return [(each["alt"], each["media_type"], b"".join(each["chunks"].values())) for each in uploads]
        case BlueskyTwin():
            embed = twin.bodies[-1]["embed"]
            blobs = [(each["alt"], each.get("image") or each["video"]) for each in embed.get("images") or [embed]]
            return [(alt, blob["mimeType"], twin.contents[blob["ref"]["$link"]]) for alt, blob in blobs]
        case InstagramTwin():
            fetched = [each for each in twin.containers.values() if "content" in each]
            return [(each["fields"].get("alt_text", ""), each["type"], each["content"]) for each in fetched]
    assert isinstance(twin, WebhookTwin)
    async with httpx2.AsyncClient() as client:
        answers = [(each["altText"], await client.get(each["url"])) for each in twin.bodies[-1]["media"]]
    return [(alt, answer.headers["content-type"], answer.content) for alt, answer in answers]


NETWORKS = [Network.MASTODON, Network.INSTAGRAM, Network.BLUESKY, Network.X, Network.WEBHOOK]


@pytest.mark.parametrize(
    ("network", "file"),
    [*((each, HILL) for each in NETWORKS), *((each, CLIP) for each in NETWORKS if each is not Network.BLUESKY)],
)
async def test_network_gets_the_bytes_of_a_file(
    scenario: PublishingScenario, publisher: PostPublisher, network: Network, file: tuple[str, str, bytes]
) -> None:
    async with connected_twin(scenario, network) as (twin, account):
        if isinstance(twin, InstagramTwin):
            twin.fetches_media = True
        post = await schedule(scenario, account, file)
        published = await run_until_finished(publisher, scenario, post)
        assert (published.state, published.error) == (S.PUBLISHED, None)
        is_reel = network is Network.INSTAGRAM and file is CLIP
        assert await received_by(twin) == [("" if is_reel else file[0], *file[1:])]
        assert len(twin.ledger) == 1


async def test_bluesky_gets_the_bytes_of_a_video(
    scenario: PublishingScenario, egress: Egress, server: FileServer
) -> None:
    async with connected_twin(scenario, Network.BLUESKY) as (twin, account):
        http = HttpClient(egress)
        bluesky = Bluesky(http, VideoService(http, twin.url, poll_s=0.01))
        publisher = PostPublisher(scenario.stores, {Network.BLUESKY: bluesky}, server.urls.sign_until)
        post = await schedule(scenario, account, CLIP)
        assert (await run_until_finished(publisher, scenario, post)).state is S.PUBLISHED
        assert await received_by(twin) == [CLIP]
        await publisher.close()


@pytest.mark.parametrize("network", NETWORKS)
async def test_files_arrive_in_their_order(
    scenario: PublishingScenario, publisher: PostPublisher, network: Network
) -> None:
    files = [(f"Picture {n}", "image/jpeg", JPEG + str(n).encode()) for n in range(3)]
    async with connected_twin(scenario, network) as (twin, account):
        if isinstance(twin, InstagramTwin):
            twin.fetches_media = True
        post = await schedule(scenario, account, *files)
        assert (await run_until_finished(publisher, scenario, post)).state is S.PUBLISHED
        assert await received_by(twin) == files


async def test_file_is_uploaded_ahead_and_not_again(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        assert isinstance(twin, MastodonTwin)
        post = await schedule(scenario, account, HILL, in_s=500)
        assert await run_uploads(publisher) == 1
        assert (await scenario.publication(post)).media_state is MediaState.READY
        await scenario.pass_time(500)
        assert (await run_once(publisher, scenario, post)).state is S.PUBLISHED
        assert len(twin.media) == 1


async def test_upload_of_replaced_file_is_repeated(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        assert isinstance(twin, MastodonTwin)
        post = await schedule(scenario, account, HILL, in_s=500)
        await run_uploads(publisher)
        (new,) = await attach(scenario, ("Another hill", "image/png", b"png"))
        edit = ScheduledPostEdit(attachments=[new])
        await scenario.stores.scheduled_posts.update(scenario.organization_id, post.id, edit)
        assert (await scenario.publication(post)).media_state is MediaState.STALE
        await scenario.pass_time(500)
        assert (await run_once(publisher, scenario, post)).state is S.PUBLISHED
        used = [(each["description"], each["content"]) for each in twin.media.values() if each["used"]]
        assert used == [("Another hill", b"png")]


@pytest.mark.parametrize("network", NETWORKS)
async def test_lost_answer_publishes_the_files_once(
    scenario: PublishingScenario, publisher: PostPublisher, network: Network
) -> None:
    async with connected_twin(scenario, network) as (twin, account):
        twin.faults.append(NetworkFault.FAIL_AFTER)
        post = await schedule(scenario, account, HILL)
        finished = await run_until_finished(publisher, scenario, post)
        assert finished.state is (S.UNKNOWN if network is Network.X else S.PUBLISHED)
        assert len(twin.ledger) == 1


async def delete_file(scenario: PublishingScenario, post: ScheduledPost) -> None:
    await scenario.stores.file_deletion.erase(post.attachments[0].file_id)


@pytest.mark.parametrize("network", [*NETWORKS, Network.SANDBOX])
async def test_post_whose_file_is_gone_fails(
    scenario: PublishingScenario, publisher: PostPublisher, network: Network
) -> None:
    if network is Network.SANDBOX:
        await check_gone(scenario, publisher, await scenario.connect_account())
        return
    async with connected_twin(scenario, network) as (twin, account):
        await check_gone(scenario, publisher, account)
        assert twin.ledger == []
        assert twin.request_counts == {}


async def check_gone(scenario: PublishingScenario, publisher: PostPublisher, account: Any) -> None:
    post = await schedule(scenario, account, HILL)
    await delete_file(scenario, post)
    failed = await run_once(publisher, scenario, post)
    assert failed.error is not None
    assert (failed.state, failed.error.code) == (S.FAILED, "MEDIA_UNAVAILABLE")


async def test_file_deleted_during_the_upload_fails_the_post(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    """The file is checked, and gone when it is read."""
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        post = await schedule(scenario, account, HILL, in_s=500)
        await delete_file(scenario, post)
        await run_uploads(publisher)
        publication = await scenario.publication(post)
        assert publication.media_state is MediaState.FAILED
        (medium,) = publisher.network_caller._attached.of(publication, post)
        with pytest.raises(PublishingRefused):
            [piece async for piece in medium.read()]
        assert twin.request_counts == {}


async def test_lost_object_fails_the_post(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (_, account):
        post = await schedule(scenario, account, HILL)
        file = await scenario.stores.uploads.get(scenario.ann.key, post.attachments[0].file_id)
        await scenario.stores.file_objects.delete(file.parts)
        failed = await run_once(publisher, scenario, post)
        assert failed.error is not None
        assert failed.error.code == "MEDIA_UNAVAILABLE"


async def test_refused_file_fails_the_post(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.X) as (twin, account):
        assert isinstance(twin, XTwin)
        twin.fails_processing = True
        failed = await run_until_finished(publisher, scenario, await schedule(scenario, account, CLIP))
        assert failed.error is not None
        assert (failed.error.code, failed.error.message) == ("MEDIA_REFUSED", "Unsupported video format")
        assert twin.ledger == []


async def test_fetched_file_without_public_address_fails(
    scenario: PublishingScenario, shared_stores: Stores, egress: Egress
) -> None:
    publisher = PostPublisher(shared_stores, quick_networks(shared_stores, egress))
    async with connected_twin(scenario, Network.WEBHOOK) as (twin, account):
        failed = await run_once(publisher, scenario, await schedule(scenario, account, HILL))
        assert failed.error is not None
        assert "public address" in failed.error.message
        assert twin.request_counts == {}
    await publisher.close()


async def test_file_with_wrong_type_is_not_scheduled(scenario: PublishingScenario) -> None:
    account = await scenario.connect_account()
    (document,) = await attach(scenario, ("", "application/pdf", b"%PDF-"))
    with pytest.raises(BadUserInput) as refusal:
        await scenario.schedule(account_target(account), attachments=[document])
    assert refusal.value.details["field"] == "attachments[0]"
    file = await scenario.stores.uploads.get(scenario.ann.key, document.file_id)
    assert file.places == ()
    post = await scenario.schedule(scenario.topic, attachments=[document])
    edit = ScheduledPostEdit(targets=[scenario.topic, account_target(account)])
    with pytest.raises(BadUserInput):
        await scenario.stores.scheduled_posts.update(scenario.organization_id, post.id, edit)
    assert (await scenario.publication(post)).target == scenario.topic


async def test_mixed_targets_get_one_file(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        attachments = await attach(scenario, HILL)
        targets = scenario.topic, scenario.home, account_target(account)
        await scenario.schedule(*targets, in_s=-1, attachments=attachments)
        await publisher.sweep()
        await publisher.wait_until_idle()
        assert await received_by(twin) == [HILL]
        (message,) = await scenario.messages()
        assert [each["id"] for each in message["attachments"]] == [attachments[0].file_id]


async def stored(scenario: PublishingScenario, post: ScheduledPost) -> bool:
    """Returns whether the file of the post still exists after a sweep."""
    await delete_expired_files(job_context(scenario.stores))
    return await scenario.stores.uploads.find(scenario.ann.key, post.attachments[0].file_id) is not None


async def finish(scenario: PublishingScenario, publisher: PostPublisher, post: ScheduledPost) -> Publication:
    return await run_until_finished(publisher, scenario, post)


async def test_file_is_kept_for_a_day_after_publication(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.WEBHOOK) as (twin, account):
        post = await schedule(scenario, account, HILL)
        assert (await finish(scenario, publisher, post)).state is S.PUBLISHED
        assert await stored(scenario, post)
        assert await received_by(twin) == [HILL]
        removals = scenario.stores.mongo["file_removals"]
        await removals.update_many({}, [{"$set": {"at": {"$subtract": ["$at", 86_400_000]}}}])
        assert not await stored(scenario, post)
        ((_, _, content),) = await received_by(twin)
        assert b"NOT_FOUND" in content


async def test_files_of_cancelled_and_failed_posts_are_not_kept(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    cancelled = await schedule(scenario, await scenario.connect_account(), HILL, in_s=60)
    await scenario.stores.scheduled_posts.cancel(scenario.organization_id, cancelled.id)
    failed = await schedule(scenario, await scenario.connect_account(secret="fail"), HILL)
    assert (await finish(scenario, publisher, failed)).state is S.FAILED
    assert [await stored(scenario, post) for post in (cancelled, failed)] == [False, False]


async def test_erased_author_publishes_no_file(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.MASTODON) as (twin, account):
        post = await schedule(scenario, account, HILL)
        (claimed,) = await scenario.stores.claims.claim(10)
        erasure = EraseScheduledPost(scenario.organization_id, post.id)
        await scenario.stores.scheduled_posts._sequencer.commit(jobs_stream(scenario.organization_id), erasure)
        await publisher.publish(claimed, post)
        assert (await scenario.publication(post)).state is S.CANCELLED
        assert twin.ledger == []
