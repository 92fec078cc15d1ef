"""Which subscriptions are identical, and the errors of operations that cannot start."""

from collections.abc import Mapping
from typing import Any

import pytest
import strawberry
from graphql import GraphQLSchema, print_schema
from strawberry.schema.config import StrawberryConfig

from resolvers.access import member
from resolvers.chat.events import ChatEventSource
from resolvers.context import Context, Info
from schema.binding import subscription
from schema.errors import presented
from schema.events import CommunityEvent
from schema.root import Query, build_schema
from schema.scalars import SCALARS
from server.graphql.compiled import compiled_executor
from server.graphql.documents import Documents
from server.graphql.limits_extension import limits_extension
from server.graphql.subscriptions import OperationRefused, SharedSubscription, Subscriptions, ViewerSubscription
from storage.identity.records import user_stream
from storage.identity.roles import Role
from storage.stores import Stores
from storage.streams.log import Position, format_cursor
from tests.server.graphql.listeners import House
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario

pytestmark = pytest.mark.anyio

DOCUMENTS = Documents()
SCHEMA = build_schema(limits_extension(DOCUMENTS))
CORE = SCHEMA._schema
SUBSCRIPTIONS = Subscriptions(CORE, DOCUMENTS, compiled_executor(DOCUMENTS))
PLAIN = """
    subscription Plain($topic: ID!, $since: Cursor, $with: Boolean! = false) {
      topicEvents(topicId: $topic, since: $since) { ... on MessagePosted { message { id text @include(if: $with) } } }
    }
"""
NOTHING: dict[str, Any] = {}
VIEWERS_OWN = PLAIN.replace("id text", "reactions { emoji } text")


@pytest.fixture(scope="module")
async def place(shared_stores: Stores) -> TopicScenario:
    place = await create_topic_scenario(shared_stores)
    for name in ("bob", "eve"):
        user = await shared_stores.users.sign_in(place.organization_id, name, (), None, None)
        if name == "bob":
            await shared_stores.communities.join(place.community, user)
    return place


def subscriptions_of(core: GraphQLSchema) -> Subscriptions:
    """Returns the subscriptions of another schema."""
    documents = Documents()
    return Subscriptions(core, documents, compiled_executor(documents))


async def viewer(
    place: TopicScenario, name: str | None = "ann", roles: frozenset[Role] = frozenset({Role.MEMBER})
) -> Context:
    context = Context(place.stores, str)
    if name is not None:
        context.viewer = await place.stores.users.get(place.organization_id, name)
        context.roles = roles
    return context


async def subscribed(
    place: TopicScenario, variables: Mapping[str, Any] = NOTHING, query: str = PLAIN, who: Context | None = None
) -> SharedSubscription:
    given = {**variables}
    given.setdefault("topic", place.topic.id)
    found = await SUBSCRIPTIONS.start(who or await viewer(place), query, given, None)
    assert isinstance(found, SharedSubscription)
    return found


def cursor(place: TopicScenario, n: int) -> str:
    return format_cursor(place.stream, Position("epoch", n))


async def test_the_views_inner_schema_is_the_whole_schema(house: House) -> None:
    assert isinstance(house.view.core_schema, GraphQLSchema)
    assert print_schema(house.view.core_schema).strip().splitlines()[-1] == SCHEMA.as_str().strip().splitlines()[-1]
    assert set(house.view.core_schema.type_map) == set(CORE.type_map)


async def test_positions_and_the_order_of_variables_make_no_difference(place: TopicScenario) -> None:
    first = await subscribed(place, {"since": None})
    for variables in (NOTHING, {"since": cursor(place, 7)}, {"since": cursor(place, 8)}):
        assert (await subscribed(place, variables)).key == first.key
    with_all = await subscribed(place, {"with": True, "since": cursor(place, 7)})
    assert (await subscribed(place, {"since": cursor(place, 9), "with": True})).key == with_all.key
    assert with_all.key != first.key
    topic_first = {"topic": place.topic.id, "with": True}
    assert (await subscribed(place, topic_first)).key == with_all.key


async def test_a_position_is_known_by_its_type_whatever_it_is_called(place: TopicScenario) -> None:
    query = PLAIN.replace("$since: Cursor", "$after: Cursor!").replace("since: $since", "since: $after")
    keys = {(await subscribed(place, {"after": cursor(place, n)}, query)).key for n in (1, 2)}
    assert len(keys) == 1


async def test_each_has_the_own_position(place: TopicScenario) -> None:
    assert (await subscribed(place)).source.since is None
    for n in (1, 2):
        assert (await subscribed(place, {"since": cursor(place, n)})).source.since == Position("epoch", n)


async def test_a_position_in_the_text_is_part_of_the_text(place: TopicScenario) -> None:
    query = PLAIN.replace("since: $since", f'since: "{cursor(place, 5)}"').replace("$since: Cursor, ", "")
    found = await subscribed(place, query=query)
    assert found.source.since == Position("epoch", 5)
    assert found.key != (await subscribed(place)).key


async def test_rights_count_only_where_the_viewer_does(place: TopicScenario) -> None:
    bob, admin = await viewer(place, "bob"), await viewer(place, roles=frozenset({Role.ADMIN}))
    plain = {(await subscribed(place, query=PLAIN, who=who)).key for who in (None, bob, admin)}
    own = {(await subscribed(place, query=VIEWERS_OWN, who=who)).key for who in (None, bob, admin)}
    assert (len(plain), len(own)) == (1, 3)
    assert (await subscribed(place, query=VIEWERS_OWN)).key in own


async def test_topics_are_not_mixed_up(place: TopicScenario) -> None:
    other = await create_topic_scenario(place.stores, place.organization_id)
    assert (await subscribed(place)).key != (await subscribed(other)).key


async def own_events(info: Info) -> ChatEventSource:
    viewer = member(info)
    return ChatEventSource(info.context, viewer, user_stream(viewer.organization_id, viewer.id), None, None)


@strawberry.type
class Own:
    own_events: CommunityEvent = subscription(own_events, "Each viewer's own stream.")


async def test_viewers_with_streams_of_their_own_never_share(place: TopicScenario) -> None:
    core = strawberry.Schema(Query, subscription=Own, config=StrawberryConfig(scalar_map=SCALARS))._schema
    query = "subscription { ownEvents { __typename } }"
    start = subscriptions_of(core).start
    found = [await start(await viewer(place, name), query, None, None) for name in ("ann", "bob", "ann")]
    ann, bob, again = [each.key for each in found if isinstance(each, SharedSubscription)]
    assert ann == again != bob


async def test_a_subscription_that_is_its_viewers_own_is_not_shared(place: TopicScenario) -> None:
    for query in ("homeFeedEvents", "notificationEvents", "jobEvents"):
        text = f"subscription {{ {query} {{ __typename }} }}"
        found = [await SUBSCRIPTIONS.start(await viewer(place, name), text, None, None) for name in ("ann", "ann")]
        assert all(isinstance(each, ViewerSubscription) for each in found)
        assert found[0] != found[1]


async def test_queries_and_mutations_are_none_of_its_business(place: TopicScenario) -> None:
    for query in ("{ viewer { id } }", 'mutation { createCommunity(input: {name: "x"}) { id } }', "{ nope }"):
        assert await SUBSCRIPTIONS.start(await viewer(place), query, None, None) is None


async def test_the_named_operation_counts(place: TopicScenario) -> None:
    query = f"query Q {{ __typename }} {PLAIN}"
    who, given = await viewer(place), {"topic": place.topic.id}
    assert await SUBSCRIPTIONS.start(who, query, given, "Q") is None
    assert await SUBSCRIPTIONS.start(who, query, given, "Plain") is not None
    assert await SUBSCRIPTIONS.start(who, query, given, None) is None
    assert await SUBSCRIPTIONS.start(who, query, given, "Nobody") is None


@pytest.mark.parametrize(
    ("query", "variables", "who", "code"),
    [
        ("subscription {", {}, "ann", "GRAPHQL_PARSE_FAILED"),
        ("subscription { nope }", {}, "ann", "GRAPHQL_VALIDATION_FAILED"),
        (PLAIN.replace("(topicId: $topic, since: $since)", ""), {}, "ann", "GRAPHQL_VALIDATION_FAILED"),
        (PLAIN, {"topic": None}, "ann", "BAD_USER_INPUT"),
        (PLAIN, {"with": "perhaps"}, "ann", "BAD_USER_INPUT"),
        (PLAIN, {"since": "nonsense"}, "ann", "BAD_USER_INPUT"),
        (PLAIN, {"since": 5}, "ann", "BAD_USER_INPUT"),
        (PLAIN, {"topic": "nowhere"}, "ann", "NOT_FOUND"),
        (PLAIN, {}, "eve", "FORBIDDEN"),
        (PLAIN, {}, None, "UNAUTHENTICATED"),
    ],
)
async def test_subscription_that_cannot_start_names_errors(
    place: TopicScenario, query: str, variables: dict[str, Any], who: str | None, code: str
) -> None:
    with pytest.raises(OperationRefused) as refused:
        await subscribed(place, variables, query, await viewer(place, who))
    assert {(presented(error).extensions or {})["code"] for error in refused.value.errors} == {code}


async def test_a_service_may_not_listen(place: TopicScenario) -> None:
    with pytest.raises(OperationRefused) as refused:
        await subscribed(place, who=await viewer(place, roles=frozenset({Role.SERVICE})))
    assert (presented(refused.value.errors[0]).extensions or {})["code"] == "FORBIDDEN"
