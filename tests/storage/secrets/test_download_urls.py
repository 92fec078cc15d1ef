"""Signed URLs of a folder: the folder's secret, the id and the time are part of the signature."""

import time

from storage.secrets.download_urls import DownloadUrls


def parts(url: str) -> tuple[str, str]:
    expires, _, signature = url.partition("?expires=")[2].partition("&signature=")
    return expires, signature


def test_url_is_valid_for_its_id_and_time() -> None:
    urls, at = DownloadUrls("https://example.org/", b"secret", "media"), int(time.time()) + 60
    url = urls.sign_until("pub/file", at)
    assert url == urls.sign_until("pub/file", at)
    assert url.startswith("https://example.org/media/pub/file?expires=")
    expires, signature = parts(url)
    assert urls.is_valid("pub/file", expires, signature)
    assert not urls.is_valid("pub/other", expires, signature)
    assert not urls.is_valid("pub/file", f"{at + 1}", signature)
    assert not DownloadUrls("https://example.org", b"other", "media").is_valid("pub/file", expires, signature)
    assert not urls.is_valid("pub/file", *parts(urls.sign_until("pub/file", int(time.time()))))
