"""GET /media/…: files of scheduled posts, under the signed URLs that networks get."""

from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from starlette.applications import Starlette

from server.http.files import media_route
from storage.files.attachments import NewAttachment
from storage.secrets.download_urls import DownloadUrls
from storage.stores import Stores
from tests.http_errors import error_of
from tests.storage.publishing.scenario import PublishingScenario, account_target, create_publishing_scenario

pytestmark = pytest.mark.anyio

URLS = DownloadUrls("http://test", b"secret", "media")


@pytest.fixture
async def scenario(stores: Stores) -> PublishingScenario:
    return await create_publishing_scenario(stores)


@pytest.fixture
def client(stores: Stores) -> httpx2.AsyncClient:
    app = Starlette(routes=[media_route(stores, URLS)])
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app))


def signed(publication_id: str, file_id: str, in_s: float = 60) -> str:
    expires_at = datetime.now(UTC) + timedelta(seconds=in_s)
    return URLS.sign_until(f"{publication_id}/{file_id}", int(expires_at.timestamp()))


async def test_file_is_sent_under_its_signed_url_only(scenario: PublishingScenario, client: httpx2.AsyncClient) -> None:
    file_id, other_id = await scenario.upload(b"pixels", "image/jpeg"), await scenario.upload(b"video", "video/mp4")
    account = account_target(await scenario.connect_account())
    post = await scenario.schedule(account, attachments=[NewAttachment(file_id, "A hill")])
    publication = await scenario.publication(post)
    url = signed(publication.id, file_id)
    answer = await client.get(url)
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, b"pixels", "image/jpeg")
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    part = await client.get(url, headers={"range": "bytes=1-2"})
    assert (part.status_code, part.content) == (206, b"ix")
    wrong = [url[:-1], url.partition("?")[0], url.replace("expires=", "expires=9"), url.replace(file_id, other_id)]
    wrong += [signed(publication.id, other_id), signed("other", file_id), signed(publication.id, file_id, -1)]
    for each in wrong:
        refused = await client.get(each)
        assert (refused.status_code, error_of(refused.json())["code"]) == (404, "NOT_FOUND"), each


async def test_url_of_cancelled_post_ends(scenario: PublishingScenario, client: httpx2.AsyncClient) -> None:
    file_id = await scenario.upload(b"pixels", "image/jpeg")
    account = account_target(await scenario.connect_account())
    post = await scenario.schedule(account, attachments=[NewAttachment(file_id, "A hill")])
    url = signed((await scenario.publication(post)).id, file_id)
    assert (await client.get(url)).status_code == 200
    await scenario.stores.scheduled_posts.cancel(scenario.organization_id, post.id)
    await scenario.stores.file_deletion.remove_places()
    assert (await client.get(url)).status_code == 404
