"""Files in a bucket: uploads in parts, downloads of ranges, pictures, deletion, and a bucket that is gone."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from storage.files.uploads import PART_BYTES
from tests.buckets import BucketServer, azure_server, s3_server
from tests.databases import ReusedDatabase
from tests.http_errors import error_of
from tests.jobs.pictures.hostile_files import encoded, gradient
from tests.product import eventually
from tests.serving import WebProcess, web_process, worker_process

DATA = os.urandom(PART_BYTES + 100_000)
CREATE = "mutation ($input: CreateUploadInput!) { done: createUpload(input: $input) { url } }"
STATE = "query ($id: ID!) { done: upload(id: $id) { state offset } }"
POST = """
mutation ($input: CreatePostInput!) { done: createPost(input: $input) { id attachments { url thumbnailUrl width } } }
"""
DELETE = "mutation ($id: ID!) { done: deletePost(id: $id) { id } }"


@dataclass(frozen=True)
class BucketProduct:
    """A web process and a worker that store files in a bucket."""

    web: WebProcess
    bucket: BucketServer

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.web.token('ann', 'acme', roles=('MEMBER',))}"}

    def run(self, document: str, **variables: object) -> Any:
        body = {"query": document, "variables": variables}
        response = httpx2.post(f"{self.web.url}/graphql", json=body, headers=self.headers, timeout=60)
        return response.json()["data"]["done"]

    def create(self, size: int) -> str:
        """Creates an upload, and returns its path."""
        url: str = self.run(CREATE, input={"fileName": "beacon.bin", "size": size})["url"]
        return url

    def send(self, path: str, data: bytes, offset: int = 0) -> httpx2.Response:
        headers = self.headers | {"upload-offset": str(offset)}
        return httpx2.put(f"{self.web.url}{path}", content=data, headers=headers, timeout=60)

    def offset(self, path: str) -> int:
        return int(httpx2.head(f"{self.web.url}{path}", headers=self.headers, timeout=60).headers["upload-offset"])

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return httpx2.get(f"{self.web.url}{path}", headers=self.headers | headers, timeout=60)

    def attach(self, data: bytes) -> dict[str, Any]:
        """Uploads a file, waits until a worker has checked it, and posts it. Returns the post."""
        path = self.create(len(data))
        assert self.send(path, data).status_code == 204
        return self.post(path)

    def post(self, path: str) -> dict[str, Any]:
        id_ = path.rpartition("/")[2]
        assert eventually(lambda: self.run(STATE, id=id_)["state"] == "READY")
        post: dict[str, Any] = self.run(
            POST, input={"text": "", "attachments": [{"uploadId": id_, "altText": "A beacon"}]}
        )
        return post


@pytest.fixture(scope="module", params=[s3_server, azure_server], ids=["s3", "azure"])
def product(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    mongodb_uri: str,
    redis_url: str,
    reusable_shared_database: ReusedDatabase,
) -> Iterator[BucketProduct]:
    serve: Callable[[], AbstractContextManager[BucketServer]] = request.param
    folder: Path = tmp_path_factory.mktemp("buckets")
    with ExitStack() as stack:
        bucket = stack.enter_context(serve())
        bucket.create()
        variables: dict[str, Any] = {"NOROSHI_FILES": bucket.address, **bucket.variables}
        database = reusable_shared_database.name
        stack.callback(reusable_shared_database.empty)
        web = stack.enter_context(web_process(folder / "web", mongodb_uri, redis_url, database=database, **variables))
        stack.enter_context(worker_process(folder / "worker", mongodb_uri, redis_url, database, **variables))
        yield BucketProduct(web, bucket)


def test_upload_continues_and_is_deleted_from_the_bucket(product: BucketProduct) -> None:
    path = product.create(len(DATA))
    assert product.send(path, DATA[:1000]).status_code == 204
    assert product.offset(path) == 1000
    assert product.send(path, DATA, 0).status_code == 409
    assert product.send(path, DATA[1000:], 1000).status_code == 204
    post = product.post(path)
    keys = product.bucket.keys()
    assert [key.startswith("some/path/") for key in keys] == [True] * 3
    url = post["attachments"][0]["url"]
    assert product.get(url).content == DATA
    for first, last in ((0, 0), (990, 1010), (PART_BYTES - 5, PART_BYTES + 1005), (len(DATA) - 1, len(DATA) + 9)):
        response = product.get(url, Range=f"bytes={first}-{last}")
        assert (response.status_code, response.content) == (206, DATA[first : last + 1])
    product.run(DELETE, id=post["id"])
    assert eventually(lambda: product.bucket.keys() == [])


def test_picture_has_thumbnails_in_the_bucket(product: BucketProduct) -> None:
    post = product.attach(encoded(gradient(1200, 900), "PNG") + b"archive")
    (picture,) = post["attachments"]
    assert picture["width"] == 1200
    shown, thumbnail = product.get(picture["url"]), product.get(picture["thumbnailUrl"])
    assert (shown.headers["content-type"], thumbnail.headers["content-type"]) == ("image/png", "image/webp")
    assert b"archive" not in shown.content
    assert len(product.bucket.keys()) == 3, "The bytes as uploaded stay."
    product.run(DELETE, id=post["id"])
    assert eventually(lambda: product.bucket.keys() == [])


def test_upload_to_a_missing_bucket_is_not_acknowledged(product: BucketProduct) -> None:
    path = product.create(len(DATA))
    product.bucket.remove()
    try:
        refused = product.send(path, DATA)
        assert (refused.status_code, error_of(refused.json())["code"]) == (503, "UNAVAILABLE")
        assert "bucket or container for files does not exist" in error_of(refused.json())["message"]
        assert product.offset(path) == 0
        assert "file_bucket_missing" in product.web.log_text
    finally:
        product.bucket.create()
    assert product.send(path, DATA).status_code == 204
    post = product.post(path)
    assert product.get(post["attachments"][0]["url"]).content == DATA
    product.run(DELETE, id=post["id"])
    assert eventually(lambda: product.bucket.keys() == [])


def test_file_outlives_a_bucket_that_is_missing_meanwhile(product: BucketProduct) -> None:
    """A deletion does not end before the objects are deleted, and no fact about the file is lost."""
    path = product.create(10)
    assert product.send(path, b"0123456789").status_code == 204
    id_ = path.rpartition("/")[2]
    assert eventually(lambda: product.run(STATE, id=id_)["state"] == "READY")
    product.bucket.remove()
    try:
        refused = product.get(f"/files/{id_}/beacon.bin")
        assert (refused.status_code, error_of(refused.json())["code"]) == (503, "UNAVAILABLE")
        deleted = httpx2.delete(f"{product.web.url}{path}", headers=product.headers, timeout=60)
        assert (deleted.status_code, error_of(deleted.json())["code"]) == (503, "UNAVAILABLE")
    finally:
        product.bucket.create()
