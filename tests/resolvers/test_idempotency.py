"""A mutation repeated with its idempotency key takes effect once, also concurrently (docs/semantics.md, 1)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from strawberry import ID, UNSET
from strawberry.types.base import StrawberryObjectDefinition

from resolvers.idempotency import input_key
from resolvers.inputs import PostMessageInput
from resolvers.publishing.inputs import ConnectAccountInput, ScheduledMediaInput, SchedulePostInput
from schema.root import schema
from storage.errors import Conflict
from storage.idempotency import DIGEST_PREFIX, DuplicateRequest, IdempotencyKey
from storage.identity.records import User
from storage.mongo import Driver
from storage.publishing.networks import MediaKind, Network
from storage.stores import Stores, open_stores
from tests.resolvers.people import DELETE, EDIT, REACT, ChatScenario, Person

pytestmark = pytest.mark.anyio

MutationInput = dict[str, Any]
ROUNDS = 6


@dataclass(frozen=True)
class CreatingMutation:
    """A mutation that takes a key: its input, changes of the input, and the collection of the created objects."""

    mutation: str
    collection: str
    input: Callable[[ChatScenario], MutationInput]
    changes: MutationInput

    async def create_by(self, person: Person, chat: ChatScenario, **changes: Any) -> str:
        """Runs the mutation as the person, and returns the id of the created object."""
        return str((await person.do(self.query, input={**self.input(chat), **changes}))["id"])

    async def refusal(self, person: Person, chat: ChatScenario, **changes: Any) -> MutationInput:
        return await person.fails(self.query, input={**self.input(chat), **changes})

    @property
    def query(self) -> str:
        input_type = self.mutation[0].upper() + self.mutation[1:] + "Input"
        return f"mutation ($input: {input_type}!) {{ done: {self.mutation}(input: $input) {{ id }} }}"

    async def count(self, chat: ChatScenario) -> int:
        """Returns the number of stored objects."""
        return await chat.ann.stores.mongo[self.collection].count_documents({})


CREATIONS = [
    CreatingMutation(
        "createCommunity", "communities", lambda _chat: {"name": "Sailors"}, {"description": "Other words"}
    ),
    CreatingMutation(
        "createTopic", "topics", lambda chat: {"communityId": chat.community, "title": "Nets"}, {"title": "Other words"}
    ),
    CreatingMutation(
        "postMessage", "messages", lambda chat: {"topicId": chat.topic, "text": "Hello"}, {"stampId": "hello"}
    ),
    CreatingMutation(
        "createPost", "posts", lambda _chat: {"text": "Hello"}, {"mediaUrls": ["https://example.org/a.png"]}
    ),
]


@pytest.fixture(params=CREATIONS, ids=lambda creation: creation.mutation)
def creation(request: pytest.FixtureRequest) -> CreatingMutation:
    value: CreatingMutation = request.param
    return value


@pytest.fixture
async def stores_of_other_process(
    mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver
) -> AsyncIterator[Stores]:
    """The stores of another process on the same database."""
    async with open_stores(mongodb_uri, redis_url, database, mongo_driver) as stores:
        yield stores


async def test_same_key_and_arguments_return_one_object(creation: CreatingMutation, chat: ChatScenario) -> None:
    count_before = await creation.count(chat)
    ids = {await creation.create_by(chat.ann, chat, idempotencyKey="k") for _ in range(3)}
    assert len(ids) == 1
    assert await creation.count(chat) == count_before + 1


async def test_same_key_with_other_arguments_conflicts(creation: CreatingMutation, chat: ChatScenario) -> None:
    id_ = await creation.create_by(chat.ann, chat, idempotencyKey="k")
    count_before = await creation.count(chat)
    refusal = await creation.refusal(chat.ann, chat, idempotencyKey="k", **creation.changes)
    assert refusal["code"] == "CONFLICT"
    assert await creation.count(chat) == count_before
    assert await creation.create_by(chat.ann, chat, idempotencyKey="k") == id_


async def test_other_keys_and_other_users_are_independent(creation: CreatingMutation, chat: ChatScenario) -> None:
    ids = [await creation.create_by(chat.ann, chat, idempotencyKey=key) for key in ("k", "l", "K", "k ")]
    ids += [
        await creation.create_by(chat.ann, chat, **without_key) for without_key in ({}, {}, {"idempotencyKey": None})
    ]
    ids += [await creation.create_by(chat.bob, chat, idempotencyKey="k")]
    assert len(set(ids)) == len(ids)


async def test_one_key_is_valid_once_per_mutation(chat: ChatScenario) -> None:
    ids = [await creation.create_by(chat.ann, chat, idempotencyKey="k") for creation in CREATIONS]
    assert [await creation.create_by(chat.ann, chat, idempotencyKey="k") for creation in CREATIONS] == ids


async def test_concurrent_duplicates_create_one_object(creation: CreatingMutation, chat: ChatScenario) -> None:
    count_before = await creation.count(chat)
    ids = await asyncio.gather(*(creation.create_by(chat.ann, chat, idempotencyKey="k") for _ in range(8)))
    assert len(set(ids)) == 1
    assert await creation.count(chat) == count_before + 1


async def test_concurrent_duplicates_in_two_processes_create_one(
    creation: CreatingMutation, chat: ChatScenario, stores_of_other_process: Stores
) -> None:
    """All callers get the same object, even a caller who finds the key before the first attempt is durable."""
    count_before = await creation.count(chat)
    person_in_other_process = Person(stores_of_other_process, chat.ann.user, chat.ann.roles)
    for number in range(ROUNDS):
        attempts = [
            creation.create_by(person, chat, idempotencyKey=str(number))
            for _ in range(4)
            for person in (chat.ann, person_in_other_process)
        ]
        assert len(set(await asyncio.gather(*attempts))) == 1
    assert await creation.count(chat) == count_before + ROUNDS


async def test_concurrent_reuse_of_a_key_conflicts_once(
    creation: CreatingMutation, chat: ChatScenario, stores_of_other_process: Stores
) -> None:
    person_in_other_process = Person(stores_of_other_process, chat.ann.user, chat.ann.roles)
    inputs = [
        {**creation.input(chat), "idempotencyKey": "k"},
        {**creation.input(chat), "idempotencyKey": "k", **creation.changes},
    ]
    count_before = await creation.count(chat)
    answers = await asyncio.gather(
        chat.ann.code(creation.query, input=inputs[0]), person_in_other_process.code(creation.query, input=inputs[1])
    )
    assert sorted(answers, key=str) == ["CONFLICT", None]
    assert await creation.count(chat) == count_before + 1


async def test_key_has_one_to_two_hundred_characters(creation: CreatingMutation, chat: ChatScenario) -> None:
    for key in ("", "k" * 201):
        refusal = await creation.refusal(chat.ann, chat, idempotencyKey=key)
        assert refusal == {"code": "BAD_USER_INPUT", "field": "idempotencyKey", "expected": "1 to 200 characters"}
    for key in ("k", "k" * 200, "鍵"):
        assert await creation.create_by(chat.ann, chat, idempotencyKey=key)


async def test_repeated_post_returns_the_message_as_it_is_now(chat: ChatScenario) -> None:
    fields = "{ id text deletedAt reactions { emoji } }"
    query = f"mutation ($input: PostMessageInput!) {{ done: postMessage(input: $input) {fields} }}"
    input_ = {"topicId": chat.topic, "text": "Hello", "idempotencyKey": "k"}
    first = await chat.ann.do(query, input=input_)
    await chat.ann.run(EDIT, id=first["id"], text="Changed")
    await chat.bob.run(REACT, id=first["id"], emoji="👍")
    changed = await chat.ann.do(query, input=input_)
    assert changed == {"id": first["id"], "text": "Changed", "deletedAt": None, "reactions": [{"emoji": "👍"}]}
    await chat.ann.run(DELETE, id=first["id"])
    deleted = await chat.ann.do(query, input=input_)
    assert (deleted["id"], deleted["text"]) == (first["id"], "")
    assert deleted["deletedAt"]
    assert len((await chat.ann.page(chat.topic))["items"]) == 1


async def test_repeated_creation_returns_the_community_as_it_is_now(chat: ChatScenario) -> None:
    query = "mutation ($input: CreateCommunityInput!) { done: createCommunity(input: $input) { id memberCount } }"
    input_ = {"name": "Sailors", "idempotencyKey": "k"}
    first = await chat.ann.do(query, input=input_)
    await chat.bob.join(first["id"])
    assert await chat.ann.do(query, input=input_) == {"id": first["id"], "memberCount": 2}


async def test_repeated_creation_returns_the_topic_as_it_is_now(chat: ChatScenario) -> None:
    query = "mutation ($input: CreateTopicInput!) { done: createTopic(input: $input) { id lastActivity } }"
    input_ = {"communityId": chat.community, "title": "Nets", "idempotencyKey": "k"}
    first = await chat.ann.do(query, input=input_)
    message = await chat.bob.post(first["id"])
    assert await chat.ann.do(query, input=input_) == {"id": first["id"], "lastActivity": message["timestamp"]}


@pytest.mark.parametrize("mutation", ["createTopic", "postMessage"])
async def test_failed_attempt_stores_no_key(chat: ChatScenario, mutation: str) -> None:
    (creation,) = [each for each in CREATIONS if each.mutation == mutation]
    assert (await creation.refusal(chat.eve, chat, idempotencyKey="k", **creation.changes))["code"] == "FORBIDDEN"
    await chat.eve.join(chat.community)
    assert await creation.create_by(chat.eve, chat, idempotencyKey="k")


async def test_attempt_with_bad_input_stores_no_key(creation: CreatingMutation, chat: ChatScenario) -> None:
    field_name = {"createCommunity": "name", "createTopic": "title"}.get(creation.mutation, "text")
    refusal = await creation.refusal(chat.ann, chat, idempotencyKey="k", **{field_name: "x" * 5000})
    assert refusal["code"] == "BAD_USER_INPUT"
    assert await chat.ann.stores.mongo["idempotency"].count_documents({}) == 0
    assert await creation.create_by(chat.ann, chat, idempotencyKey="k")


async def test_keys_are_kept_for_a_day(chat: ChatScenario) -> None:
    """MongoDB deletes keys after the time of the TTL index."""
    indexes = await chat.ann.stores.mongo["idempotency"].index_information()
    assert [index["expireAfterSeconds"] for index in indexes.values() if "expireAfterSeconds" in index] == [24 * 3600]


async def test_post_with_a_key_is_emitted_once(chat: ChatScenario) -> None:
    for _ in range(3):
        await chat.ann.post(chat.topic, idempotencyKey="k")
    events = chat.ann.stores.mongo["events"].find({"_id.s": f"topic:{chat.topic}", "kind": "MessagePosted"})
    assert len([event async for event in events]) == 1


ANN = User("ann", "ann", "Ann", "acme", (), 0, 0)


def inputs_with_keys() -> list[Any]:
    """Returns every input type of the schema that has an idempotency key."""
    definitions = (each.definition for each in schema.schema_converter.type_map.values())
    origins = [each.origin for each in definitions if isinstance(each, StrawberryObjectDefinition) and each.is_input]
    return [each for each in origins if "idempotency_key" in {field.name for field in fields(each)}]


def test_every_input_with_a_key_is_found() -> None:
    assert len(inputs_with_keys()) == 15


@pytest.mark.parametrize("input_type", inputs_with_keys())
def test_digest_covers_every_field_of_the_input(input_type: Any) -> None:
    original = input_type(**{field.name: "a" for field in fields(input_type)})
    names = [field.name for field in fields(input_type) if field.name != "idempotency_key"]
    keys = [input_key(ANN, "m", original), *(input_key(ANN, "m", replace(original, **{name: "b"})) for name in names)]
    assert len({key.digest for key in keys if key is not None}) == len(names) + 1


def test_digest_covers_nested_values() -> None:
    def key(*media: ScheduledMediaInput) -> IdempotencyKey | None:
        due_at = datetime(2026, 11, 21, tzinfo=UTC)
        return input_key(ANN, "m", SchedulePostInput(text="a", due_at=due_at, media=[*media], idempotency_key="k"))

    image, video = (ScheduledMediaInput(url="u", kind=kind) for kind in (MediaKind.IMAGE, MediaKind.VIDEO))
    assert key(image) == key(ScheduledMediaInput(url="u"))
    assert len({key(), key(image), key(video), key(video, image)}) == 4


@pytest.mark.parametrize("stamp_id", [UNSET, None])
def test_omitted_field_equals_null(stamp_id: Any) -> None:
    expected = input_key(ANN, "m", PostMessageInput(topic_id=ID("t"), text="\ud800", idempotency_key="k"))
    input_ = PostMessageInput(topic_id=ID("t"), text="\ud800", stamp_id=stamp_id, idempotency_key="k")
    assert input_key(ANN, "m", input_) == expected


def test_equal_instants_have_equal_digests() -> None:
    def key(text: str) -> IdempotencyKey | None:
        due_at = datetime.fromisoformat(text)
        return input_key(ANN, "m", SchedulePostInput(text="a", due_at=due_at, idempotency_key="k"))

    instants = ("2030-01-01T00:00:00+00:00", "2030-01-01T09:00:00+09:00", "2029-12-31T19:00:00.000-05:00")
    assert len({key(each) for each in instants}) == 1
    assert key("2030-01-01T00:00:00+09:00") != key("2030-01-01T00:00:00+00:00")


def test_digest_of_earlier_version_counts_as_the_same() -> None:
    key = input_key(ANN, "m", PostMessageInput(topic_id=ID("t"), text="a", idempotency_key="k"))
    assert key is not None
    for digest in ("input:0f", "0f"):
        with pytest.raises(DuplicateRequest):
            key.raise_duplicate(key.document("id", datetime.now(UTC)) | {"digest": digest})
    with pytest.raises(Conflict):
        key.raise_duplicate(key.document("id", datetime.now(UTC)) | {"digest": f"{DIGEST_PREFIX}0f"})


def test_omitted_key_is_none() -> None:
    assert input_key(ANN, "m", PostMessageInput(topic_id=ID("t"), text="a")) is None


def test_fingerprint_replaces_the_secret() -> None:
    def key(credentials: str, fingerprint: str) -> IdempotencyKey | None:
        account = ConnectAccountInput(network=Network.SANDBOX, name="a", credentials=credentials, idempotency_key="k")
        return input_key(ANN, "m", account, credentials=fingerprint)

    assert key("one", "f") == key("two", "f") != key("one", "g")
