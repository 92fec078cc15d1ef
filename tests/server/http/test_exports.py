"""Downloads of exports: only under a signed URL, and only while it is valid."""

import httpx2
import pytest
from starlette.applications import Starlette

from server.http.exports import exports_route
from storage.ids import UserKey
from storage.secrets.download_urls import VALID_S, DownloadUrls
from storage.stores import Stores

pytestmark = pytest.mark.anyio


async def test_archive_is_downloaded_under_its_signed_url_only(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    urls = DownloadUrls("http://test", b"secret")
    export = await stores.exports.request(UserKey("acme", "ann"))
    app = Starlette(routes=[exports_route(stores.exports, urls)])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as client:
        url = urls.sign(export.id)
        assert (await client.get(url)).status_code == 404  # not complete yet
        claim = await stores.exports.claim()
        assert claim is not None
        for number, data in enumerate((b"one ", b"two")):
            await stores.exports.add_chunk(claim, number, data)
        await stores.exports.complete(claim)
        answer = await client.get(url)
        assert (answer.status_code, answer.content) == (200, b"one two")
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-length"] == "7"
        other = urls.sign("other").replace("/other", f"/{export.id}")
        later = url.replace("expires=", "expires=9")
        for wrong in (url[:-1], other, later, f"http://test/exports/{export.id}", url.replace("signature=", "s=")):
            assert (await client.get(wrong)).status_code == 404
        import time

        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + VALID_S + 1)
        assert (await client.get(url)).status_code == 404
