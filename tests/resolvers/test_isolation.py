"""Nothing of one organization is seen or changed from another one, by any field of the schema.

The walk is made from the schema: a root field that it can't call fails it, so it stays complete.
"""

import json
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest
from graphql import GraphQLObjectType, GraphQLString, get_named_type

from schema.root import schema
from storage.stores import Stores
from tests.resolvers.operations import RootField, root_fields
from tests.resolvers.organization_scenario import OrganizationScenario, create_organization, unknown_ids
from tests.resolvers.people import Answer, Person, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

FIELDS = root_fields()
WITH_IDS = [field for field in FIELDS if field.kinds]
BARE_FIELDS = [field.without_optional_ids() for field in FIELDS if field.without_optional_ids().text() != field.text()]

ROOTS = {field.root for field in FIELDS}

UNMARKED = {"Reaction.emoji", "ReceivedReaction.emoji", "Stamp.name", "Stamp.imageUrl"} | {
    "AddressStanding.address",
    "AddressStanding.normalized",
    "DomainStanding.domain",
    "BounceRate.domain",
    "RejectedDelivery.message",
}
"""Texts that can't hold a mark, or say only what was asked."""

UNMARKED |= {"ScheduledPost.timeZone", "PublicationError.code", "PublicationAttempt.outcome"}
UNMARKED |= {"CallTask.phoneNumber", "CallTask.callId", "CallRowError.message"}
UNMARKED |= {"CallingWindow.start", "CallingWindow.end", "CallingWindow.timeZone"}


@pytest.fixture
async def theirs(sign_in: SignIn) -> OrganizationScenario:
    """Organization A."""
    return await create_organization(sign_in, "canary")


@pytest.fixture
async def ours(sign_in: SignIn) -> OrganizationScenario:
    """Organization B, whose Ann and Cat have the ids that A's have."""
    return await create_organization(sign_in, "sparrow")


async def answer_to(person: Person, field: RootField, ids: dict[str, str], **values: object) -> Answer:
    """The answer; a subscription's first one."""
    variables = field.variables(ids, **values)
    if field.root == "Subscription":
        async with aclosing(person.answers(field.text(), **variables)) as answers:
            return await anext(answers)
    return await person.ask(field.text(), **variables)


async def ids_for(field: RootField, organization: OrganizationScenario) -> dict[str, str]:
    """Ids that the field can be called with, whatever was done before."""
    return await organization.renew(field.kinds) if field.root == "Mutation" else organization.ids


async def everything(stores: Stores) -> dict[str, list[str]]:
    """Every document of the database."""
    names = await stores.mongo.database.list_collection_names()
    return {name: sorted([repr(document) async for document in stores.mongo[name].find()]) for name in names}


def test_generated_operations_cover_every_type_with_ids() -> None:
    differing = {kind for field in WITH_IDS for kind in field.kinds} ^ set(unknown_ids())
    assert not differing, f"unknown_ids() and the arguments of the schema differ by {sorted(differing)}."


async def test_ids_of_another_organization_look_like_unknown_ids(
    theirs: OrganizationScenario, ours: OrganizationScenario
) -> None:
    await until_outbox_is_empty(ours.stores)
    before = await everything(ours.stores)
    for field in WITH_IDS:
        for kind in field.kinds:
            real, fake = theirs.ids, unknown_ids()
            answers = [await answer_to(ours.ann, field, {**ours.ids, kind: ids[kind]}) for ids in (real, fake)]
            shown = [
                json.dumps(answer).replace(ids[kind], "?") for answer, ids in zip(answers, (real, fake), strict=True)
            ]
            assert shown[0] == shown[1], f"{field} tells whether a {kind} exists elsewhere."
            assert [error["extensions"]["code"] for error in answers[0]["errors"]] == ["NOT_FOUND"], f"{field}({kind})"
            assert not (answers[0]["data"] or {}).get(field.name), f"{field} shows a {kind} of another organization."
    assert await everything(ours.stores) == before


async def test_malformed_message_ids_are_not_found(theirs: OrganizationScenario, ours: OrganizationScenario) -> None:
    topic, _, timestamp = theirs.ids["Message"].rpartition("-")
    shapes = ["", "-", "nonsense", topic, f"{topic}-", f"{topic}-x", f"{topic}-1", f"{ours.ids['Topic']}-{timestamp}"]
    shapes += [f"{ours.ids['Topic']}-{'9' * 30}", f"{topic}-{timestamp}-{timestamp}", f"{ours.ids['Topic']}-٣"]
    for field in WITH_IDS:
        for shape in shapes if "Message" in field.kinds else ():
            answer = await answer_to(ours.ann, field, {**ours.ids, "Message": shape})
            assert [error["extensions"]["code"] for error in answer["errors"]] == ["NOT_FOUND"], f"{field}({shape})"


def test_object_fields_that_take_ids_are_known() -> None:
    """The walk calls root fields. What else takes ids has a test of its own."""
    types = [type_ for name, type_ in schema._schema.type_map.items() if not name.startswith("__")]
    objects = [type_ for type_ in types if isinstance(type_, GraphQLObjectType) and type_.name not in ROOTS]
    fields = [RootField(type_.name, name, field) for type_ in objects for name, field in type_.fields.items()]
    assert [str(field) for field in fields if field.kinds] == ["Community.members"], (
        "Test the new field with ids of another organization, and list it here."
    )


async def test_members_after_a_user_of_another_organization(
    theirs: OrganizationScenario, ours: OrganizationScenario
) -> None:
    query = "query ($id: ID!, $after: ID) { community(id: $id) { members(after: $after) { id } } }"
    answers = [
        await ours.ann.ask(query, id=ours.ids["Community"], after=after) for after in (theirs.dog.id, "nobody-at-all")
    ]
    for answer in answers:
        (error,) = answer["errors"]
        assert error["extensions"] == {"code": "NOT_FOUND"}
        assert answer["data"] == {"community": None}


async def test_generated_operations_succeed_with_own_ids(theirs: OrganizationScenario) -> None:
    for field in WITH_IDS:
        answer = await answer_to(theirs.ann, field, await ids_for(field, theirs))
        assert answer["errors"] == [], field
        assert answer["data"][field.name] is not None


@pytest.mark.parametrize("name", ["ann", "cat", "dog", "superuser"])
async def test_no_field_returns_data_of_another_organization(
    theirs: OrganizationScenario, ours: OrganizationScenario, name: str
) -> None:
    """Ann and Cat of B have the ids of A's Ann and Cat: an id alone must lead nowhere."""
    asker = getattr(ours, name)
    foreign = [theirs.mark, *theirs.ids.values()]
    for field in FIELDS + BARE_FIELDS:
        answer = await answer_to(asker, field, await ids_for(field, ours), query=theirs.mark)
        shown = json.dumps(answer, ensure_ascii=False)
        assert [mark for mark in foreign if mark in shown] == [], f"{field} shows what is another organization's."


SHOWS = {
    "topicEvents": "Topic",
    "communityEvents": "Topic",
    "homeFeedEvents": "Job",
    "notificationEvents": "Topic",
    "jobEvents": "Job",
}
"""The id that the event of a subscription shows after `emit_everywhere`."""


async def test_no_event_of_another_organization_is_received(
    theirs: OrganizationScenario, ours: OrganizationScenario
) -> None:
    for field in (each for each in FIELDS if each.root == "Subscription"):
        await until_outbox_is_empty(ours.stores)
        async with ours.ann.subscribed(
            field.without_optional_ids().text(), **field.without_optional_ids().variables(ours.ids)
        ) as heard:
            await theirs.emit_everywhere()
            await ours.emit_everywhere()
            shown = json.dumps(await heard.event())
            assert theirs.mark not in shown
            assert ours.ids[SHOWS[field.name]] in shown


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


def marked(data: Any, mark: str) -> Iterator[str]:
    """The fields whose text has the mark."""
    if isinstance(data, list):
        for item in data:
            yield from marked(item, mark)
    elif isinstance(data, dict):
        for name, value in data.items():
            if any(isinstance(each, str) and mark in each for each in (value if isinstance(value, list) else [value])):
                yield f"{data.get('__typename')}.{name}"
            yield from marked(value, mark)


async def test_every_returned_text_has_its_organizations_mark(theirs: OrganizationScenario) -> None:
    await until_outbox_is_empty(theirs.stores)
    shown = [
        await answer_to(theirs.superuser, field, theirs.ids, query=theirs.mark)
        for field in FIELDS
        if field.root == "Query"
    ]
    found = {place for answer in shown for place in marked(answer["data"], theirs.mark)}
    assert strings_of_the_schema() - found == set(), (
        "Put the mark into these in tests/resolvers/organization_scenario.py."
    )
