"""Queries that are executed once for a crowd: what each gets, whom it suits, and that no answer is older than asked."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2
import pytest
from graphql import GraphQLObjectType, get_named_type, is_leaf_type, parse
from starlette.responses import Response

from resolvers.context import Crowd
from schema.root import schema
from schema.sharing import is_for_crowds, suits_crowds
from server.graphql.coalescing import ANSWERS, MAX_CROWD, Crowds
from server.graphql.limits import CACHE_BYTES_MAX, DocumentCache, DocumentLimitsExtension
from storage.identity.records import User
from storage.stores import Stores
from tests.schema.fields import bound, members
from tests.schema.viewers import NAMES, World, differing
from tests.server.graphql.listeners import House, open_house

pytestmark = pytest.mark.anyio

CORE = schema._schema
ROOTS = ("messages", "messagesAround")
HEADERS = {"content-type": "application/json"}
Answer = dict[str, Any]


def everything(type_: GraphQLObjectType) -> str:
    """All that suits crowds, and what is below it."""
    fields = []
    for name, each in type_.fields.items():
        if suits_crowds(bound(type_, name)):
            inner = " ".join(everything(member) for member in members(each.type))
            fields.append(name if is_leaf_type(get_named_type(each.type)) else f"{name} {{ {inner} }}")
    return " ".join(["__typename", *fields])


def reachable() -> Iterator[tuple[GraphQLObjectType, str]]:
    """Every field that can be selected below the roots in a document for crowds."""
    assert CORE.query_type is not None
    seen: set[GraphQLObjectType] = set()
    left = [each for root in ROOTS for each in members(CORE.query_type.fields[root].type)]
    while left:
        type_ = left.pop()
        if type_ not in seen:
            seen.add(type_)
            yield from ((type_, name) for name in type_.fields)
            suiting = [each for name, each in type_.fields.items() if suits_crowds(bound(type_, name))]
            left += [member for each in suiting for member in members(each.type)]


def query(root: str, world: World) -> str:
    """Everything that suits crowds of the world's topic."""
    assert CORE.query_type is not None
    (page,) = members(CORE.query_type.fields[root].type)
    first = f"{world.first.timestamp // 1_000_000}.{world.first.timestamp % 1_000_000:06}"
    at = f'timestamp: "{first}"' if root == "messagesAround" else 'latest: "now"'
    return f'{{ {root}(topicId: "{world.place.topic.id}", {at}) {{ {everything(page)} }} }}'


@asynccontextmanager
async def client(house: House) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=house.view)
    async with httpx2.AsyncClient(transport=transport, base_url="http://house/graphql", headers=HEADERS) as http:
        yield http


async def ask(http: httpx2.AsyncClient, house: House, who: str, text: str, **variables: Any) -> Answer:
    headers = {"authorization": f"Bearer {house.token(who)}"}
    response = await http.post("", json={"query": text, "variables": variables}, headers=headers)
    assert response.status_code == 200
    answer: Answer = response.json()
    return answer


def answers() -> Counter[str]:
    """So far, by outcome."""
    return Counter({name: int(ANSWERS.labels(name)._value.get()) for name in ("executed", "shared", "apart")})


@pytest.fixture
async def world(shared_stores: Stores) -> World:
    world = await differing(shared_stores)
    # Fay and Gus have nothing of their own and are answered with the crowd; all that Hal has is a block.
    for name in ("fay", "gus", "hal"):
        reader = await world.stores.users.sign_in(world.place.organization_id, name, (), None, None)
        await world.stores.communities.join(world.place.community, reader)
    await world.stores.relations.block(world.place.organization_id, "hal", "dan")
    return world


@pytest.mark.parametrize("root", ROOTS)
async def test_in_a_crowd_everybody_gets_what_they_get_alone(world: World, root: str) -> None:
    everybody, text = (*NAMES, "fay", "gus", "hal"), query(root, world)
    async with open_house(world.place) as house, client(house) as http:
        before = answers()
        alone = {name: await ask(http, house, name, text) for name in everybody}
        assert (answers() - before)["shared"] == 0
        asking = [(name, asyncio.create_task(ask(http, house, name, text))) for _ in range(3) for name in everybody]
        for name, task in asking:
            assert await task == alone[name], name
        assert (answers() - before)["shared"] > 0
    assert alone["eve"]["errors"][0]["extensions"]["code"] == "FORBIDDEN"
    assert len({str(alone[name]) for name in ("ann", "bob", "fay", "hal")}) == 4
    assert alone["fay"] == alone["gus"]


async def test_a_crowd_of_whom_nobody_gets_the_common_answer_is_answered_one_by_one(world: World) -> None:
    text = query("messages", world)
    async with open_house(world.place) as house, client(house) as http:
        alone = {name: await ask(http, house, name, text) for name in ("ann", "bob", "hal")}
        before = answers()
        tasks = [(name, asyncio.create_task(ask(http, house, name, text))) for name in ("ann", "bob", "hal")]
        for name, task in tasks:
            assert await task == alone[name], name
        assert (answers() - before)["shared"] == 0
        assert (answers() - before)["apart"] > 0


@pytest.mark.parametrize("root", ROOTS)
def test_what_suits_crowds_is_for_crowds(root: str) -> None:
    assert CORE.query_type is not None
    (page,) = members(CORE.query_type.fields[root].type)
    assert is_for_crowds(CORE, parse(f"{{ a: {root} {{ {everything(page)} }} }}"))


OTHERS = [(str(type_), name) for type_, name in reachable() if not suits_crowds(bound(type_, name))]


@pytest.mark.parametrize(("type_name", "name"), OTHERS)
def test_a_query_with_a_field_that_suits_no_crowd_is_executed_for_each(type_name: str, name: str) -> None:
    for text in (
        f"{{ messages {{ items {{ ... on {type_name} {{ {name} }} }} }} }}",
        f"{{ messages {{ ...f }} }} fragment f on {type_name} {{ x: {name} }}",
        f"{{ messages {{ ... on {type_name} @skip(if: true) {{ {name} }} }} }}",
    ):
        assert not is_for_crowds(CORE, parse(text))


def test_other_queries_and_introspection_are_executed_for_each() -> None:
    assert CORE.query_type is not None
    for name in {"__schema", *CORE.query_type.fields} - set(ROOTS):
        assert not is_for_crowds(CORE, parse(f"{{ {name} {{ __typename }} messages {{ __typename }} }}")), name


async def test_no_page_is_older_than_its_question(world: World) -> None:
    """Readers ask without a pause; a writer asks the same as soon as the post returned."""
    text = 'query ($topic: ID!) { messages(topicId: $topic, latest: "now", limit: 3) { items { text } } }'
    topic, place = world.place.topic.id, world.place
    async with open_house(place) as house, client(house) as http:
        over = asyncio.Event()

        async def read(name: str) -> None:
            while not over.is_set():
                await ask(http, house, name, text, topic=topic)

        readers = [asyncio.create_task(read(name)) for name in ("fay", "gus") * 4]
        before = answers()
        for number in range(40):
            await place.post(f"post {number}", "dan")
            page = await ask(http, house, "gus", text, topic=topic)
            assert page["data"]["messages"]["items"][0]["text"] == f"post {number}"
        over.set()
        await asyncio.gather(*readers)
        assert (answers() - before)["shared"] > 0


async def test_a_query_whose_document_was_forgotten_is_answered_as_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = query("messages", world)
    async with open_house(world.place) as house, client(house) as http:
        alone = {name: await ask(http, house, name, text) for name in ("fay", "eve", "hal")}
        await ask(http, house, "gus", text)
        monkeypatch.setattr(DocumentLimitsExtension, "documents", DocumentCache(CACHE_BYTES_MAX))
        tasks = {name: asyncio.create_task(ask(http, house, name, text)) for name in alone}
        assert {name: await task for name, task in tasks.items()} == alone


def user(id_: str) -> User:
    return User(id_, id_, id_, "org", (), 0, 0)


ANN, BOB = user("ann"), user("bob")


class Held:
    """An execution that waits to be let go, and remembers whom it was for."""

    def __init__(self) -> None:
        self.crowds: list[Crowd | None] = []
        self.go = asyncio.Event()
        self.outcome: Callable[[], Response] = Response

    async def __call__(self, viewer: User, crowd: Crowd | None) -> Response:
        self.crowds.append(crowd)
        await self.go.wait()
        return self.outcome()


async def asked(crowds: Crowds, held: Held, *viewers: User) -> list["asyncio.Task[Response | Crowd]"]:
    """They wait for their answers when this returns."""
    tasks = [asyncio.create_task(crowds.ask("query", viewer, held)) for viewer in viewers]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_whoever_asks_during_an_execution_waits_for_the_next() -> None:
    crowds, held = Crowds(), Held()
    (first,) = await asked(crowds, held, ANN)
    later = await asked(crowds, held, BOB, ANN, BOB)
    assert held.crowds == [None]
    held.go.set()
    responses = await asyncio.gather(first, *later)
    assert [each and each.ids for each in held.crowds] == [None, frozenset({"ann", "bob"})]
    assert responses[0] is not responses[1]
    assert len({id(response) for response in responses[1:]}) == 1


async def test_a_failure_is_told_to_all_who_waited_for_it_and_to_nobody_after() -> None:
    crowds, held = Crowds(), Held()

    def fail() -> Response:
        held.outcome = Response
        raise OSError("gone")

    held.outcome = fail
    first = await asked(crowds, held, ANN, BOB)
    later = await asked(crowds, held, BOB)
    held.go.set()
    told = await asyncio.gather(*first, *later, return_exceptions=True)
    assert [type(each) for each in told] == [OSError, OSError, Response]
    assert isinstance(await crowds.ask("query", ANN, held), Response)


async def test_those_who_gave_up_are_not_executed_for_and_take_nothing_from_others() -> None:
    crowds, held = Crowds(), Held()
    (first,) = await asked(crowds, held, ANN)
    gone, stays = await asked(crowds, held, ANN, BOB)
    for task in (first, gone):
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    held.go.set()
    assert isinstance(await stays, Response)
    assert held.crowds == [None, None]


async def test_an_execution_that_is_cancelled_leaves_nobody_waiting() -> None:
    crowds, held = Crowds(), Held()

    def cancelled() -> Response:
        raise asyncio.CancelledError

    held.outcome = cancelled
    tasks = [*await asked(crowds, held, ANN), *await asked(crowds, held, BOB)]
    held.go.set()
    told = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in told] == [asyncio.CancelledError] * 2
    held.outcome = Response
    assert isinstance(await crowds.ask("query", ANN, held), Response)


class Slow(Held):
    """An execution that takes so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def __call__(self, viewer: User, crowd: Crowd | None) -> Response:
        self.crowds.append(crowd)
        await asyncio.sleep(self._seconds)
        return Response()


async def test_readers_who_ask_again_and_again_are_one_crowd() -> None:
    """Else the first one back has an execution alone, for which all the others wait."""
    crowds, slow, times = Crowds(), Slow(0.02), 6
    readers = [user(str(number)) for number in range(10)]

    async def read(reader: User) -> None:
        for _ in range(times):
            assert await crowds.ask("query", reader, slow) is not None
            # As far away as nobody else.
            await asyncio.sleep(0.0005 * int(reader.id))

    await asyncio.gather(*map(read, readers))
    # Twice as many if the others waited for the first one back.
    assert len(slow.crowds) <= 1.5 * times


async def test_who_comes_back_alone_after_a_crowd_is_executed_for_without_the_others() -> None:
    crowds, slow = Crowds(), Slow(0.05)
    await asyncio.gather(*(crowds.ask("query", each, slow) for each in (ANN, BOB)))
    assert await crowds.ask("query", ANN, slow) is not None
    assert [each and len(each.ids) for each in slow.crowds] == [2, None]


async def test_more_than_a_crowd_are_answered_in_turns() -> None:
    crowds, held = Crowds(), Held()
    many = [user(str(number)) for number in range(MAX_CROWD + 2)]
    tasks = await asked(crowds, held, ANN)
    tasks += await asked(crowds, held, *many)
    held.go.set()
    assert all(await asyncio.gather(*tasks))
    assert [each and len(each.ids) for each in held.crowds] == [None, MAX_CROWD, 2]


async def test_roles_and_bodies_and_media_types_keep_queries_apart(world: World) -> None:
    text = query("messages", world)
    async with open_house(world.place) as house, client(house) as http:
        await ask(http, house, "gus", text)
        before = answers()
        bodies: list[tuple[str, tuple[str, ...], Answer]] = [
            ("application/json", ("MEMBER",), {"query": text}),
            ("application/json", ("MEMBER", "SERVICE"), {"query": text}),
            ("application/json", ("MEMBER",), {"query": text, "variables": {}}),
            ("application/graphql-response+json", ("MEMBER",), {"query": text}),
        ]
        responses = await asyncio.gather(
            *(
                http.post(
                    "", json=body, headers={"accept": accept, "authorization": f"Bearer {house.token('gus', roles)}"}
                )
                for accept, roles, body in bodies
            )
        )
        assert answers() - before == Counter(executed=4)
    assert len({response.content for response in responses}) == 1
    assert responses[3].headers["content-type"].startswith("application/graphql-response+json")
