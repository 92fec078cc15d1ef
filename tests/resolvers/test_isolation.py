"""No field of the schema shows or changes objects of another organization.

The operations are generated from the schema. A root field without generated arguments fails the tests, so that they
cover every field.
"""

import json
from collections.abc import Iterator
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest
from graphql import GraphQLObjectType, GraphQLString, get_named_type

from schema.root import schema
from storage.feed.content_reports.store import ReportFilter
from storage.identity.accounts.invitations import NewInvitation
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.audit import Actor
from storage.identity.roles import Role
from storage.stores import Stores
from tests.resolvers.operations import RootField, root_fields
from tests.resolvers.organization_scenario import REPORT, OrganizationScenario, create_organization, unknown_ids
from tests.resolvers.people import REACT, Answer, Person, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

FIELDS = root_fields()
FIELDS_WITH_IDS = [field for field in FIELDS if field.id_types]
FIELDS_WITHOUT_OPTIONAL_IDS = [
    field.without_optional_ids() for field in FIELDS if field.without_optional_ids().text() != field.text()
]

READS_FIRST = sorted(FIELDS + FIELDS_WITHOUT_OPTIONAL_IDS, key=lambda field: field.root == "Mutation")
"""Every field with and without its optional ids. Mutations come last, because they use up objects that fields read."""

FILTERS = {("auditLog", "Actor"), ("auditLog", "User")}
"""Arguments that select list items by an id. An unknown id selects none."""

ROOTS = {field.root for field in FIELDS}

UNMARKED = {"Reaction.emoji", "ReceivedReaction.emoji", "Stamp.name", "Stamp.imageUrl"} | {
    "AddressStanding.address",
    "AddressStanding.normalized",
    "DomainStanding.domain",
    "BounceRate.domain",
    "RejectedDelivery.message",
}
"""Texts that cannot contain the mark, or that only repeat an argument."""

UNMARKED |= {"DataExport.downloadUrl", "PostReaction.emoji", "Stamp.thumbnailUrl", "Stamp.emoji"}
UNMARKED |= {"ScheduledPost.timeZone", "PublicationError.code", "PublicationAttempt.outcome"}
UNMARKED |= {"AuditDetail.name", "InvitationLink.url", "ServiceKey.scopes", "IssuedServiceKey.secret"}
UNMARKED |= {"ContentReport.failure"}
UNMARKED |= {"Upload.url", "Upload.contentType", "User.avatarUrl"}
UNMARKED |= {"Attachment.thumbnailUrl", "Attachment.contentType", "Attachment.blurhash"}
UNMARKED |= {"CallTask.phoneNumber", "CallTask.callId", "CallRowError.message", "TelephonyLine.callerNumber"}
UNMARKED |= {"CallingWindow.start", "CallingWindow.end", "CallingWindow.timeZone"}
UNMARKED |= {"QuietHours.start", "QuietHours.end", "QuietHours.timeZone"}
UNMARKED |= {"PushDevice.userAgent", "Query.pushKey", "Notification.emoji"}


@pytest.fixture
async def canary(sign_in: SignIn) -> OrganizationScenario:
    """The organization "canary", whose data must not be shown to the other organization."""
    return await create_organization(sign_in, "canary")


@pytest.fixture
async def sparrow(sign_in: SignIn) -> OrganizationScenario:
    """The organization "sparrow", whose Ann and Cat have the same ids as Ann and Cat of "canary"."""
    return await create_organization(sign_in, "sparrow")


async def execute_field(person: Person, field: RootField, ids: dict[str, str], **values: object) -> Answer:
    """Executes the field as the person. Returns the answer, or the first answer of a subscription."""
    variables = field.variables(ids, **values)
    if field.root == "Subscription":
        async with aclosing(person.answers(field.text(), **variables)) as answers:
            return await anext(answers)
    return await person.execute(field.text(), **variables)


async def ids_for(field: RootField, organization: OrganizationScenario) -> dict[str, str]:
    """Returns ids with which the field succeeds. Creates new objects for mutations."""
    return await organization.renew(field.id_types) if field.root == "Mutation" else organization.ids


async def all_documents(stores: Stores) -> dict[str, list[str]]:
    """Returns every document of the database, by collection."""
    names = await stores.mongo.database.list_collection_names()
    return {name: sorted([repr(document) async for document in stores.mongo[name].find()]) for name in names}


def test_generated_operations_cover_every_type_with_ids() -> None:
    differing = {id_type for field in FIELDS_WITH_IDS for id_type in field.id_types} ^ set(unknown_ids())
    assert not differing, f"unknown_ids() and the arguments of the schema differ by {sorted(differing)}."


async def test_ids_of_another_organization_look_like_unknown_ids(
    canary: OrganizationScenario, sparrow: OrganizationScenario
) -> None:
    await until_outbox_is_empty(sparrow.stores)
    before = await all_documents(sparrow.stores)
    for field in FIELDS_WITH_IDS:
        for id_type in field.id_types:
            existing, unknown = canary.ids, unknown_ids()
            answers = [
                await execute_field(sparrow.ann, field, {**sparrow.ids, id_type: ids[id_type]})
                for ids in (existing, unknown)
            ]
            texts = [
                json.dumps(answer).replace(ids[id_type], "?")
                for answer, ids in zip(answers, (existing, unknown), strict=True)
            ]
            assert texts[0] == texts[1], f"{field} shows whether a {id_type} exists in another organization."
            expected = [] if (field.name, id_type) in FILTERS else ["NOT_FOUND"]
            assert [error["extensions"]["code"] for error in answers[0]["errors"]] == expected, f"{field}({id_type})"
            assert not (answers[0]["data"] or {}).get(field.name), f"{field} shows a {id_type} of another organization."
    assert await all_documents(sparrow.stores) == before


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
            answer = await execute_field(sparrow.ann, field, {**sparrow.ids, "Message": id_})
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


async def test_generated_operations_succeed_with_own_ids(canary: OrganizationScenario) -> None:
    for field in FIELDS_WITH_IDS:
        answer = await execute_field(canary.ann, field, await ids_for(field, canary))
        assert answer["errors"] == [], field
        assert answer["data"][field.name] is not None


@pytest.mark.parametrize("name", ["ann", "cat", "dog", "superuser"])
async def test_no_field_returns_data_of_another_organization(
    canary: OrganizationScenario, sparrow: OrganizationScenario, name: str
) -> None:
    """Ann and Cat of the two organizations have the same ids, so the ids alone must not give access."""
    viewer = getattr(sparrow, name)
    canary_texts = [canary.mark, *canary.ids.values()]
    for field in READS_FIRST:
        answer = await execute_field(viewer, field, await ids_for(field, sparrow), query=canary.mark)
        text = json.dumps(answer, ensure_ascii=False)
        assert [mark for mark in canary_texts if mark in text] == [], f"{field} shows data of another organization."


SCHEDULE = """
mutation ($topic: ID!) {
  schedulePost(input: { text: "Words", toTopicIds: [$topic], dueAt: "2031-01-01T00:00:00Z", timeZone: "UTC" }) { id }
}
"""

HIDDEN = "lagoon"
"""The mark of a private community, in each of its texts."""

HIDDEN_EMOJI = "🦩"

MEMBERS_VIEW = """
query ($id: ID!, $query: String!) {
  topic(id: $id) { title community { name } }
  communities { name }
  trendingTopics { topic { title } people }
  searchTopics(query: $query, latest: "now") { items { topic { title } } }
  searchMessages(query: $query, latest: "now") { items { message { text } } }
}
"""

HIDDEN_TYPES = {"Community", "CommunityWithoutOwner", "Topic", "Message", "Subject", "ContentReport"}


async def create_hidden_community(organization: OrganizationScenario) -> dict[str, str]:
    """Creates a private community of Cat with Dog. Ann has left it. Returns ids of its objects by type."""
    cat, ann, mark = organization.cat, organization.ann, organization.mark
    community = await cat.create_community(f"{HIDDEN} hut", description=HIDDEN, visibility="PRIVATE")
    add = "mutation ($c: ID!, $u: ID!) { addMember(communityId: $c, userId: $u) { role } }"
    for person in (ann, organization.dog):
        await cat.run(add, c=community, u=person.id)
    topic = await cat.create_topic(community, f"{HIDDEN} nook")
    await _invite_to_hidden(organization, community)
    by_ann = await ann.post(topic, f"{HIDDEN} by ann")
    await cat.post(topic, f"{HIDDEN} @{mark}_ann before")
    await cat.run(REACT, id=by_ann["id"], emoji=HIDDEN_EMOJI)
    await ann.run(SCHEDULE, topic=topic)
    reply = await cat.post(topic, f"{HIDDEN} reply", replyTo=by_ann["id"])
    await until_outbox_is_empty(organization.stores)
    await ann.leave(community)
    message = await cat.post(topic, f"{HIDDEN} @{mark}_ann @{mark}_dog https://{HIDDEN}.example/")
    await organization.dog.run(REPORT, id=by_ann["id"], text=HIDDEN)
    reports = await organization.stores.content_reports.list_reports(
        organization.organization_id, ReportFilter(community), None, 1
    )
    await organization.dog.post(topic, f"{HIDDEN} again @{mark}_ann")
    await _moderate_hidden(organization, community, topic, message["id"])
    await until_outbox_is_empty(organization.stores)
    ids = {
        "Community": community,
        "CommunityWithoutOwner": community,
        "Topic": topic,
        "ContentReport": reports[0].id,
        "AnnsMessage": by_ann["id"],
    }
    ids["Thread"] = reply["topicId"]
    return {**ids, "Message": message["id"], "Subject": message["id"]}


async def _moderate_hidden(organization: OrganizationScenario, community: str, topic: str, message: str) -> None:
    """Leaves entries of the audit log about the community, its topic, a message, a person, a ban and a report."""
    for act in (
        "muteMember(communityId: $c, userId: $u, until: $at) { role }",
        'banMember(communityId: $c, userId: "yak", reason: $words) { bannedAt }',
        "updateCommunity(id: $c, description: $words) { id }",
        "archiveTopic(topicId: $t) { id }",
        "unarchiveTopic(topicId: $t) { id }",
        "pinMessage(messageId: $m) { id }",
        "unmuteMember(communityId: $c, userId: $u) { id }",
    ):
        types = {"c": "ID!", "u": "ID!", "t": "ID!", "m": "ID!", "words": "String!", "at": "DateTime!"}
        used = {name: type_ for name, type_ in types.items() if f"${name}" in act}
        values = {"c": community, "u": organization.dog.id, "t": topic, "m": message}
        values |= {"words": f"{HIDDEN} words", "at": "2031-01-01T00:00:00Z"}
        declared = ", ".join(f"${name}: {type_}" for name, type_ in used.items())
        await organization.cat.run(f"mutation ({declared}) {{ {act} }}", **{name: values[name] for name in used})


async def _invite_to_hidden(organization: OrganizationScenario, community: str) -> None:
    new = NewInvitation(Role.MEMBER, community, None, 1, timedelta(days=1), MailLanguage.EN)
    actor = Actor(organization.organization_id, organization.cat.id, is_command_line=True)
    await organization.stores.invitations.create(actor, new, None)


@pytest.mark.parametrize("name", ["ann", "superuser"])
async def test_ids_of_private_community_look_unknown_to_others(canary: OrganizationScenario, name: str) -> None:
    hidden, unknown, viewer = await create_hidden_community(canary), unknown_ids(), getattr(canary, name)
    before = await all_documents(canary.stores)
    for field in FIELDS_WITH_IDS:
        for id_type in sorted(HIDDEN_TYPES.intersection(field.id_types)):
            answers = [
                json.dumps(await execute_field(viewer, field, {**canary.ids, id_type: ids[id_type]})).replace(
                    ids[id_type], "?"
                )
                for ids in (hidden, unknown)
            ]
            assert answers[0] == answers[1], f"{field} shows whether a private {id_type} exists."
            assert '"NOT_FOUND"' in answers[0], f"{field}({id_type})"
    assert await all_documents(canary.stores) == before


@pytest.mark.parametrize("name", ["ann", "superuser"])
async def test_no_field_shows_a_private_community_to_others(canary: OrganizationScenario, name: str) -> None:
    hidden, viewer = await create_hidden_community(canary), getattr(canary, name)
    for field in READS_FIRST:
        answer = await execute_field(viewer, field, await ids_for(field, canary), query=HIDDEN)
        text = json.dumps(answer, ensure_ascii=False)
        forbidden = [HIDDEN, HIDDEN_EMOJI, *hidden.values()]
        assert [mark for mark in forbidden if mark in text] == [], f"{field} shows a private community."


async def test_members_see_a_private_community(canary: OrganizationScenario) -> None:
    hidden = await create_hidden_community(canary)
    seen = await canary.dog.run(MEMBERS_VIEW, id=hidden["Topic"], query=HIDDEN)
    assert {name: HIDDEN in json.dumps(value) for name, value in seen.items()} == dict.fromkeys(seen, True)


async def test_former_member_receives_nothing_of_a_private_community(canary: OrganizationScenario) -> None:
    count = "{ unreadNotificationCount }"
    hidden = await create_hidden_community(canary)
    for query in ("notificationEvents", "homeFeedEvents", "jobEvents"):
        before = await canary.ann.run(count)
        async with canary.ann.subscribed(f"subscription {{ {query} {{ __typename }} }}") as events:
            await canary.cat.post(hidden["Topic"], f"{HIDDEN} @{canary.mark}_ann")
            await canary.cat.run(REACT, id=hidden["AnnsMessage"], emoji="🦆")
            await until_outbox_is_empty(canary.stores)
            assert await canary.ann.run(count) == before
            await canary.cat.post(canary.ids["Topic"], f"@{canary.mark}_ann")
            await canary.create_post()
            await canary.stores.call_jobs.set_limits(canary.organization_id, 999, 100)
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
    for field in (each for each in FIELDS if each.name in EVENT_TYPES):
        await until_outbox_is_empty(sparrow.stores)
        async with sparrow.ann.subscribed(
            field.without_optional_ids().text(), **field.without_optional_ids().variables(sparrow.ids)
        ) as events:
            await canary.emit_on_every_stream()
            await sparrow.emit_on_every_stream()
            text = json.dumps(await events.next_event())
            assert canary.mark not in text
            assert sparrow.ids[EVENT_TYPES[field.name]] in text


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
        for field in FIELDS
        if field.root == "Query"
    ]
    marked = {place for answer in answers for place in marked_fields(answer["data"], canary.mark)}
    assert strings_of_the_schema() - marked == set(), (
        "Add the mark to the texts of these fields in tests/resolvers/organization_scenario.py."
    )
