"""GET /files/…: who may download a file, and what a browser may do with it."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from storage.files.objects import CHUNK_BYTES
from storage.stores import Stores, open_stores
from tests.resolvers.people import DELETE, ChatScenario, Person, SignIn
from tests.resolvers.test_files import POST, attaching, upload
from tests.serving import WebProcess, files_folder

pytestmark = pytest.mark.anyio

START = "mutation ($input: StartConversationInput!) { done: startConversation(input: $input) { topic { id } } }"
HTML = b"<!doctype html><script>alert(1)</script>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.fixture(scope="module")
async def file_stores(web: WebProcess, mongodb_uri: str, redis_url: str) -> AsyncIterator[Stores]:
    """Stores on the database and the folder of the web process."""
    folder = str(files_folder(web.database))
    async with open_stores(mongodb_uri, redis_url, web.database, files_address=folder) as stores:
        yield stores


@pytest.fixture
async def chat(file_stores: Stores) -> ChatScenario:
    sign_in = SignIn(file_stores)
    ann, bob, eve = [await sign_in(name) for name in ("ann", "bob", "eve")]
    community = await ann.create_community()
    await bob.join(community)
    return ChatScenario(ann, bob, eve, community, await ann.create_topic(community))


def get(web: WebProcess, path: str, user: str | None, org: str = "acme", method: str = "GET", **more: str) -> Any:
    headers = {name.replace("_", "-"): value for name, value in more.items()}
    if user is not None:
        headers["authorization"] = f"Bearer {web.token(user, org, roles=('MEMBER',))}"
    return httpx2.request(method, f"{web.url}{path}", headers=headers, timeout=60)


def statuses(web: WebProcess, path: str) -> list[int]:
    """Returns the statuses for Ann, Bob, Eve, an Ann of another organization, and nobody."""
    viewers = [("ann", "acme"), ("bob", "acme"), ("eve", "acme"), ("ann", "globex"), (None, "acme")]
    return [get(web, path, *viewer).status_code for viewer in viewers]


async def attach(author: Person, topic: str, data: bytes = b"words", **options: Any) -> tuple[str, str]:
    """Posts a message with one file. Returns the id of the message, and the path of the file."""
    id_ = await upload(author, data, **options)
    message = (await author.run(POST, input=attaching(topic, id_, alt_text="A beacon")))["done"]
    return message["id"], message["attachments"][0]["url"]


async def test_file_is_only_for_those_who_see_the_message(web: WebProcess, chat: ChatScenario) -> None:
    id_ = await upload(chat.ann)
    assert statuses(web, f"/files/{id_}/a.txt") == [200, 404, 404, 404, 401]
    message = (await chat.ann.run(POST, input=attaching(chat.topic, id_)))["done"]
    assert statuses(web, f"/files/{id_}/a.txt") == [200, 200, 404, 404, 401]
    await chat.bob.block(chat.ann)
    assert statuses(web, f"/files/{id_}/a.txt") == [200, 404, 404, 404, 401]
    await chat.bob.unblock(chat.ann)
    await chat.bob.leave(chat.community)
    assert statuses(web, f"/files/{id_}/a.txt") == [200, 404, 404, 404, 401]
    await chat.ann.do(DELETE, id=message["id"])
    assert statuses(web, f"/files/{id_}/a.txt") == [404, 404, 404, 404, 401]


async def test_file_of_a_direct_message_is_only_for_its_people(web: WebProcess, chat: ChatScenario) -> None:
    conversation = (await chat.ann.run(START, input={"userIds": ["bob"]}))["done"]["topic"]["id"]
    _, path = await attach(chat.ann, conversation)
    assert statuses(web, path) == [200, 200, 404, 404, 401]
    assert get(web, path, "admin", roles="ADMIN").status_code == 404


async def test_file_of_a_post_is_for_the_organization(web: WebProcess, chat: ChatScenario) -> None:
    id_ = await upload(chat.ann)
    create = "mutation ($input: CreatePostInput!) { done: createPost(input: $input) { id } }"
    post = (await chat.ann.run(create, input={"text": "", "attachments": [{"uploadId": id_}]}))["done"]
    path = f"/files/{id_}/a.txt"
    assert statuses(web, path) == [200, 200, 200, 404, 401]
    await chat.bob.block(chat.ann)
    assert statuses(web, path) == [200, 404, 200, 404, 401]
    await chat.bob.unblock(chat.ann)
    await chat.ann.run("mutation ($id: ID!) { deletePost(id: $id) { id } }", id=post["id"])
    assert statuses(web, path) == [404, 404, 404, 404, 401]


@pytest.mark.parametrize("data", [HTML, SVG, b"GIF89a/*<script>*/=1", b"%PDF-1.7 <html>"])
async def test_bytes_as_uploaded_are_never_shown(web: WebProcess, chat: ChatScenario, data: bytes) -> None:
    _, path = await attach(chat.ann, chat.topic, data, name="a.html")
    response = get(web, path, "bob")
    assert response.content == data
    assert response.headers["content-type"] in ("application/octet-stream", "application/pdf")
    assert response.headers["content-disposition"] == "attachment; filename*=UTF-8''a.html"
    assert response.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "private, no-cache"


async def test_decoded_picture_is_shown_inline(web: WebProcess, chat: ChatScenario) -> None:
    _, path = await attach(chat.ann, chat.topic, b"pixels", name="a b.webp", picture=True)
    for shown in (path, f"/files/{path.split('/')[2]}/thumbnail"):
        response = get(web, shown, "bob")
        assert (response.status_code, response.headers["content-type"]) == (200, "image/webp")
        assert response.headers["content-disposition"].startswith("inline")
        assert response.headers["content-security-policy"] == "sandbox; default-src 'none'"
        again = get(web, shown, "bob", if_none_match=response.headers["etag"])
        assert (again.status_code, again.content) == (304, b"")
        assert get(web, shown, "eve", if_none_match=response.headers["etag"]).status_code == 404


async def test_ranges_are_served(web: WebProcess, chat: ChatScenario) -> None:
    data = bytes(range(256)) * (CHUNK_BYTES // 128)
    _, path = await attach(chat.ann, chat.topic, data, name="a.bin")
    for text, expected in (
        ("bytes=0-0", data[:1]),
        ("bytes=1000000-1100000", data[1_000_000:1_100_001]),
        ("bytes=-5", data[-5:]),
        (f"bytes={len(data) - 2}-99999999", data[-2:]),
    ):
        response = get(web, path, "bob", range=text)
        assert (response.status_code, response.content) == (206, expected), text
    assert get(web, path, "bob", range=f"bytes={len(data)}-").status_code == 416
    for ignored in ("bytes=0-1,5-6", "lines=0-1", "bytes=-"):
        assert get(web, path, "bob", range=ignored).content == data
    changed = get(web, path, "bob", range="bytes=0-0", if_range='"other"')
    assert (changed.status_code, len(changed.content)) == (200, len(data))
    head = get(web, path, "bob", method="HEAD")
    assert (head.status_code, head.headers["content-length"], head.content) == (200, str(len(data)), b"")


async def test_cookie_counts_only_for_pages_of_this_origin(web: WebProcess, chat: ChatScenario) -> None:
    _, path = await attach(chat.ann, chat.topic)
    cookie = f"__Host-noroshi={'a' * 43}"
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 401), ("none", 401)):
        assert get(web, path, None, cookie=cookie, sec_fetch_site=site).status_code == status
