"""Keys of shared subscriptions, and the errors of operations that cannot start."""

from collections.abc import Mapping
from typing import Any

import pytest
import strawberry
from graphql import DocumentNode, GraphQLSchema
from strawberry.schema.config import StrawberryConfig

import server.graphql.documents as server_documents
from resolvers.access import require_member
from resolvers.chat.events import ChatEventSource
from resolvers.context import Context, Info
from schema.binding import subscription
from schema.errors import to_client_error
from schema.events import CommunityEvent
from schema.root import Query, schema
from schema.scalars import SCALARS
from schema.sharing import depends_on_viewer
from server.graphql.documents import OperationRefused, OperationRequest
from server.graphql.operations import Operations
from server.graphql.subscription_start import SharedSubscription, SubscriptionStarter, ViewerSubscription
from storage.identity.records import user_stream
from storage.identity.roles import Role
from storage.stores import Stores
from storage.streams.log import StreamPosition, format_cursor
from tests.resolvers.people import fake_signed_url
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario

pytestmark = pytest.mark.anyio

OPERATIONS = Operations(schema)
TOPIC_EVENTS = """
    subscription Plain($topic: ID!, $since: Cursor, $withText: Boolean! = false) {
      topicEvents(topicId: $topic, since: $since) {
        ... on MessagePosted { message { id text @include(if: $withText) } }
      }
    }
"""
NO_VARIABLES: dict[str, Any] = {}
VIEWER_DEPENDENT_EVENTS = TOPIC_EVENTS.replace("id text", "reactions { emoji } text")


@pytest.fixture(scope="module")
async def scenario(shared_stores: Stores) -> TopicScenario:
    """Creates a topic. Bob is a member of its community; eve is not."""
    scenario = await create_topic_scenario(shared_stores)
    for name in ("bob", "eve"):
        user = await shared_stores.users.sign_in(scenario.organization_id, name, (), None, None)
        if name == "bob":
            await shared_stores.communities.join(scenario.community, user)
    return scenario


async def test_viewer_dependence_is_found_once_per_document(
    scenario: TopicScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations, documents = Operations(schema), list[object]()

    def recording_depends_on_viewer(core_schema: GraphQLSchema, document: DocumentNode) -> bool:
        documents.append(document)
        return depends_on_viewer(core_schema, document)

    monkeypatch.setattr(server_documents, "depends_on_viewer", recording_depends_on_viewer)
    for _ in range(3):
        context = await viewer_context(scenario, "bob")
        await start(context, TOPIC_EVENTS, {"topic": scenario.topic.id}, operations)
    assert len(documents) == 1


async def start(
    context: Context,
    query: str,
    variables: Mapping[str, Any] = NO_VARIABLES,
    operations: Operations = OPERATIONS,
    resumed_after: str | None = None,
) -> SharedSubscription | ViewerSubscription:
    """Starts a subscription, which resumes after the cursor."""
    operation = operations.documents.operation(OperationRequest(query, dict(variables)))
    return await SubscriptionStarter(operations).start(context, operation, resumed_after)


async def viewer_context(
    scenario: TopicScenario, name: str | None = "ann", roles: frozenset[Role] = frozenset({Role.MEMBER})
) -> Context:
    """Returns the context of a request by this user, or by no user."""
    context = Context(scenario.stores, fake_signed_url)
    if name is not None:
        context.viewer = await scenario.stores.users.get(scenario.organization_id, name)
        context.roles = roles
    return context


async def start_shared(
    scenario: TopicScenario,
    variables: Mapping[str, Any] = NO_VARIABLES,
    query: str = TOPIC_EVENTS,
    context: Context | None = None,
) -> SharedSubscription:
    """Starts a subscription to the topic, by default as ann. Asserts that it is shared."""
    all_variables = {**variables}
    all_variables.setdefault("topic", scenario.topic.id)
    shared = await start(context or await viewer_context(scenario), query, all_variables)
    assert isinstance(shared, SharedSubscription)
    return shared


def cursor(scenario: TopicScenario, n: int) -> str:
    return format_cursor(scenario.stream, StreamPosition("epoch", n))


async def test_key_ignores_positions_and_order_of_variables(scenario: TopicScenario) -> None:
    first = await start_shared(scenario, {"since": None})
    for variables in (NO_VARIABLES, {"since": cursor(scenario, 7)}, {"since": cursor(scenario, 8)}):
        assert (await start_shared(scenario, variables)).key == first.key
    with_text = await start_shared(scenario, {"withText": True, "since": cursor(scenario, 7)})
    assert (await start_shared(scenario, {"since": cursor(scenario, 9), "withText": True})).key == with_text.key
    assert with_text.key != first.key
    topic_first = {"topic": scenario.topic.id, "withText": True}
    assert (await start_shared(scenario, topic_first)).key == with_text.key


async def test_position_variable_is_recognized_by_its_type(scenario: TopicScenario) -> None:
    query = TOPIC_EVENTS.replace("$since: Cursor", "$after: Cursor!").replace("since: $since", "since: $after")
    keys = {(await start_shared(scenario, {"after": cursor(scenario, n)}, query)).key for n in (1, 2)}
    assert len(keys) == 1


async def test_shared_subscription_has_its_own_position(scenario: TopicScenario) -> None:
    assert (await start_shared(scenario)).source.since is None
    for n in (1, 2):
        assert (await start_shared(scenario, {"since": cursor(scenario, n)})).source.since == StreamPosition("epoch", n)


async def test_resumed_subscription_keeps_its_key(scenario: TopicScenario) -> None:
    context, variables = await viewer_context(scenario), {"topic": scenario.topic.id}
    first = await start_shared(scenario)
    for since in ({}, {"since": cursor(scenario, 1)}, {"since": None}):
        resumed = await start(context, TOPIC_EVENTS, variables | since, resumed_after=cursor(scenario, 2))
        assert isinstance(resumed, SharedSubscription)
        assert (resumed.source.since, resumed.key) == (StreamPosition("epoch", 2), first.key)


async def test_position_literal_is_part_of_the_key(scenario: TopicScenario) -> None:
    query = TOPIC_EVENTS.replace("since: $since", f'since: "{cursor(scenario, 5)}"').replace("$since: Cursor, ", "")
    shared = await start_shared(scenario, query=query)
    assert shared.source.since == StreamPosition("epoch", 5)
    assert shared.key != (await start_shared(scenario)).key


async def test_only_viewer_dependent_keys_have_viewer_and_roles(scenario: TopicScenario) -> None:
    contexts = (
        None,
        await viewer_context(scenario, "bob"),
        await viewer_context(scenario, roles=frozenset({Role.ADMIN})),
    )
    plain_keys = {(await start_shared(scenario, query=TOPIC_EVENTS, context=each)).key for each in contexts}
    dependent_keys = {
        (await start_shared(scenario, query=VIEWER_DEPENDENT_EVENTS, context=each)).key for each in contexts
    }
    assert (len(plain_keys), len(dependent_keys)) == (1, 3)
    assert (await start_shared(scenario, query=VIEWER_DEPENDENT_EVENTS)).key in dependent_keys


async def test_subscriptions_of_different_topics_have_different_keys(scenario: TopicScenario) -> None:
    other = await create_topic_scenario(scenario.stores, scenario.organization_id)
    assert (await start_shared(scenario)).key != (await start_shared(other)).key


async def viewer_stream_events(info: Info) -> ChatEventSource:
    viewer = require_member(info)
    return ChatEventSource(info.context, viewer, user_stream(viewer.organization_id, viewer.id), None, "")


@strawberry.type
class ViewerStreamSubscription:
    viewer_stream_events: CommunityEvent = subscription(
        viewer_stream_events, "The events of the stream that belongs to the viewer."
    )


async def test_shared_keys_differ_for_streams_of_different_viewers(scenario: TopicScenario) -> None:
    config = StrawberryConfig(scalar_map=SCALARS)
    operations = Operations(strawberry.Schema(Query, subscription=ViewerStreamSubscription, config=config))
    query = "subscription { viewerStreamEvents { __typename } }"
    subscriptions = [
        await start(await viewer_context(scenario, name), query, operations=operations)
        for name in ("ann", "bob", "ann")
    ]
    ann, bob, ann_again = [each.key for each in subscriptions if isinstance(each, SharedSubscription)]
    assert ann == ann_again != bob


async def test_subscription_with_viewer_event_source_is_not_shared(scenario: TopicScenario) -> None:
    for query in ("homeFeedEvents", "notificationEvents", "jobEvents"):
        text = f"subscription {{ {query} {{ __typename }} }}"
        subscriptions = [await start(await viewer_context(scenario, name), text) for name in ("ann", "ann")]
        assert all(isinstance(each, ViewerSubscription) for each in subscriptions)
        assert subscriptions[0] != subscriptions[1]


@pytest.mark.parametrize(
    ("query", "variables", "user_id", "code"),
    [
        ("subscription {", {}, "ann", "GRAPHQL_PARSE_FAILED"),
        ("subscription { nope }", {}, "ann", "GRAPHQL_VALIDATION_FAILED"),
        (TOPIC_EVENTS.replace("(topicId: $topic, since: $since)", ""), {}, "ann", "GRAPHQL_VALIDATION_FAILED"),
        (TOPIC_EVENTS, {"topic": None}, "ann", "BAD_USER_INPUT"),
        (TOPIC_EVENTS, {"withText": "perhaps"}, "ann", "BAD_USER_INPUT"),
        (TOPIC_EVENTS, {"since": "nonsense"}, "ann", "BAD_USER_INPUT"),
        (TOPIC_EVENTS, {"since": 5}, "ann", "BAD_USER_INPUT"),
        (TOPIC_EVENTS, {"topic": "nowhere"}, "ann", "NOT_FOUND"),
        (TOPIC_EVENTS, {}, "eve", "FORBIDDEN"),
        (TOPIC_EVENTS, {}, None, "UNAUTHENTICATED"),
    ],
)
async def test_subscription_that_cannot_start_raises_its_errors(
    scenario: TopicScenario, query: str, variables: dict[str, Any], user_id: str | None, code: str
) -> None:
    with pytest.raises(OperationRefused) as error:
        await start_shared(scenario, variables, query, await viewer_context(scenario, user_id))
    assert {(to_client_error(each).extensions or {})["code"] for each in error.value.errors} == {code}


async def test_service_may_not_subscribe(scenario: TopicScenario) -> None:
    with pytest.raises(OperationRefused) as error:
        await start_shared(scenario, context=await viewer_context(scenario, roles=frozenset({Role.SERVICE})))
    assert (to_client_error(error.value.errors[0]).extensions or {})["code"] == "FORBIDDEN"


@pytest.mark.parametrize(
    "query", [TOPIC_EVENTS + "  ", f"# a comment\n{TOPIC_EVENTS}", TOPIC_EVENTS.replace(" ", "\n")]
)
async def test_key_ignores_spaces_and_comments(scenario: TopicScenario, query: str) -> None:
    assert (await start_shared(scenario, query=query)).key == (await start_shared(scenario)).key


async def test_key_ignores_undeclared_variables(scenario: TopicScenario) -> None:
    first = await start_shared(scenario, {"withText": True})
    assert (await start_shared(scenario, {"withText": True, "unused": 1})).key == first.key
