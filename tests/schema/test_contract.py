"""The schema has all definitions of the public contract, unchanged."""

import pytest
from graphql import ObjectTypeDefinitionNode

from schema.root import schema
from tests.schema.contract import AREAS, CONTRACT, EVERYWHERE, ROOTS, SchemaContract, violations

REQUIRED_AREAS = ("identity", "chat", "feed", "publishing", "calls", "mail")
"""The areas of the contract that the schema must fulfil. Areas are never removed."""

CONTRACT_TEXT = CONTRACT.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def contract() -> SchemaContract:
    return SchemaContract(CONTRACT_TEXT)


@pytest.fixture(scope="module")
def sdl() -> str:
    return schema.as_str()


def test_schema_fulfils_the_contract(contract: SchemaContract, sdl: str) -> None:
    differences = violations(sdl, contract, REQUIRED_AREAS)
    assert not differences, (
        f"Clients rely on tests/contract.graphql. Add what you need, and keep: {'; '.join(differences)}."
    )


def test_contract_definitions_all_belong_to_an_area(contract: SchemaContract) -> None:
    areas = {name: contract.area(node) for name, node in contract.types.items() if name not in ROOTS}
    for root in ROOTS:
        node = contract.types[root]
        assert isinstance(node, ObjectTypeDefinitionNode)
        areas |= {f"{root}.{field.name.value}": contract.field_area(node, field) for field in node.fields or ()}
    assert {name for name, area in areas.items() if area not in (*AREAS, EVERYWHERE)} == set()
    assert set(areas.values()) == {*AREAS, EVERYWHERE}


@pytest.mark.parametrize(
    ("name", "area"),
    [
        ("Timestamp", EVERYWHERE),
        ("Timeline", EVERYWHERE),
        ("StreamReady", EVERYWHERE),
        ("User", "identity"),
        ("Role", "identity"),
        ("TopicTimeline", "chat"),
        ("PostMessageInput", "chat"),
        ("TopicActivity", "chat"),
        ("Post", "feed"),
        ("Network", "publishing"),
        ("CallReportEvent", "calls"),
        ("DeliveryEventKind", "mail"),
    ],
)
def test_definition_area_follows_its_section(contract: SchemaContract, name: str, area: str) -> None:
    assert contract.area(contract.types[name]) == area


@pytest.mark.parametrize(
    ("field", "area"),
    [
        ("Query.viewer", "identity"),
        ("Query.blockedUsers", "identity"),
        ("Query.communities", "chat"),
        ("Query.reactionsReceived", "chat"),
        ("Query.homeFeed", "feed"),
        ("Query.bounceRates", "mail"),
        ("Mutation.createCommunity", "chat"),
        ("Mutation.unblockUser", "chat"),
        ("Mutation.follow", "feed"),
        ("Subscription.communityEvents", "chat"),
        ("Subscription.jobEvents", "feed"),
    ],
)
def test_root_field_area_follows_comment_above(contract: SchemaContract, field: str, area: str) -> None:
    root, _, name = field.partition(".")
    node = contract.types[root]
    assert isinstance(node, ObjectTypeDefinitionNode)
    (field_node,) = [each for each in node.fields or () if each.name.value == name]
    assert contract.field_area(node, field_node) == area


@pytest.mark.parametrize(
    ("old", "new", "violation"),
    [
        ("handle: String!", "", "User.handle is missing"),
        ("unreadCount: Int!", "unreadCount: Int", "Topic.unreadCount: Int instead of Int!"),
        ("lastMessage: Message", "lastMessage: Message!", "Topic.lastMessage: Message! instead of Message"),
        ("users(limit: Int! = 10)", "users", "Reaction.users(limit) is missing"),
        (
            "topics(limit: Int! = 20)",
            "topics(limit: Int! = 10)",
            "Community.topics: limit: Int! = 10 instead of limit: Int! = 20",
        ),
        ('text: String! = ""', "text: String!", 'PostMessageInput: text: String! instead of text: String! = ""'),
        ("users(query: String!,", "users(query: String,", "Query.users: query: String instead of query: String!"),
        ("stampId: ID idempo", "stampId: ID! idempo", "PostMessageInput: stampId: ID! instead of stampId: ID"),
        ("input CreateTopicInput {", "input CreateTopicInput { colour: String!", "(colour) is required"),
        ("joinCommunity(", "joinCommunity(how: String!, ", "Mutation.joinCommunity(how) is required"),
        ("OPERATOR SERVICE ADMIN", "OPERATOR ADMIN", "Role: value SERVICE is missing"),
        ("| TopicActivity", "", "CommunityEvent: member TopicActivity is missing"),
        ("TopicTimeline implements Timeline", "TopicTimeline", "TopicTimeline: interface Timeline is missing"),
        ("scalar Cursor", "scalar Position", "Cursor: nothing instead of scalar"),
        ("scalar Cursor", "enum Cursor { A }", "Cursor: enum instead of scalar"),
        ("communityEvents(", "villageEvents(", "Subscription.communityEvents is missing"),
    ],
)
def test_contract_comparison_detects_violations(contract: SchemaContract, old: str, new: str, violation: str) -> None:
    broken = CONTRACT_TEXT.replace(old, new)
    assert broken != CONTRACT_TEXT
    assert any(violation in line for line in violations(broken, contract, REQUIRED_AREAS))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("handle: String!", "handle: String! nickname: String"),
        ("users(limit: Int! = 10)", 'users(limit: Int! = 10, named: String, order: String! = "")'),
        ("OPERATOR SERVICE ADMIN", "OPERATOR SERVICE ADMIN GUEST"),
        ("input CreateTopicInput {", "input CreateTopicInput { colour: String"),
    ],
)
def test_contract_comparison_allows_additions(contract: SchemaContract, old: str, new: str) -> None:
    extended = CONTRACT_TEXT.replace(old, new)
    assert extended != CONTRACT_TEXT
    assert violations(extended, contract, REQUIRED_AREAS) == []
