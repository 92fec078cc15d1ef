"""No field of the schema shows or changes objects of another organization.

The operations are generated from the schema. A root field without generated arguments fails the tests, so that they
cover every field. All tests share two organizations. Their Anns have every role. Another test executes all mutations
with own ids and looks for data of other organizations in their answers: tests/resolvers/test_blocked_people.py.
"""

import json
from collections.abc import Iterator
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest
from graphql import GraphQLObjectType, GraphQLString, get_named_type

from schema.root import schema
from storage.stores import Stores
from tests.resolvers.operations import DEPTH, RootField, root_fields
from tests.resolvers.organization_scenario import OrganizationScenario, create_organization, unknown_ids
from tests.resolvers.people import REACT, Answer, Person, RunningSubscription, SignIn, until_outbox_is_empty
from tests.resolvers.private_community import HIDDEN, HIDDEN_EMOJI, create_hidden_community

pytestmark = pytest.mark.anyio

FIELDS = root_fields()
FIELDS_WITH_IDS = [field for field in FIELDS if field.id_types]
FIELDS_WITHOUT_OPTIONAL_IDS = [
    field.without_optional_ids() for field in FIELDS if field.without_optional_ids().text() != field.text()
]

READS = [field for field in FIELDS + FIELDS_WITHOUT_OPTIONAL_IDS if field.root != "Mutation"]
"""Every query and subscription with and without its optional ids."""

FILTERS = {("auditLog", "Actor"), ("auditLog", "User")}
"""Arguments that select list items by an id. An unknown id selects none."""

ROOTS = {field.root for field in FIELDS}

UNMARKED = {"Reaction.emoji", "ReceivedReaction.emoji", "Stamp.name", "Stamp.imageUrl"} | {
    "AddressStanding.address",
    "AddressStanding.normalized",
    "DomainStanding.domain",
    "BounceRate.domain",
    "BlockedAddress.domain",
    "BounceAlarm.domain",
    "AddressBounce.code",
    "AddressBounce.source",
    "MailPolicyChange.domain",
    "MailPolicyChange.address",
    "MailChange.domain",
    "RejectedDelivery.message",
    "BlockedAddresses.nextAfter",
    "MailPolicyDryRun.nextAfter",
}
"""Texts that cannot contain the mark, or that only repeat an argument."""

UNMARKED |= {"DataExport.downloadUrl", "PostReaction.emoji", "Stamp.thumbnailUrl", "Stamp.emoji"}
UNMARKED |= {"ScheduledPost.timeZone", "PublicationError.code", "PublicationAttempt.outcome"}
UNMARKED |= {"AccountAttention.code", "OutcomeCheck.profileUrl", "AccountConnection.url"}
UNMARKED |= {"AuditDetail.name", "InvitationLink.url", "ServiceKey.scopes", "IssuedServiceKey.secret"}
UNMARKED |= {"Webhook.eventTypes", "WebhookDelivery.eventType", "IssuedWebhook.secret"}
UNMARKED |= {"ContentReport.failure"}
UNMARKED |= {"Upload.url", "Upload.contentType", "User.avatarUrl", "User.bannerUrl"}
UNMARKED |= {"Community.pictureUrl", "Community.bannerUrl"}
UNMARKED |= {"Attachment.thumbnailUrl", "Attachment.contentType", "Attachment.blurhash"}
UNMARKED |= {"CallTask.phoneNumber", "CallTask.callId", "CallRowError.message", "TelephonyLine.callerNumber"}
UNMARKED |= {"CallRecording.url", "CallRecording.contentType"}
UNMARKED |= {"CallingWindow.start", "CallingWindow.end", "CallingWindow.timeZone"}
UNMARKED |= {"QuietHours.start", "QuietHours.end", "QuietHours.timeZone"}
UNMARKED |= {"PushDevice.userAgent", "Query.pushKey", "Notification.emoji"}


@pytest.fixture(scope="module")
async def canary(shared_sign_in: SignIn) -> OrganizationScenario:
    """The organization "canary", whose data must not be shown to the other organization."""
    return await create_organization(shared_sign_in, "canary")


@pytest.fixture(scope="module")
async def sparrow(shared_sign_in: SignIn) -> OrganizationScenario:
    """The organization "sparrow", whose Ann and Cat have the same ids as Ann and Cat of "canary"."""
    return await create_organization(shared_sign_in, "sparrow")


@pytest.fixture(scope="module")
async def hidden(sparrow: OrganizationScenario) -> dict[str, str]:
    """The ids of a private community of "sparrow", by type. Ann has left it, Dog is a member."""
    return await create_hidden_community(sparrow)


@pytest.fixture(scope="module")
async def anns_answers(
    canary: OrganizationScenario, sparrow: OrganizationScenario, hidden: dict[str, str]
) -> list[tuple[RootField, Answer]]:
    """Every read by Ann of "sparrow" with her own ids. Reads that search look for "canary", then for "hidden"."""
    return [
        (field, await execute_field(sparrow.ann, field, sparrow.ids, query=query))
        for field in READS
        for query in ((canary.mark, HIDDEN) if "query" in field.field.args else (canary.mark,))
    ]


async def execute_field(
    person: Person, field: RootField, ids: dict[str, str], depth: int = DEPTH, **values: object
) -> Answer:
    """Executes the field as the person. Returns the answer, or the first answer of a subscription."""
    text, variables = field.text(depth), field.variables(ids, **values)
    if field.root == "Subscription":
        async with aclosing(person.answers(text, **variables)) as answers:
            return await anext(answers)
    return await person.execute(text, **variables)


def assert_success(field: RootField, answer: Answer) -> None:
    """Asserts that the field has a value, and that no field of the answer failed."""
    assert answer["errors"] == [], field
    assert answer["data"][field.name] is not None, field


async def stored_data(stores: Stores) -> dict[str, str]:
    """Returns a hash of all documents of each collection."""
    hashes: dict[str, str] = (await stores.mongo.database.command("dbHash"))["collections"]
    return hashes


def test_generated_operations_cover_every_type_with_ids() -> None:
    differing = {id_type for field in FIELDS_WITH_IDS for id_type in field.id_types} ^ set(unknown_ids())
    assert not differing, f"unknown_ids() and the arguments of the schema differ by {sorted(differing)}."


async def test_ids_of_another_organization_look_like_unknown_ids(
    canary: OrganizationScenario, sparrow: OrganizationScenario
) -> None:
    await until_outbox_is_empty(sparrow.stores)
    before = await stored_data(sparrow.stores)
    for field in FIELDS_WITH_IDS:
        for id_type in field.id_types:
            existing, unknown = canary.ids, unknown_ids()
            answers = [
                await execute_field(sparrow.ann, field, {**sparrow.ids, id_type: ids[id_type]}, depth=1)
                for ids in (existing, unknown)
            ]
            texts = [
                json.dumps(answer).replace(ids[id_type], "?")
                for answer, ids in zip(answers, (existing, unknown), strict=True)
            ]
            assert texts[0] == texts[1], f"{field} shows whether a {id_type} exists in another organization."
            expected = [] if (field.name, id_type) in FILTERS else ["NOT_FOUND"]
            assert [error["extensions"]["code"] for error in answers[0]["errors"]] == expected, f"{field}({id_type})"
            shown = (answers[0]["data"] or {}).get(field.name)
            assert shown in (None, [], [None], False), f"{field} shows a {id_type} of another organization."
    assert await stored_data(sparrow.stores) == before


async def test_malformed_message_ids_are_not_found(canary: OrganizationScenario, sparrow: OrganizationScenario) -> None:
    topic, _, timestamp = canary.ids["Message"].rpartition("-")
    malformed_ids = [
        "",
        "-",
        "nonsense",
        topic,
        f"{topic}-",
        f"{topic}-x",
        f"{topic}-1",
        f"{sparrow.ids['Topic']}-{timestamp}",
    ]
    malformed_ids += [
        f"{sparrow.ids['Topic']}-{'9' * 30}",
        f"{topic}-{timestamp}-{timestamp}",
        f"{sparrow.ids['Topic']}-٣",
    ]
    for field in FIELDS_WITH_IDS:
        for id_ in malformed_ids if "Message" in field.id_types else ():
            answer = await execute_field(sparrow.ann, field, {**sparrow.ids, "Message": id_}, depth=1)
            assert [error["extensions"]["code"] for error in answer["errors"]] == ["NOT_FOUND"], f"{field}({id_})"


def test_object_fields_that_take_ids_are_known() -> None:
    """The other tests call root fields. Each other field that takes ids has a test of its own."""
    types = [type_ for name, type_ in schema._schema.type_map.items() if not name.startswith("__")]
    objects = [type_ for type_ in types if isinstance(type_, GraphQLObjectType) and type_.name not in ROOTS]
    fields = [RootField(type_.name, name, field) for type_ in objects for name, field in type_.fields.items()]
    assert [str(field) for field in fields if field.id_types] == ["Community.members"], (
        "Test the new field with ids of another organization, and list it here."
    )


async def test_members_after_user_of_other_organization_are_not_found(
    canary: OrganizationScenario, sparrow: OrganizationScenario
) -> None:
    query = "query ($id: ID!, $after: ID) { community(id: $id) { members(after: $after) { id } } }"
    answers = [
        await sparrow.ann.execute(query, id=sparrow.ids["Community"], after=after)
        for after in (canary.dog.id, "nobody-at-all")
    ]
    for answer in answers:
        (error,) = answer["errors"]
        assert error["extensions"] == {"code": "NOT_FOUND"}
        assert answer["data"] == {"community": None}


async def test_generated_reads_succeed_with_own_ids(anns_answers: list[tuple[RootField, Answer]]) -> None:
    for field, answer in anns_answers:
        if field in FIELDS_WITH_IDS:
            assert_success(field, answer)


async def test_no_read_of_ann_returns_data_of_another_organization(
    canary: OrganizationScenario, anns_answers: list[tuple[RootField, Answer]]
) -> None:
    """Ann and Cat of the two organizations have the same ids, so the ids alone must not give access."""
    for field, answer in anns_answers:
        assert marks_in(answer, canary.mark, *canary.ids.values()) == [], f"{field} shows another organization."


def typed_ids(data: Any) -> Iterator[tuple[str, str]]:
    """Yields the id and the type of each object that has an id."""
    if isinstance(data, list):
        for item in data:
            yield from typed_ids(item)
    elif isinstance(data, dict):
        if "id" in data:
            yield data["id"], data["__typename"]
        for value in data.values():
            yield from typed_ids(value)


async def test_ids_are_unique_across_types(anns_answers: list[tuple[RootField, Answer]]) -> None:
    types: dict[str, set[str]] = {}
    for _, answer in anns_answers:
        for id_, type_name in typed_ids(answer["data"]):
            types.setdefault(id_, set()).add(type_name)
    assert len({each for names in types.values() for each in names}) > 20
    # The made-up community of a conversation's topic has the id of the topic.
    made_up = {id_ for id_, names in types.items() if names == {"Community", "Topic"}}
    assert {id_: names for id_, names in types.items() if len(names) > 1 and id_ not in made_up} == {}
    assert made_up <= {id_.removeprefix("Conversation:") for id_, names in types.items() if names == {"Conversation"}}


@pytest.mark.parametrize("name", ["cat", "dog"])
async def test_no_read_returns_data_of_another_organization(
    canary: OrganizationScenario, sparrow: OrganizationScenario, name: str
) -> None:
    """Cat and Dog are ordinary members. Only Dog's id occurs in one organization alone."""
    for field in READS:
        answer = await execute_field(getattr(sparrow, name), field, sparrow.ids, query=canary.mark)
        assert marks_in(answer, canary.mark, *canary.ids.values()) == [], f"{field} shows another organization."


def marks_in(answer: Answer, *marks: str) -> list[str]:
    """Returns the marks that the answer contains."""
    text = json.dumps(answer, ensure_ascii=False)
    return [mark for mark in marks if mark in text]


MEMBERS_VIEW = """
query ($id: ID!, $query: String!) {
  topic(id: $id) { title community { name } }
  communities { name }
  trendingTopics { topic { title } people }
  searchTopics(query: $query, latest: "now") { items { topic { title } } }
  searchMessages(query: $query, latest: "now") { items { message { text } } }
}
"""

HIDDEN_TYPES = {"Community", "CommunityWithoutOwner", "Topic", "Message", "Subject", "ContentReport", "Node"}


async def test_ids_of_private_community_look_unknown_to_others(
    sparrow: OrganizationScenario, hidden: dict[str, str]
) -> None:
    unknown = unknown_ids()
    before = await stored_data(sparrow.stores)
    for field in FIELDS_WITH_IDS:
        for id_type in sorted(HIDDEN_TYPES.intersection(field.id_types)):
            answers = [
                await execute_field(sparrow.ann, field, {**sparrow.ids, id_type: ids[id_type]}, depth=1)
                for ids in (hidden, unknown)
            ]
            texts = [
                json.dumps(answer).replace(ids[id_type], "?")
                for answer, ids in zip(answers, (hidden, unknown), strict=True)
            ]
            assert texts[0] == texts[1], f"{field} shows whether a private {id_type} exists."
            assert '"NOT_FOUND"' in texts[0], f"{field}({id_type})"
    assert await stored_data(sparrow.stores) == before


async def test_no_read_shows_a_private_community_to_others(
    hidden: dict[str, str], anns_answers: list[tuple[RootField, Answer]]
) -> None:
    for field, answer in anns_answers:
        assert marks_in(answer, HIDDEN, HIDDEN_EMOJI, *hidden.values()) == [], f"{field} shows a private community."


async def test_members_see_a_private_community(sparrow: OrganizationScenario, hidden: dict[str, str]) -> None:
    seen = await sparrow.dog.run(MEMBERS_VIEW, id=hidden["Topic"], query=HIDDEN)
    assert {name: HIDDEN in json.dumps(value) for name, value in seen.items()} == dict.fromkeys(seen, True)


def strings_of_the_schema() -> set[str]:
    types = [type_ for name, type_ in schema._schema.type_map.items() if not name.startswith("__")]
    objects = [type_ for type_ in types if isinstance(type_, GraphQLObjectType)]
    texts = {
        f"{type_.name}.{name}"
        for type_ in objects
        for name, field in type_.fields.items()
        if get_named_type(field.type) is GraphQLString
    }
    return texts - UNMARKED


def marked_fields(data: Any, mark: str) -> Iterator[str]:
    """Yields the fields whose text contains the mark."""
    if isinstance(data, list):
        for item in data:
            yield from marked_fields(item, mark)
    elif isinstance(data, dict):
        for name, value in data.items():
            if any(isinstance(each, str) and mark in each for each in (value if isinstance(value, list) else [value])):
                yield f"{data.get('__typename')}.{name}"
            yield from marked_fields(value, mark)


async def test_every_returned_text_has_its_organizations_mark(canary: OrganizationScenario) -> None:
    await until_outbox_is_empty(canary.stores)
    answers = [
        await execute_field(canary.superuser, field, canary.ids, query=canary.mark)
        for field in FIELDS + FIELDS_WITHOUT_OPTIONAL_IDS
        if field.root == "Query"
    ]
    marked = {place for answer in answers for place in marked_fields(answer["data"], canary.mark)}
    assert strings_of_the_schema() - marked == set(), (
        "Add the mark to the texts of these fields in tests/resolvers/organization_scenario.py."
    )


# The next tests write, so they come after those that read.


async def test_former_member_receives_nothing_of_a_private_community(
    sparrow: OrganizationScenario, hidden: dict[str, str]
) -> None:
    count = "{ unreadNotificationCount }"
    for query in ("notificationEvents", "homeFeedEvents", "jobEvents"):
        before = await sparrow.ann.run(count)
        async with sparrow.ann.subscribed(f"subscription {{ {query} {{ __typename }} }}") as events:
            await sparrow.cat.post(hidden["Topic"], f"{HIDDEN} @{sparrow.mark}_ann")
            await sparrow.cat.run(REACT, id=hidden["AnnsMessage"], emoji="🦆")
            await until_outbox_is_empty(sparrow.stores)
            assert await sparrow.ann.run(count) == before
            await sparrow.cat.post(sparrow.ids["Topic"], f"@{sparrow.mark}_ann")
            await sparrow.create_post()
            await sparrow.stores.call_jobs.set_limits(sparrow.organization_id, 999, 100)
            first_event_types = {"notificationEvents": "NotificationArrived", "homeFeedEvents": "PostArrived"}
            assert (await events.next_event())["__typename"] == first_event_types.get(query, "FanOutChanged")


EVENT_TYPES = {
    "topicEvents": "Topic",
    "communityEvents": "Topic",
    "homeFeedEvents": "Job",
    "localEvents": "Job",
    "hashtagEvents": "Job",
    "notificationEvents": "Topic",
    "jobEvents": "Job",
    "contentReportEvents": "ContentReport",
    "conversationEvents": "Conversation",
    "typingEvents": "Partner",
}
"""The type whose id a subscription's event shows after `emit_on_every_stream`. Only ids that clients passed are in
`presenceEvents`; tests/resolvers/chat/test_presence.py checks which."""


async def test_no_event_of_another_organization_is_received(
    canary: OrganizationScenario, sparrow: OrganizationScenario
) -> None:
    await until_outbox_is_empty(sparrow.stores)
    async with AsyncExitStack() as stack:
        opened: dict[str, RunningSubscription] = {}
        for field in (each.without_optional_ids() for each in FIELDS if each.name in EVENT_TYPES):
            subscription = sparrow.ann.subscribed(field.text(), **field.variables(sparrow.ids))
            opened[field.name] = await stack.enter_async_context(subscription)
        await canary.emit_on_every_stream()
        await sparrow.emit_on_every_stream()
        for name, events in opened.items():
            text = json.dumps(await events.next_event())
            assert canary.mark not in text, name
            assert sparrow.ids[EVENT_TYPES[name]] in text, name
