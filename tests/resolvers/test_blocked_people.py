"""No field of the schema shows a blocked person, except the fields that docs/blocks.md lists.

The operations are generated from the schema, so that no new field is forgotten: a root field is called without being
listed, and the scenario must leave a mark in each field that can show what a person wrote or is. The test of
mutations also looks for data of another organization and of a private community.
"""

import json
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from graphql import GraphQLID, GraphQLObjectType, GraphQLString, get_named_type

from schema.root import schema
from tests.resolvers.blocked_author import (
    EMOJIS,
    MARK,
    BlockedAuthorScenario,
    create_blocked_author,
    marked_paths,
)
from tests.resolvers.chat.test_conversations import SECRET, create_hidden_conversation
from tests.resolvers.operations import DEPTH, RootField, root_fields
from tests.resolvers.organization_scenario import create_organization
from tests.resolvers.people import Answer, Person, RunningSubscription, SignIn
from tests.resolvers.private_community import HIDDEN, HIDDEN_EMOJI, create_hidden_community
from tests.resolvers.test_isolation import FIELDS_WITH_IDS, assert_success, execute_field, marks_in

pytestmark = pytest.mark.anyio

CONTENT = ("User", "Message", "Post")
"""Types by which people and what they write are shown."""

CONTENT_TYPES = (*CONTENT, "Attachment", "LinkPreview", "PostVersion", "Reaction", "PostReaction", "ReceivedReaction")
"""These types, and the types of their parts."""

UNREACHED = {
    **dict.fromkeys(("Query.viewer", "Query.blockedUsers", "Mute.user"), "the viewer, or people whom the viewer chose"),
    **dict.fromkeys(
        (
            "AuditEntry.actor",
            "AuditEntry.targetUser",
            "CommunityBan.bannedBy",
            "CommunityBan.user",
            "ContentReport.decidedBy",
            "Invitation.creator",
            "JoinRequest.user",
            "MailChange.by",
            "MailPolicy.setBy",
            "PrecedingMessage.author",
            "RetentionRule.setBy",
            "ServiceKey.account",
            "Webhook.account",
            "ServiceKey.createdBy",
            "StampPackOwnership.giver",
            "UserErasure.user",
        ),
        "lists of administrators and moderators, which show everybody (docs/blocks.md)",
    ),
    **dict.fromkeys(("HomeFeedTarget.author", "ScheduledPost.author"), "the author, and OPERATORs"),
}
"""Fields that lead to people but not to Bob, with the reason."""

UNMARKED = {"Attachment.blurhash", "Attachment.contentType", "Message.topicId", "User.handle", "User.organizationId"}
"""Texts that cannot contain a mark. Other people write Bob's handle, so it has none."""

VOLATILE = {
    *("CallJob.estimatedEndAt", "CallListCheck.estimatedEndAt", "TrendingTopic.messagesPerMinute"),
    *("Topic.lastActivity", "TopicTimeline.newest", "ConversationTimeline.newest"),
    *("TopicEdge.cursor", "ConversationEdge.cursor", "PageInfo.startCursor"),
}
"""Fields that change by themselves, or with any message of a topic (docs/blocks.md)."""

SHORT_LIVED = {"typingUsers", "onlineUserIds"}
"""Queries of what ends after seconds."""

LAST, LAST_PERSON = "harbour", "owl"
LAST_EVENTS = {
    "topicEvents": LAST,
    "communityEvents": LAST,
    "conversationEvents": LAST,
    "homeFeedEvents": LAST,
    "localEvents": LAST,
    "hashtagEvents": LAST,
    "notificationEvents": LAST,
    "contentReportEvents": LAST,
    "jobEvents": "998",
    "bounceRateEvents": "BounceRateChanged",
    "typingEvents": f'"{LAST_PERSON}"',
    "presenceEvents": f'"{LAST_PERSON}"',
}
"""A text that only the last event of each subscription contains."""

SILENT = {"bounceRateEvents", "jobEvents"}
"""Subscriptions without content of other people."""

PAGE = Path(__file__).parents[2] / "docs/blocks.md"
_ROW = re.compile(r"^\| (`\w+\.\w+`(?:, `\w+\.\w+`)*) \| .+ \|$", re.MULTILINE)

FieldPath = tuple[str, ...]
"""The fields of an answer from the root to a text, such as ("Query.message", "Message.author", "User.name")."""


def documented_exceptions() -> set[str]:
    """Returns the fields that show blocked people, from the tables of docs/blocks.md."""
    rows = _ROW.findall(PAGE.read_text(encoding="utf-8"))
    return {field for row in rows for field in re.findall(r"\w+\.\w+", row)}


EXCEPTIONS = documented_exceptions()


def leaks(paths: Iterable[FieldPath]) -> list[FieldPath]:
    """Returns the paths that no documented exception allows."""
    return sorted({path for path in paths if EXCEPTIONS.isdisjoint(path)})


def used_exceptions(paths: Iterable[FieldPath]) -> set[str]:
    """Returns the documented exceptions that the paths need."""
    return {step for path in paths for step in path if step in EXCEPTIONS}


def operations_of(*roots: str) -> list[RootField]:
    """Returns the fields of these root types, with and without their optional ids."""
    fields = [field for field in root_fields() if field.root in roots]
    shorter = {field.without_optional_ids().text(): field.without_optional_ids() for field in fields}
    return [*fields, *(field for text, field in shorter.items() if text not in {each.text() for each in fields})]


QUERIES, MUTATIONS = operations_of("Query"), operations_of("Mutation")
QUERIED_TYPES = {get_named_type(field.field.type) for field in QUERIES}


def depth_of(mutation: RootField) -> int:
    """Returns the depth to which an answer is asked for: one level less for types that a query returns in full."""
    return DEPTH - 1 if get_named_type(mutation.field.type) in QUERIED_TYPES else DEPTH


async def answers_of(viewer: Person, scenario: BlockedAuthorScenario) -> dict[str, Answer]:
    """Executes all queries: with ids of what others wrote, then with ids of what Bob wrote. Returns all answers."""
    answers: dict[str, Answer] = {}
    for ids in (scenario.ids, {**scenario.ids, **scenario.bobs_ids}):
        for field in QUERIES:
            key = f"{field.text()} {json.dumps(field.variables(ids, query=MARK))}"
            if key not in answers:
                if field.name in SHORT_LIVED:
                    await scenario.show_presence()
                answers[key] = await execute_field(viewer, field, ids, query=MARK)
    return answers


def paths_in(answers: Iterable[Answer], scenario: BlockedAuthorScenario, root: str = "Query") -> set[FieldPath]:
    """Returns the paths of all texts of the answers that contain a mark of Bob's."""
    return {path for answer in answers for path in marked_paths(root, answer, scenario.marks)}


async def block_bob(scenario: BlockedAuthorScenario) -> None:
    """Lets Ann block Bob, unless she blocks him."""
    ann, relations = scenario.ann, scenario.organization.stores.relations
    if scenario.bob.id not in await relations.blocked_users_of(scenario.organization.organization_id, ann.id):
        await ann.block(scenario.bob)


def content_fields() -> set[str]:
    """Returns the fields that lead to a person, a message or a post, except mutations and subscriptions."""
    return {
        f"{type_.name}.{name}"
        for type_ in object_types()
        for name, field in type_.fields.items()
        if get_named_type(field.type).name in CONTENT and type_.name != "Mutation" and not is_event(type_)
    }


def object_types() -> list[GraphQLObjectType]:
    types = schema._schema.type_map.items()
    return [type_ for name, type_ in types if isinstance(type_, GraphQLObjectType) and not name.startswith("__")]


def is_event(type_: GraphQLObjectType) -> bool:
    return "Event" in {each.name for each in type_.interfaces}


def texts_of(type_names: Iterable[str]) -> set[str]:
    """Returns the fields of these types that hold texts or ids."""
    return {
        f"{type_.name}.{name}"
        for type_ in object_types()
        for name, field in type_.fields.items()
        if type_.name in type_names and get_named_type(field.type) in (GraphQLString, GraphQLID)
    }


@pytest.fixture(scope="module")
async def scenario(shared_sign_in: SignIn) -> BlockedAuthorScenario:
    """Ann, Cat, and Bob, whom Ann blocks. Tests let Bob write more, with another emoji each."""
    scenario = await create_blocked_author(shared_sign_in)
    await block_bob(scenario)
    return scenario


async def test_no_query_shows_a_blocked_person(scenario: BlockedAuthorScenario) -> None:
    """Cat, who blocks nobody, sees Bob in every field that can show him. Ann sees him in the documented fields only.

    After that, nothing that Bob writes changes an answer to Ann.
    """
    shown = paths_in((await answers_of(scenario.cat, scenario)).values(), scenario)
    assert_scenario_is_complete(shown)

    before = await answers_of(scenario.ann, scenario)
    for answer in before.values():
        assert not [mark for mark in (MARK, *EMOJIS) if mark in json.dumps(answer["errors"], ensure_ascii=False)]
    shown_to_ann = paths_in(before.values(), scenario)
    assert leaks(shown_to_ann) == [], (
        "These fields show a blocked person. Hide the person, or list them in docs/blocks.md."
    )
    unused = {each for each in EXCEPTIONS if each.startswith("Query.")} - used_exceptions(shown_to_ann)
    assert not unused, f"docs/blocks.md lists queries that show no blocked person: {sorted(unused)}."

    await scenario.write_everywhere(EMOJIS[1])
    after = await answers_of(scenario.ann, scenario)
    changed = [key for key, answer in before.items() if without_volatile(answer) != without_volatile(after[key])]
    assert not changed, "What a blocked person wrote has changed these answers."


def assert_scenario_is_complete(shown: set[FieldPath]) -> None:
    """Asserts that Bob's marks reach every field that leads to content, and every text of the types found there."""
    steps = {step for path in shown for step in path}
    missing = content_fields() - steps - UNREACHED.keys()
    assert not missing, f"Let Bob leave a mark that these fields show: {sorted(missing)}."
    missing = texts_of(CONTENT_TYPES) - {path[-1] for path in shown} - UNMARKED
    assert not missing, f"Let Bob leave a mark in these texts: {sorted(missing)}."


def without_volatile(value: Any) -> Any:
    """Returns the answer without fields that change by themselves, or with any message of a topic."""
    if isinstance(value, list):
        return [without_volatile(each) for each in value]
    if not isinstance(value, dict):
        return value
    type_ = value.get("__typename")
    return {
        name: without_volatile(each)
        for name, each in value.items()
        if f"{type_}.{name}" not in VOLATILE and f"{type_}.{name}" not in EXCEPTIONS
    }


async def events_until_last(subscription: RunningSubscription, last: str) -> list[Answer]:
    """Returns the answers up to one that contains the text `last`."""
    answers = [await subscription.next_answer()]
    while last not in json.dumps(answers[-1]["data"]):
        answers.append(await subscription.next_answer())
    return answers


async def test_no_event_shows_a_blocked_person(scenario: BlockedAuthorScenario) -> None:
    await scenario.organization.stores.typing.end(scenario.ids["Topic"], scenario.bob.id)
    fields = [field.without_optional_ids() for field in root_fields() if field.root == "Subscription"]
    people = [scenario.bob.id, LAST_PERSON]
    async with AsyncExitStack() as stack:
        opened: list[tuple[RootField, str, RunningSubscription]] = []
        for field, viewer in product(fields, (scenario.ann, scenario.cat)):
            ids = {**scenario.ids, "Topic": scenario.ids["Topic"]}
            variables = field.variables(ids) | ({"userIds": people} if field.name == "presenceEvents" else {})
            subscription = await stack.enter_async_context(viewer.subscribed(field.text(), **variables))
            opened.append((field, viewer.id, subscription))
        await scenario.write_everywhere(EMOJIS[2])
        await scenario.report_and_name_topic()
        await scenario.end_every_stream(LAST, LAST_PERSON)
        for field, viewer_id, subscription in opened:
            answers = await events_until_last(subscription, LAST_EVENTS[field.name])
            shown = paths_in(answers, scenario, "Subscription")
            if viewer_id == scenario.ann.id:
                assert leaks(shown) == [], f"{field} shows a blocked person."
            else:
                assert bool(shown) == (field.name not in SILENT), f"{field} shows {shown} to a viewer without a block."


# This test comes last, because mutations change what the others read.


async def test_mutations_show_own_and_unblocked_data_only(
    scenario: BlockedAuthorScenario, shared_sign_in: SignIn
) -> None:
    """Ann and Cat execute all mutations. Ann, who has every role, succeeds.

    Nobody sees another organization, although its Ann and Cat have the same ids. Ann sees neither Bob, whom she
    blocked, nor a private community, nor a conversation without her.
    """
    foreign = await create_organization(shared_sign_in, "sparrow")
    hidden = await create_hidden_community(scenario.organization)
    conversation = await create_hidden_conversation(scenario.organization)
    invisible_to_ann = [HIDDEN, HIDDEN_EMOJI, SECRET, *hidden.values(), *conversation.values()]
    shown: set[FieldPath] = set()
    answers: dict[str, Answer] = {}
    async for field, answer in answers_of_anns_mutations(scenario):
        assert marks_in(answer, foreign.mark, *foreign.ids.values()) == [], f"{field} shows another organization."
        assert marks_in(answer, *invisible_to_ann) == [], f"{field} shows a private community or a conversation."
        shown |= paths_in([answer], scenario, "Mutation")
        answers[field.text()] = answer
    for field in FIELDS_WITH_IDS:
        if field.root == "Mutation":
            assert_success(field, answers[field.text()])
    async for field, answer in answers_of_cats_mutations(scenario):
        assert marks_in(answer, foreign.mark, *foreign.ids.values()) == [], f"{field} shows another organization."
    shown |= await paths_in_mutations_of_bobs(scenario)
    assert leaks(shown) == [], "These fields show a blocked person. Hide the person, or list them in docs/blocks.md."
    unused = {each for each in EXCEPTIONS if each.startswith("Mutation.")} - used_exceptions(shown)
    assert not unused, f"docs/blocks.md lists mutations that show no blocked person: {sorted(unused)}."


async def answers_of_anns_mutations(scenario: BlockedAuthorScenario) -> AsyncIterator[tuple[RootField, Answer]]:
    """Executes each mutation as Ann on objects in which Bob has left marks. Yields the answers.

    Objects are new at first, after a mutation that ends something, and for a second attempt at one that failed.
    """
    unused: set[str] = set()
    for field in MUTATIONS:
        types = set(field.id_types)
        ids = await scenario.renew(types - unused)
        answer = await execute_field(scenario.ann, field, ids, depth_of(field))
        if answer["errors"]:
            yield field, answer
            answer = await execute_field(scenario.ann, field, await scenario.renew(types), depth_of(field))
        unused = unused - types if field.is_ending else unused | types
        yield field, answer


async def answers_of_cats_mutations(scenario: BlockedAuthorScenario) -> AsyncIterator[tuple[RootField, Answer]]:
    """Executes each mutation as Cat, who is an ordinary member. Yields the answers."""
    unused: set[str] = set()
    for field in MUTATIONS:
        ids = await scenario.organization.renew(set(field.id_types) - unused)
        answer = await execute_field(scenario.organization.cat, field, ids, depth_of(field))
        # Only a mutation that succeeds uses objects up, also those of other types.
        unused = unused | set(field.id_types) if answer["errors"] else set()
        yield field, answer


async def paths_in_mutations_of_bobs(scenario: BlockedAuthorScenario) -> set[FieldPath]:
    """Executes each mutation as Ann on what Bob wrote. Returns the paths of the answers that contain his marks."""
    await block_bob(scenario)
    shown: set[FieldPath] = set()
    of_bobs = [field for field in MUTATIONS if scenario.bobs_ids.keys() & set(field.id_types)]
    for field in sorted(of_bobs, key=lambda field: field.name.startswith(("delete", "leave", "archive"))):
        answer = await execute_field(scenario.ann, field, {**scenario.ids, **scenario.bobs_ids}, depth_of(field))
        shown |= paths_in([answer], scenario, "Mutation")
        await block_bob(scenario)
    return shown
