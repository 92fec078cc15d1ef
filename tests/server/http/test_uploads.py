"""/uploads/{id}: whole and partial uploads, tus, lost connections, killed processes and rights."""

import hashlib
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from server.http.uploads import MAX_REQUESTS_OF_USER, TUS_CONTENT_TYPE
from storage.files.objects import open_objects
from storage.files.records import StoredFile
from storage.files.uploads import MIB, PART_BYTES
from storage.ids import UserKey
from storage.stores import Stores
from tests.e2e.process_memory import forget_peak, memory_mib, needs_proc, peak_memory_mib
from tests.http_errors import error_of
from tests.jobs.pictures.hostile_files import encoded, gradient
from tests.product import eventually
from tests.programs import run_client_script
from tests.serving import ORIGIN, WebProcess, files_folder, web_process, worker_process

pytestmark = pytest.mark.anyio

CREATE = """
mutation ($input: CreateUploadInput!) { createUpload(input: $input) { id url state offset expiresAt } }
"""
STATE = "query ($id: ID!) { upload(id: $id) { state } }"
DATA = os.urandom(PART_BYTES + 1_000_000)
ANN = UserKey("acme", "ann")


def bearer(web: WebProcess, user: str = "ann", org: str = "acme") -> dict[str, str]:
    return {"authorization": f"Bearer {web.token(user, org, roles=('MEMBER',))}"}


def create(web: WebProcess, size: int = len(DATA), user: str = "ann") -> str:
    """Creates an upload, and returns its URL."""
    variables = {"input": {"fileName": "beacon.bin", "size": size}}
    body = {"query": CREATE, "variables": variables}
    created = httpx2.post(f"{web.url}/graphql", json=body, headers=bearer(web, user), timeout=60).json()
    assert "errors" not in created, created
    return f"{web.url}{created['data']['createUpload']['url']}"


def send(web: WebProcess, method: str, url: str, data: bytes = b"", user: str = "ann", **more: str) -> httpx2.Response:
    headers = bearer(web, user) | {name.replace("_", "-"): value for name, value in more.items()}
    return httpx2.request(method, url, content=data or None, headers=headers, timeout=60)


def patch(web: WebProcess, url: str, offset: int, data: bytes, user: str = "ann") -> httpx2.Response:
    tus = {"tus_resumable": "1.0.0", "content_type": TUS_CONTENT_TYPE, "upload_offset": str(offset)}
    return send(web, "PATCH", url, data, user, **tus)


def offset_of(web: WebProcess, url: str) -> int:
    response = send(web, "HEAD", url, tus_resumable="1.0.0")
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    return int(response.headers["upload-offset"])


def upload_picture(web: WebProcess, user: str, picture: bytes) -> None:
    """Uploads the picture, and waits until it is READY."""
    url = create(web, len(picture), user)
    assert send(web, "PUT", url, picture, user).status_code == 204
    body = {"query": STATE, "variables": {"id": url.rpartition("/")[2]}}

    def is_ready() -> bool:
        answer = httpx2.post(f"{web.url}/graphql", json=body, headers=bearer(web, user), timeout=60).json()
        return bool(answer["data"]["upload"]["state"] == "READY")

    assert eventually(is_ready)


async def stored(web: WebProcess, stores: Stores, url: str) -> bytes:
    file: StoredFile = await stores.uploads.get(ANN, url.rpartition("/")[2])
    return await open_objects(str(files_folder(web.database))).read_all(file.parts)


def begin_request(web: WebProcess, url: str, size: int = len(DATA), offset: int = 0) -> socket.socket:
    """Sends the head of a PUT that announces `size` bytes from the offset on."""
    parts = urlsplit(url)
    head = f"PUT {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: {size}\r\n"
    head += f"Upload-Offset: {offset}\r\n"
    head += f"Authorization: {bearer(web)['authorization']}\r\n\r\n"
    connection = socket.create_connection((parts.hostname, parts.port))
    connection.sendall(head.encode())
    return connection


async def test_whole_put_stores_the_bytes(web: WebProcess, web_stores: Stores) -> None:
    url = create(web)
    response = send(web, "PUT", url, DATA)
    assert (response.status_code, response.headers["upload-offset"]) == (204, str(len(DATA)))
    assert await stored(web, web_stores, url) == DATA
    again = send(web, "PUT", url, DATA)
    assert (again.status_code, again.headers["upload-offset"]) == (409, str(len(DATA)))


async def test_tus_client_resumes_at_the_offset(web: WebProcess, web_stores: Stores) -> None:
    url = create(web, 9)
    first = patch(web, url, 0, b"bea")
    assert (first.status_code, first.headers["upload-offset"]) == (204, "3")
    assert first.headers["tus-resumable"] == "1.0.0"
    assert "upload-expires" in first.headers
    wrong = patch(web, url, 0, b"bea")
    assert (wrong.status_code, wrong.headers["upload-offset"], error_of(wrong.json())["code"]) == (409, "3", "CONFLICT")
    head = send(web, "HEAD", url)
    assert (head.headers["upload-offset"], head.headers["upload-length"]) == ("3", "9")
    assert patch(web, url, 3, b"con").status_code == 204
    assert send(web, "PUT", url, b"lit", content_range="bytes 6-8/9").status_code == 204
    assert await stored(web, web_stores, url) == b"beaconlit"


async def test_tus_js_client_resumes(web: WebProcess, web_stores: Stores) -> None:
    url = create(web, 1_000_000)
    report = run_client_script("tus", url=url, token=web.token("ann", "acme", roles=("MEMBER",)), size=1_000_000)
    assert (report["interruptedAt"], report["resumedFrom"]) == (300_000, 300_000)
    assert hashlib.sha256(await stored(web, web_stores, url)).hexdigest() == report["sha256"]


def test_wrong_tus_requests_are_refused(web: WebProcess) -> None:
    url = create(web, 9)
    right = {"tus_resumable": "1.0.0", "content_type": TUS_CONTENT_TYPE, "upload_offset": "0"}
    for wrong, status in (
        ({"tus_resumable": "0.2.2"}, 412),
        ({"content_type": "text/html"}, 415),
        ({"upload_offset": "-1"}, 400),
        ({"upload_offset": "9" * 30}, 400),
    ):
        assert send(web, "PATCH", url, b"bea", **(right | wrong)).status_code == status
    for content_range in ("bytes 0-2/10", "bytes */9", "0-2"):
        assert send(web, "PUT", url, b"bea", content_range=content_range).status_code == 400
    options = httpx2.options(url)
    assert (options.status_code, options.headers["tus-version"]) == (204, "1.0.0")
    assert offset_of(web, url) == 0


@pytest.mark.parametrize("size", [9, PART_BYTES])
def test_bytes_beyond_the_size_are_refused(web: WebProcess, size: int) -> None:
    url = create(web, size)
    assert send(web, "PUT", url, DATA).status_code == 413
    assert offset_of(web, url) == 0


async def test_upload_resumes_after_a_lost_connection(web: WebProcess, web_stores: Stores) -> None:
    url, sent = create(web), PART_BYTES + 300_000
    with begin_request(web, url) as connection:
        connection.sendall(DATA[:sent])
        assert eventually(lambda: offset_of(web, url) == PART_BYTES)
    # The server may drop the last bytes that it had not read when the connection was lost.
    assert eventually(lambda: offset_of(web, url) > PART_BYTES)
    offset = offset_of(web, url)
    assert offset <= sent
    assert patch(web, url, offset, DATA[offset:]).status_code == 204
    assert await stored(web, web_stores, url) == DATA


def test_only_the_uploader_reaches_an_upload(web: WebProcess) -> None:
    url = create(web, 9)
    for method in ("HEAD", "PUT", "DELETE"):
        assert httpx2.request(method, url).status_code == 401
        assert send(web, method, url, user="bob").status_code == 404
        foreign = httpx2.request(method, url, headers=bearer(web, "ann", "globex"))
        assert foreign.status_code == 404
        service = {"authorization": f"Bearer {web.token('ann', roles=('SERVICE',))}"}
        assert httpx2.request(method, url, headers=service).status_code == 403
    assert patch(web, url, 0, b"bea", user="bob").status_code == 404
    assert offset_of(web, url) == 0


def test_service_key_needs_the_scope_to_upload(web: WebProcess) -> None:
    issue = 'mutation { createServiceKey(input: {name: "Bot", scopes: ["%s"]}) { secret } }'
    admin = {"authorization": f"Bearer {web.token('ada', roles=('ADMIN',))}"}
    for scope, status in (("files:write", 204), ("chat:write", 403)):
        body = {"query": issue % scope}
        key = httpx2.post(f"{web.url}/graphql", json=body, headers=admin, timeout=60).json()
        headers = {"authorization": f"Bearer {key['data']['createServiceKey']['secret']}"}
        body = {"query": CREATE, "variables": {"input": {"fileName": "a", "size": 1}}}
        created = httpx2.post(f"{web.url}/graphql", json=body, headers=headers, timeout=60).json()
        assert ("errors" in created) == (status == 403)
        path = "/uploads/none" if status == 403 else created["data"]["createUpload"]["url"]
        assert httpx2.put(f"{web.url}{path}", content=b"b", headers=headers).status_code == status


def test_cookie_without_client_header_is_refused(web: WebProcess) -> None:
    cookie = {"cookie": f"__Host-noroshi={'a' * 43}"}
    assert httpx2.put(create(web, 9), content=b"b", headers=cookie).status_code == 403


def test_delete_removes_the_upload(web: WebProcess) -> None:
    url = create(web, 9)
    assert patch(web, url, 0, b"bea").status_code == 204
    # Clients may also build the address from `Upload.id`.
    assert send(web, "DELETE", url.replace("/uploads/", "/uploads/Upload:")).status_code == 204
    assert send(web, "HEAD", url).status_code == 404


def test_user_sends_few_uploads_at_a_time(web: WebProcess) -> None:
    urls = [create(web, user="ann") for _ in range(MAX_REQUESTS_OF_USER)]
    connections = [begin_request(web, url) for url in urls]
    for connection in connections:
        connection.sendall(DATA[:PART_BYTES])
    assert eventually(lambda: all(offset_of(web, url) == PART_BYTES for url in urls))
    other = create(web, 9)
    assert send(web, "PUT", other, b"beaconlit").status_code == 429
    assert send(web, "PUT", create(web, 1, "bob"), b"b", "bob").status_code == 204
    for connection in connections:
        connection.close()
    assert eventually(lambda: send(web, "PUT", other, b"beaconlit").status_code == 204)


def test_pages_of_allowed_origins_may_upload(web: WebProcess) -> None:
    asks = {
        "origin": ORIGIN,
        "access-control-request-method": "PATCH",
        "access-control-request-headers": "upload-offset",
    }
    assert httpx2.options(create(web, 9), headers=asks).status_code == 200
    response = send(web, "HEAD", create(web, 9), origin=ORIGIN)
    assert "Upload-Offset" in response.headers["access-control-expose-headers"]


@pytest.mark.soak
@needs_proc
async def test_200_mib_resume_over_cuts_within_little_memory(web: WebProcess, web_stores: Stores) -> None:
    """The connection is cut every 30 MiB. The blocks differ, so that a lost or repeated one is noticed."""
    blocks = [os.urandom(32) * 32_768 for _ in range(200)]
    size, url = 200 * MIB, create(web, 200 * MIB)
    forget_peak(web)
    before_mib = memory_mib(web)
    while (offset := offset_of(web, url)) < size:
        with begin_request(web, url, size=size - offset, offset=offset) as connection:
            sent = min(offset + 30 * MIB, size)
            for at in range(offset, sent, MIB):
                connection.sendall(
                    b"".join(blocks[at // MIB : at // MIB + 2])[at % MIB : at % MIB + min(MIB, sent - at)]
                )
            assert eventually(lambda sent=sent: offset_of(web, url) > sent - 2 * PART_BYTES)
    assert peak_memory_mib(web) < before_mib + 200
    file = await web_stores.uploads.get(ANN, url.rpartition("/")[2])
    chunks = open_objects(str(files_folder(web.database))).read(file.parts, 0, size)
    expected, received = hashlib.sha256(b"".join(blocks)), hashlib.sha256()
    async for chunk in chunks:
        received.update(chunk)
    assert received.digest() == expected.digest()


@needs_proc
def test_ten_uploads_take_little_memory(web: WebProcess, tmp_path: Path, mongodb_uri: str, redis_url: str) -> None:
    """Ten people send pictures of 40 MiB at once. The worker does not hold one of them whole."""
    picture = encoded(gradient(64, 48), "JPEG").ljust(40 * MIB, b"\0")
    with worker_process(tmp_path, mongodb_uri, redis_url, web.database) as worker:
        upload_picture(web, "bob", picture[:10_000])
        before_mib = {process: memory_mib(process) for process in (web, worker)}
        for process in before_mib:
            forget_peak(process)
        with ThreadPoolExecutor(10) as people:
            list(people.map(lambda number: upload_picture(web, f"person-{number}", picture), range(10)))
        assert peak_memory_mib(web) < before_mib[web] + 200
        assert peak_memory_mib(worker) < before_mib[worker] + 40


async def test_upload_resumes_after_a_killed_process(
    web: WebProcess, web_stores: Stores, tmp_path: Path, mongodb_uri: str, redis_url: str
) -> None:
    """The last test of the module, because the database is dropped when the second process ends."""
    with web_process(tmp_path, mongodb_uri, redis_url, web) as killed:
        url = create(killed)
        with begin_request(killed, url) as connection:
            connection.sendall(DATA[: PART_BYTES + 300_000])
            same = url.replace(killed.url, web.url)
            assert eventually(lambda: offset_of(web, same) == PART_BYTES)
            killed.process.kill()
            killed.process.wait()
        assert offset_of(web, same) == PART_BYTES
        assert patch(web, same, PART_BYTES, DATA[PART_BYTES:]).status_code == 204
        assert await stored(web, web_stores, same) == DATA
