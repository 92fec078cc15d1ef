"""createUpload and upload: checks of the input, quotas, and the viewer's own uploads."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.files import delete_expired_files
from jobs.publishing.internal import publish_internal
from resolvers.files.attachments import MAX_ATTACHMENTS
from resolvers.files.downloads import visible_file
from storage.errors import NotFound
from storage.files.pictures import DecodedPicture, EncodedPicture
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.publishing.accounts import AccountToConnect
from storage.publishing.networks import Network
from storage.stores import Stores
from tests.jobs.contexts import job_context
from tests.resolvers.people import DELETE, EDIT, ChatScenario, Person, SignIn

pytestmark = pytest.mark.anyio

UPLOAD = "id name size offset state url contentType isPicture refusal expiresAt"
CREATE = "mutation ($input: CreateUploadInput!) { done: createUpload(input: $input) { " + UPLOAD + " } }"
FIND = "query ($id: ID!) { upload(id: $id) { " + UPLOAD + " } }"


async def test_created_upload_is_found_by_its_uploader(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    created = (await ann.run(CREATE, input={"fileName": "狼煙.txt", "size": 6, "contentType": "image/png"}))["done"]
    assert created["url"] == f"/uploads/{created['id'].removeprefix('Upload:')}"
    assert (created["name"], created["size"], created["offset"]) == ("狼煙.txt", 6, 0)
    assert (created["state"], created["contentType"], created["isPicture"]) == ("RECEIVING", None, False)
    assert (await ann.run(FIND, id=created["id"]))["upload"] == created
    assert await bob.code(FIND, id=created["id"]) == "NOT_FOUND"


@pytest.mark.parametrize(
    ("name", "size", "field"),
    [
        ("", 1, "fileName"),
        ("a" * 256, 1, "fileName"),
        ("../a", 1, "fileName"),
        ("..", 1, "fileName"),
        ("a\\b", 1, "fileName"),
        ("a\r\nSet-Cookie: b", 1, "fileName"),
        ("a\u202egnp.exe", 1, "fileName"),
        ("a\u2066gnp.exe", 1, "fileName"),
        ("a\u2028b", 1, "fileName"),
        ("a\u0085b", 1, "fileName"),
        ("a", 0, "size"),
        ("a", -1, "size"),
        ("a", 2**31 - 1, "size"),
    ],
)
async def test_invalid_upload_is_refused(shared_sign_in: SignIn, name: str, size: int, field: str) -> None:
    refused = await (await shared_sign_in("ann")).fails(CREATE, input={"fileName": name, "size": size})
    assert (refused["code"], refused["field"]) == ("BAD_USER_INPUT", field)


@pytest.mark.parametrize(
    "name",
    ["写真\u30001.png", "Screenshot 10.30.00\u202fAM.png", "Straße\u00a01.png", "👩\u200d👧.png", "a\ue000.txt"],
    ids=["full-width space", "narrow no-break space", "no-break space", "joined emojis", "private use"],
)
async def test_names_as_programs_write_them_are_kept(shared_sign_in: SignIn, name: str) -> None:
    ann = await shared_sign_in("ann")
    assert (await ann.run(CREATE, input={"fileName": name, "size": 1}))["done"]["name"] == name


async def test_upload_beyond_the_quota_has_its_own_code(sign_in: SignIn) -> None:
    ann = await sign_in("ann")
    await ann.stores.mongo["file_usage"].insert_one(
        {"_id": {"o": ann.user.organization_id, "u": "ann"}, "bytes": 2**40}
    )
    assert await ann.code(CREATE, input={"fileName": "a", "size": 1}) == "QUOTA_EXCEEDED"


ATTACHMENT = "id name url thumbnailUrl contentType size width height blurhash altText"
MESSAGE = "id deletedAt attachments { " + ATTACHMENT + " }"
POST = "mutation ($input: PostMessageInput!) { done: postMessage(input: $input) { " + MESSAGE + " } }"
PAGE = 'query ($topic: ID!) { messages(topicId: $topic, latest: "now") { items { ' + MESSAGE + " } } }"


async def upload(
    person: Person,
    data: bytes = b"words",
    name: str = "a.txt",
    *,
    picture: bool = False,
    content_type: str = "image/webp",
) -> str:
    """Returns the id of a file of the person that is ready. A picture has 30 by 20 pixels."""
    stores, owner = person.stores, UserKey(person.user.organization_id, person.id)
    file = await stores.uploads.append(await stores.uploads.create(owner, name, len(data)), data)
    claimed = await stores.file_checks.claim()
    assert claimed is not None
    if picture:
        encoded = [EncodedPicture(content_type, side, side * 2 // 3, data) for side in (30, 15)]
        await stores.file_checks.accept_picture(claimed, DecodedPicture(encoded[0], encoded[1:], "LKO2"))
    else:
        await stores.file_checks.accept(claimed, "text/plain")
    return file.id


def attaching(topic: str, *ids: str, alt_text: str = "") -> dict[str, Any]:
    return {"topicId": topic, "attachments": [{"uploadId": each, "altText": alt_text} for each in ids]}


async def test_message_shows_its_files_in_order(chat: ChatScenario) -> None:
    text, picture = await upload(chat.ann), await upload(chat.ann, b"pixels", "é 1.webp", picture=True)
    message = (await chat.ann.run(POST, input=attaching(chat.topic, picture, text, alt_text="A beacon")))["done"]
    assert message["attachments"] == [
        {
            "id": picture,
            "name": "é 1.webp",
            "url": f"/files/{picture}/%C3%A9%201.webp",
            "altText": "A beacon",
            "thumbnailUrl": f"/files/{picture}/thumbnail",
            "contentType": "image/webp",
            "size": 6,
            "width": 30,
            "height": 20,
            "blurhash": "LKO2",
        },
        {
            "id": text,
            "name": "a.txt",
            "url": f"/files/{text}/a.txt",
            "altText": "A beacon",
            "thumbnailUrl": None,
            "contentType": "text/plain",
            "size": 5,
            "width": None,
            "height": None,
            "blurhash": None,
        },
    ]
    assert (await chat.bob.run(PAGE, topic=chat.topic))["messages"]["items"][-1] == message
    edited = await chat.ann.code(EDIT, id=message["id"], text="")
    assert edited is None, "A message with files needs no text."


async def test_files_that_cannot_be_attached_are_refused(chat: ChatScenario, sign_in: SignIn) -> None:
    ann, stores = chat.ann, chat.ann.stores
    unfinished = (await stores.uploads.create(UserKey(ann.user.organization_id, ann.id), "a", 9)).id
    foreign = await upload(await sign_in("ann", "globex"))
    picture, text = await upload(ann, picture=True), await upload(ann)
    for ids, code in (
        ([await upload(chat.bob)], "NOT_FOUND"),
        ([foreign], "NOT_FOUND"),
        (["none"], "NOT_FOUND"),
        ([unfinished], "CONFLICT"),
        ([text, text], "BAD_USER_INPUT"),
        ([text] + [f"{n}" for n in range(MAX_ATTACHMENTS)], "BAD_USER_INPUT"),
    ):
        assert await ann.code(POST, input=attaching(chat.topic, *ids)) == code, ids
    refused = await ann.fails(POST, input=attaching(chat.topic, text, picture))
    assert (refused["code"], refused["field"]) == ("BAD_USER_INPUT", "attachments[1].altText")
    assert await ann.code(POST, input=attaching(chat.topic, text)) is None
    assert await ann.code(POST, input=attaching(chat.topic, text)) == "CONFLICT"


async def test_file_is_attached_to_one_of_many_messages(chat: ChatScenario) -> None:
    """The messages are posted to two topics, so that different transactions attach the file."""
    other = await chat.ann.create_topic(chat.community, "Other")
    id_ = await upload(chat.ann)
    posts = [chat.ann.code(POST, input=attaching(topic, id_)) for topic in [chat.topic, other] * 4]
    assert sorted(map(str, await asyncio.gather(*posts))) == ["CONFLICT"] * 7 + ["None"]


async def test_deleted_message_takes_its_files_along(chat: ChatScenario) -> None:
    stores = chat.ann.stores
    ids = [await upload(chat.ann) for _ in range(2)]
    message = (await chat.ann.run(POST, input=attaching(chat.topic, *ids)))["done"]
    kept = await upload(chat.ann)
    await chat.ann.run(POST, input=attaching(chat.topic, kept))
    await delete_expired_files(job_context(stores))
    assert await file_ids(stores) == {*ids, kept}
    await chat.ann.do(DELETE, id=message["id"])
    shown = (await chat.bob.run(PAGE, topic=chat.topic))["messages"]["items"]
    assert [each["attachments"] for each in shown if each["id"] == message["id"]] == [[]]
    await asyncio.gather(*(delete_expired_files(job_context(stores)) for _ in range(2)))
    await delete_expired_files(job_context(stores))
    assert await file_ids(stores) == {kept}
    assert await stores.mongo.find("file_removals", {}) == []


async def test_refused_message_leaves_its_files_unattached(chat: ChatScenario) -> None:
    id_ = await upload(chat.ann)
    stranger_topic = await chat.bob.create_topic(await chat.bob.create_community("Others"), "Other")
    assert await chat.ann.code(POST, input=attaching(stranger_topic, id_)) in ("FORBIDDEN", "NOT_FOUND")
    assert await chat.ann.code(POST, input=attaching(chat.topic, id_)) is None


async def file_ids(stores: Stores) -> set[str]:
    return {each["_id"] for each in await stores.mongo.find("files", {})}


CREATE_POST = "mutation ($input: CreatePostInput!) { done: createPost(input: $input) { id attachments { id } } }"
FEED = 'query { homeFeed(latest: "now") { items { attachments { id altText } } } }'
DELETE_POST = "mutation ($id: ID!) { deletePost(id: $id) { id attachments { id } } }"


async def test_post_has_files_until_it_is_deleted(chat: ChatScenario) -> None:
    stores, id_ = chat.ann.stores, await upload(chat.ann, picture=True)
    attachments = [{"uploadId": id_, "altText": "A beacon"}]
    assert await chat.bob.code(CREATE_POST, input={"text": "", "attachments": attachments}) == "NOT_FOUND"
    blind = [{"uploadId": id_}]
    assert await chat.ann.code(CREATE_POST, input={"text": "", "attachments": blind}) == "BAD_USER_INPUT"
    post = (await chat.ann.run(CREATE_POST, input={"text": "", "attachments": attachments}))["done"]
    assert [each["id"] for each in post["attachments"]] == [id_]
    assert await chat.ann.code(POST, input=attaching(chat.topic, id_, alt_text="A beacon")) == "CONFLICT"
    shown = (await chat.ann.run(FEED))["homeFeed"]["items"]
    assert shown == [{"attachments": [{"id": id_, "altText": "A beacon"}]}]
    deleted = (await chat.ann.run(DELETE_POST, id=post["id"]))["deletePost"]
    assert deleted["attachments"] == []
    await delete_expired_files(job_context(stores))
    assert await file_ids(stores) == set()


SCHEDULE = "mutation ($input: SchedulePostInput!) { done: schedulePost(input: $input) { id attachments { id } } }"
UPDATE = "mutation ($id: ID!, $input: UpdateScheduledPostInput!) { updateScheduledPost(id: $id, input: $input) { id } }"
CANCEL = "mutation ($id: ID!) { cancelScheduledPost(id: $id) { attachments { id } } }"


def scheduling(chat: ChatScenario, *ids: str, due_at: str = "2030-01-01T00:00:00Z") -> dict[str, Any]:
    attachments = [{"uploadId": each, "altText": "A beacon"} for each in ids]
    targets = {"toHomeFeed": True, "toTopicIds": [chat.topic]}
    return {"text": "", "attachments": attachments, **targets, "dueAt": due_at, "maxLatenessS": 604_800}


async def test_scheduled_files_go_to_message_and_post(chat: ChatScenario) -> None:
    ann, stores = chat.ann, chat.ann.stores
    id_ = await upload(ann, picture=True)
    due_at = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    scheduled = (await ann.run(SCHEDULE, input=scheduling(chat, id_, due_at=due_at)))["done"]
    assert [each["id"] for each in scheduled["attachments"]] == [id_]
    assert await ann.code(POST, input=attaching(chat.topic, id_, alt_text="A beacon")) == "CONFLICT"
    await delete_expired_files(job_context(stores))
    post = await stores.scheduled_posts.get("acme", scheduled["id"])
    for claim in await stores.claims.claim(1000):
        published = await publish_internal(stores, claim, post)
        assert published is not None
        assert published.error is None
    (message,) = (await chat.bob.run(PAGE, topic=chat.topic))["messages"]["items"]
    (feed_item,) = (await ann.run(FEED))["homeFeed"]["items"]
    assert [each["id"] for each in message["attachments"]] == [each["id"] for each in feed_item["attachments"]] == [id_]
    assert (await visible_file(stores, chat.bob.user, id_)).id == id_
    await ann.do(DELETE, id=message["id"])
    await delete_expired_files(job_context(stores))
    assert await file_ids(stores) == {id_}, "The post still has the file."
    await delete_posts(chat)
    await delete_expired_files(job_context(stores))
    assert await file_ids(stores) == set()


async def delete_posts(chat: ChatScenario) -> None:
    posts = (await chat.ann.run('{ localFeed(latest: "now") { items { id } } }'))["localFeed"]["items"]
    for post in posts:
        await chat.ann.run(DELETE_POST, id=post["id"])


async def test_cancelled_and_dropped_targets_release_files(chat: ChatScenario) -> None:
    ann, stores = chat.ann, chat.ann.stores
    id_ = await upload(ann, picture=True)
    scheduled = (await ann.run(SCHEDULE, input=scheduling(chat, id_)))["done"]
    other = await ann.create_topic(chat.community, "Other")
    for targets in ({"toTopicIds": []}, {"toTopicIds": [other], "toHomeFeed": False}):
        await ann.run(UPDATE, id=scheduled["id"], input=targets)
        await delete_expired_files(job_context(stores))
        assert len((await stores.uploads.get(ann.user.key, id_)).places) == 1
    with pytest.raises(NotFound):
        await visible_file(stores, chat.bob.user, id_)
    assert (await visible_file(stores, ann.user, id_)).id == id_
    await ann.run(CANCEL, id=scheduled["id"])
    await delete_expired_files(job_context(stores))
    assert await file_ids(stores) == set()


def edit(*ids: str, alt_text: str = "A beacon", **fields: Any) -> dict[str, Any]:
    return {"attachments": [{"uploadId": each, "altText": alt_text} for each in ids], **fields}


async def test_edited_post_keeps_adds_and_releases_files(chat: ChatScenario) -> None:
    ann, stores = chat.ann, chat.ann.stores
    first, second, third = [await upload(ann, picture=True) for _ in range(3)]
    scheduled = (await ann.run(SCHEDULE, input=scheduling(chat, first, second)))["done"]
    await ann.run(UPDATE, id=scheduled["id"], input={"text": "Other words"})
    assert await scheduled_files(ann, scheduled["id"]) == [(first, "A beacon"), (second, "A beacon")]
    await ann.run(UPDATE, id=scheduled["id"], input=edit(third, second, alt_text="A hill", toTopicIds=[]))
    assert await scheduled_files(ann, scheduled["id"]) == [(third, "A hill"), (second, "A hill")]
    (publication,) = await stores.scheduled_posts.publications_of(scheduled["id"])
    assert publication.file_ids == (third, second)
    await delete_expired_files(job_context(stores))
    for id_ in (second, third):
        assert (await stores.uploads.get(ann.user.key, id_)).places == (f"publication:{publication.id}",)
    released = await stores.uploads.get(ann.user.key, first)
    assert released.expires_at is not None
    assert released.expires_at - released.created_at > timedelta(hours=23), "It is deleted a day after its release."
    assert await ann.code(POST, input=attaching(chat.topic, first, alt_text="A beacon")) is None


async def scheduled_files(person: Person, id_: str) -> list[tuple[str, str]]:
    query = "query ($id: ID!) { scheduledPost(id: $id) { attachments { id altText } } }"
    files = (await person.run(query, id=id_))["scheduledPost"]["attachments"]
    return [(each["id"], each["altText"]) for each in files]


async def test_edit_with_unattachable_files_is_refused(chat: ChatScenario, sign_in: SignIn) -> None:
    ann, stranger = chat.ann, await sign_in("ann", "globex")
    own, posted = await upload(ann, picture=True), await upload(ann, picture=True)
    await ann.run(POST, input=attaching(chat.topic, posted, alt_text="A beacon"))
    scheduled = (await ann.run(SCHEDULE, input=scheduling(chat, own)))["done"]
    for input_, code in (
        (edit(own, await upload(chat.bob)), "NOT_FOUND"),
        (edit(own, await upload(stranger)), "NOT_FOUND"),
        (edit(own, "none"), "NOT_FOUND"),
        (edit(own, posted), "CONFLICT"),
        (edit(own, own), "BAD_USER_INPUT"),
        (edit(own, alt_text=""), "BAD_USER_INPUT"),
        (edit(), "BAD_USER_INPUT"),
    ):
        assert await ann.code(UPDATE, id=scheduled["id"], input=input_) == code, input_
    assert await scheduled_files(ann, scheduled["id"]) == [(own, "A beacon")]
    assert await ann.code(UPDATE, id=scheduled["id"], input=edit(text="Words instead")) is None
    assert await scheduled_files(ann, scheduled["id"]) == []


async def test_edits_at_once_attach_a_file_to_one_post(chat: ChatScenario) -> None:
    ann = chat.ann
    id_ = await upload(ann, picture=True)
    posts = [(await ann.run(SCHEDULE, input=scheduling(chat, await upload(ann))))["done"]["id"] for _ in range(4)]
    attempts = [ann.code(UPDATE, id=each, input=edit(id_)) for each in posts]
    attempts += [ann.code(POST, input=attaching(chat.topic, id_, alt_text="A beacon")) for _ in range(2)]
    codes = await asyncio.gather(*attempts)
    assert codes.count(None) == 1, codes
    assert set(codes) == {None, "CONFLICT"}


async def test_edit_during_publication_moves_one_set_of_files(chat: ChatScenario) -> None:
    """Either the edit comes first, and the worker loses its claim, or the files of before are published."""
    ann, stores = chat.ann, chat.ann.stores
    due_at = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    for _ in range(6):
        before, after = await upload(ann, picture=True), await upload(ann, picture=True)
        input_ = {**scheduling(chat, before, due_at=due_at), "toHomeFeed": False}
        id_ = (await ann.run(SCHEDULE, input=input_))["done"]["id"]
        (claim,) = await stores.claims.claim(1000)
        post = await stores.scheduled_posts.get("acme", id_)
        published, code = await asyncio.gather(
            publish_internal(stores, claim, post), ann.code(UPDATE, id=id_, input=edit(after))
        )
        assert (published is None) == (code is None)
        if published is None:
            (claim,) = await stores.claims.claim(1000)
            assert claim.file_ids == (after,)
            await publish_internal(stores, claim, await stores.scheduled_posts.get("acme", id_))
        message = (await chat.bob.run(PAGE, topic=chat.topic))["messages"]["items"][0]
        expected, other = (before, after) if code else (after, before)
        assert [each["id"] for each in message["attachments"]] == [expected]
        assert (await stores.uploads.get(ann.user.key, other)).places == ()
        with pytest.raises(NotFound):
            await visible_file(stores, chat.bob.user, other)


async def account_input(operator: Person, network: Network, *ids: str, **fields: Any) -> dict[str, Any]:
    account = AccountToConnect("acme", network, "a", None if network is Network.SANDBOX else "https://example.org")
    connected = await operator.stores.accounts.connect(account, "ok", None)
    attachments = [{"uploadId": each, "altText": "A beacon"} for each in ids]
    due_at = "2030-01-01T00:00:00Z"
    return {"text": "", "attachments": attachments, "toAccountIds": [connected.id], "dueAt": due_at, **fields}


async def test_accounts_take_pictures_and_no_documents(sign_in: SignIn) -> None:
    operator = await sign_in("op", roles=[Role.OPERATOR])
    picture, document = await upload(operator, picture=True), await upload(operator)
    input_ = await account_input(operator, Network.SANDBOX, picture)
    refused = await operator.fails(
        SCHEDULE, input={**input_, "attachments": [*input_["attachments"], {"uploadId": document}]}
    )
    assert (refused["code"], refused["field"]) == ("BAD_USER_INPUT", "attachments[1]")
    scheduled = (await operator.run(SCHEDULE, input=input_))["done"]
    assert await scheduled_files(operator, scheduled["id"]) == [(picture, "A beacon")]
    refused = await operator.fails(UPDATE, id=scheduled["id"], input=edit(document))
    assert (refused["code"], refused["field"]) == ("BAD_USER_INPUT", "attachments[0]")
    assert await operator.code(UPDATE, id=scheduled["id"], input=edit(picture, alt_text="A hill")) is None
    assert await scheduled_files(operator, scheduled["id"]) == [(picture, "A hill")]


@pytest.mark.parametrize("network", [Network.WEBHOOK, Network.INSTAGRAM])
async def test_files_to_fetch_need_a_public_address(sign_in: SignIn, network: Network) -> None:
    operator = await sign_in("op", roles=[Role.OPERATOR])
    picture = await upload(operator, picture=True, content_type="image/jpeg")
    input_ = await account_input(operator, network, picture)
    refused = await operator.fails(SCHEDULE, input=input_)
    assert (refused["code"], refused["field"]) == ("BAD_USER_INPUT", "attachments")
    assert "NOROSHI_PUBLIC_URL" in refused["expected"]
    operator.has_public_address = True
    scheduled = (await operator.run(SCHEDULE, input=input_))["done"]
    operator.has_public_address = False
    refused = await operator.fails(UPDATE, id=scheduled["id"], input={"text": "Words"})
    assert refused["field"] == "attachments"


LIBRARY = "{ mediaLibrary { id altText url } }"
ADD = 'mutation ($id: ID!) { done: addToLibrary(uploadId: $id, altText: "A beacon") { id } }'
REMOVE = "mutation ($id: ID!) { done: removeFromLibrary(uploadId: $id) }"


async def test_library_is_only_for_its_owner(chat: ChatScenario) -> None:
    ann, bob, stores = chat.ann, chat.bob, chat.ann.stores
    id_ = await upload(ann, picture=True)
    assert await bob.code(ADD, id=id_) == "NOT_FOUND"
    await ann.run(ADD, id=id_)
    assert (await ann.run(LIBRARY))["mediaLibrary"] == [
        {"id": id_, "altText": "A beacon", "url": f"/files/{id_}/a.txt"}
    ]
    assert (await bob.run(LIBRARY))["mediaLibrary"] == []
    assert await bob.code(REMOVE, id=id_) == "NOT_FOUND"
    assert await bob.code("query ($id: ID!) { mediaLibrary(after: $id) { id } }", id=id_) == "NOT_FOUND"
    assert (await visible_file(stores, ann.user, id_)).id == id_
    with pytest.raises(NotFound):
        await visible_file(stores, bob.user, id_)
    for _ in range(2):
        await ann.run(POST, input=attaching(chat.topic, id_, alt_text="A hill"))
    assert (await visible_file(stores, bob.user, id_)).id == id_
    assert await bob.code(POST, input=attaching(chat.topic, id_, alt_text="A hill")) == "NOT_FOUND"
    await ann.run(REMOVE, id=id_)
    assert (await visible_file(stores, bob.user, id_)).id == id_
