"""A field's batch resolver gives each object the same value as the field's own resolver."""

import inspect
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from strawberry.types.base import StrawberryObjectDefinition
from strawberry.types.field import StrawberryField

from resolvers.context import Context
from schema.binding import resolver_for_many
from schema.root import schema
from storage.chat.communities import NewCommunity
from storage.chat.records import Topic
from storage.errors import NotFound
from storage.feed.changes import NewPost
from storage.stores import Stores
from tests.schema.viewers import LINK, NAMES, World, differing_viewers
from tests.storage.topic_scenario import TopicScenario

pytestmark = pytest.mark.anyio


def batch_resolved_fields() -> dict[str, StrawberryField]:
    """Returns every field with a batch resolver, as Type.field."""
    definitions = [each.definition for each in schema.schema_converter.type_map.values()]
    objects = [each for each in definitions if isinstance(each, StrawberryObjectDefinition)]
    fields = {f"{type_.name}.{field.python_name}": field for type_ in objects for field in type_.fields}
    return {place: field for place, field in fields.items() if resolver_for_many(field) is not None}


FIELDS = batch_resolved_fields()


async def records(world: World) -> dict[str, list[Any]]:
    """Returns objects of each type, some with all values and some with none."""
    last = await world.place.post("last", "cat")
    organization = world.place.organization_id
    posted = [
        await world.stores.posts.create(NewPost(organization, author, text, media, mentions, ()), None)
        for author, text, media, mentions in (
            ("dan", f"@cat {LINK}", (f"{LINK}a.png", f"{LINK}b.png"), ("cat",)),
            ("ann", "plain", (), ()),
        )
    ]
    deleted = await world.place.post("gone", "dan")
    tombstone = await world.stores.messages.delete(deleted.key, "dan", False)
    heads = [replace(world.place.topic, last_activity=each.timestamp) for each in (tombstone, last)]
    topics = [*heads, *await other_topics(world)]
    return {"Message": [world.first, world.second, last, tombstone], "Post": posted, "Topic": topics}


async def other_topics(world: World) -> list[Topic]:
    """Returns a topic without messages, and a topic of a community that only eve has joined."""
    stores, eve = world.stores, world.people["eve"]
    quiet = await stores.topics.create(world.place.community, "ann", "Quiet", None)
    elsewhere = await stores.communities.create(NewCommunity(eve.organization_id, "Elsewhere", ""), eve, None)
    far = TopicScenario(stores, elsewhere, await stores.topics.create(elsewhere, "eve", "Far", None))
    posted = await far.post("far", "dan")
    return [quiet, replace(far.topic, last_activity=posted.timestamp)]


async def one_by_one(field: StrawberryField, objects: Sequence[Any], context: Context) -> list[Any]:
    assert field.base_resolver is not None
    resolve: Any = field.base_resolver.wrapped_func
    takes_info = "info" in inspect.signature(resolve).parameters
    info = {"info": SimpleNamespace(context=context)} if takes_info else {}
    return [await resolve(each, **info) for each in objects]


async def all_at_once(field: StrawberryField, objects: Sequence[Any], context: Context) -> list[Any]:
    many = resolver_for_many(field)
    assert many is not None
    return list(await many(objects, SimpleNamespace(context=context)))


async def test_audience_gets_what_each_viewer_gets(stores: Stores) -> None:
    world = await differing_viewers(stores)
    objects = await records(world)
    assert {place.partition(".")[0] for place in FIELDS} == set(objects), "Add objects of each type to records()."
    for place, field in FIELDS.items():
        of_type = objects[place.partition(".")[0]]
        for name in NAMES:
            context = world.context(name)
            assert await all_at_once(field, of_type, context) == await one_by_one(field, of_type, context), place
            assert await all_at_once(field, [], context) == []


@pytest.mark.parametrize("place", ["Message.author", "Post.author"])
async def test_object_without_author_fails_for_audience(stores: Stores, place: str) -> None:
    world = await differing_viewers(stores)
    found = (await records(world))[place.partition(".")[0]]
    orphaned = [*found, replace(found[0], author_id="nobody")]
    for resolve in (one_by_one, all_at_once):
        with pytest.raises(NotFound):
            await resolve(FIELDS[place], orphaned, world.context("ann"))
