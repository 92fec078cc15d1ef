"""The lookup of objects by their ids alone, and ids with and without the name of their type."""

from dataclasses import replace

import pytest

from resolvers.nodes import MAX_NODES, NODE_TYPES
from schema.root import schema
from storage.ids import TYPES_IN_IDS
from tests.resolvers.organization_scenario import OrganizationScenario, create_organization
from tests.resolvers.people import ChatScenario, Person, SignIn
from tests.schema.fields import field_binding

pytestmark = pytest.mark.anyio

NODE = "query ($id: ID!) { done: node(id: $id) { __typename id } }"
NODES = "query ($ids: [ID!]!) { done: nodes(ids: $ids) { __typename id ... on Topic { title } } }"
OWN_IDS = """
query ($message: ID!, $upload: ID!, $post: ID!, $conversation: ID!) {
  message(id: $message) { thread { id topicId } }
  upload(id: $upload) { id fileId }
  post(id: $post) { fanOut { id } }
  conversation(id: $conversation) { id topic { id } }
  serviceKeys { id account { id } }
}
"""


@pytest.fixture(scope="module")
async def organization(shared_sign_in: SignIn) -> OrganizationScenario:
    return await create_organization(shared_sign_in, "gull")


@pytest.fixture(scope="module")
async def ids(organization: OrganizationScenario) -> dict[str, str]:
    """The id of an object of each type that implements Node. Ann may see all of them."""
    ann, ids = organization.superuser, organization.ids
    await organization.report_message()
    await organization.upload_file()
    await ann.post(ids["Topic"], "A reply", replyTo=ids["Message"])
    names = ("message", "upload", "post", "conversation")
    own = await ann.run(OWN_IDS, **{name: ids[name.title()] for name in names})
    return {
        **{name: ids[name] for name in NODE_TYPES if name not in TYPES_IN_IDS},
        "Thread": own["message"]["thread"]["id"],
        "Upload": own["upload"]["id"],
        "FanOut": own["post"]["fanOut"]["id"],
        "Conversation": own["conversation"]["id"],
        "ServiceKey": own["serviceKeys"][0]["id"],
    }


async def test_every_node_is_found_by_its_id(organization: OrganizationScenario, ids: dict[str, str]) -> None:
    assert ids.keys() == NODE_TYPES.keys()
    found = await organization.superuser.run(NODES, ids=list(ids.values()))
    assert [(each["__typename"], each["id"]) for each in found["done"]] == list(ids.items())
    for name, id_ in ids.items():
        assert await organization.superuser.do(NODE, id=id_) == {"__typename": name, "id": id_}


async def test_nodes_are_hidden_like_their_own_fields(organization: OrganizationScenario, ids: dict[str, str]) -> None:
    elk = await SignIn(organization.stores)(f"elk-of-{organization.mark}", organization.organization_id)
    codes = {name: await elk.code(NODE, id=id_) for name, id_ in ids.items()}
    visible = {name for name, code in codes.items() if code is None}
    assert visible == {"Community", "Topic", "Post", "User"}
    assert {code for code in codes.values() if code} == {"NOT_FOUND"}


async def test_service_key_finds_nodes_of_its_scopes(organization: OrganizationScenario, ids: dict[str, str]) -> None:
    key = replace(organization.superuser, scopes=frozenset({"chat:read", "calls:read"}))
    found = {name for name, id_ in ids.items() if await key.code(NODE, id=id_) is None}
    assert found == {"Community", "Topic", "Message", "Conversation", "Thread", "CallJob"}


def test_scopes_are_those_of_the_fields_that_find_one_object() -> None:
    query = schema._schema.query_type
    assert query is not None
    names = {name: f"{name[0].lower()}{name[1:]}" for name in NODE_TYPES}
    bound = {name: field_binding(query, field) for name, field in names.items() if field in query.fields}
    assert len(bound) >= 10
    assert {name: each.metadata["scope"] for name, each in bound.items()} == {
        name: NODE_TYPES[name].scope for name in bound
    }


async def test_nodes_are_in_order_with_an_error_for_each_missing_one(chat: ChatScenario) -> None:
    wanted = [chat.topic, "nobody", chat.community, f"Thread:{chat.topic}", chat.topic]
    answer = await chat.ann.execute(NODES, ids=wanted)
    assert [each and each["id"] for each in answer["data"]["done"]] == [
        chat.topic,
        None,
        chat.community,
        None,
        chat.topic,
    ]
    assert answer["data"]["done"][0]["title"] == "Tides"
    places = [(error["path"], error["extensions"]["code"]) for error in answer["errors"]]
    assert places == [(["done", 1], "NOT_FOUND"), (["done", 3], "NOT_FOUND")]


async def test_too_many_nodes_are_refused(chat: ChatScenario) -> None:
    refused = await chat.ann.fails(NODES, ids=[chat.topic] * (MAX_NODES + 1))
    assert refused == {"code": "BAD_USER_INPUT", "field": "ids", "expected": "at most 100 ids, not 101"}
    assert len(await chat.ann.do(NODES, ids=[chat.topic] * MAX_NODES)) == MAX_NODES


async def test_nodes_need_a_signed_in_viewer(chat: ChatScenario) -> None:
    nobody = Person(chat.ann.stores)
    assert await nobody.code(NODE, id=chat.topic) == "UNAUTHENTICATED"
    assert await nobody.code(NODES, ids=[chat.topic]) == "UNAUTHENTICATED"


BOTH_FORMS = """
query ($thread: ID!, $conversation: ID!, $upload: ID!, $key: ID!, $topics: [ID!]!) {
  messages(topicId: $thread, latest: "now") { items { text } }
  topic(id: $conversation) { id }
  conversation(id: $conversation) { topic { id } }
  upload(id: $upload) { fileId }
  auditLog(targetId: $key, limit: 1) { targetId }
  user(id: $key) { id }
  nodes(ids: $topics) { id }
}
"""


async def test_arguments_take_ids_with_and_without_their_type(
    organization: OrganizationScenario, ids: dict[str, str]
) -> None:
    names = {"thread": "Thread", "conversation": "Conversation", "upload": "Upload", "key": "ServiceKey"}
    with_type = {variable: ids[name] for variable, name in names.items()}
    without = {variable: id_.partition(":")[2] for variable, id_ in with_type.items()}
    answers = [
        await organization.superuser.run(BOTH_FORMS, **each, topics=[ids["Topic"]]) for each in (with_type, without)
    ]
    assert answers[0] == answers[1]
    assert {"text": "A reply"} in answers[0]["messages"]["items"]


async def test_long_list_of_ids_is_taken_with_types(organization: OrganizationScenario, ids: dict[str, str]) -> None:
    found = await organization.superuser.do(NODES, ids=[ids["FanOut"]] * 60)
    assert {(each["__typename"], each["id"]) for each in found} == {("FanOut", ids["FanOut"])}


async def test_literals_take_ids_with_types(organization: OrganizationScenario, ids: dict[str, str]) -> None:
    literal = f'{{ done: node(id: "{ids["Conversation"]}") {{ id }} }}'
    assert await organization.superuser.do(literal) == {"id": ids["Conversation"]}
    refused = await organization.superuser.fails("{ node(id: word) { id } }")
    assert (refused["code"], refused["field"]) == ("BAD_USER_INPUT", "id")
