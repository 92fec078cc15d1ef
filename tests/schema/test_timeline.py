"""The lists that can be paged as Relay's connections."""

from graphql import GraphQLField, GraphQLObjectType, get_named_type, get_nullable_type

from schema.root import schema
from schema.timeline import CONNECTION_ARGUMENTS

TYPES = [each for each in schema._schema.type_map.values() if isinstance(each, GraphQLObjectType)]
SEARCHES = {"searchMessages", "searchTopics", "searchPosts"}
"""Timelines whose pages may end early, so that their bounds do not come from the items alone."""


def timelines() -> dict[str, GraphQLField]:
    """Returns the fields that return a page for bounds, by name."""
    return {
        f"{type_.name}.{name}": field
        for type_ in TYPES
        for name, field in type_.fields.items()
        if {"oldest", "latest"} <= field.args.keys()
    }


def test_all_timelines_but_searches_are_connections() -> None:
    expected = {name for name in timelines() if name.partition(".")[2] not in SEARCHES}
    assert len(expected) >= 14
    assert {name for name, field in timelines().items() if CONNECTION_ARGUMENTS.keys() <= field.args.keys()} == expected


def test_connections_have_the_fields_that_relay_requires() -> None:
    """Relay's compiler requires these fields and their kinds of types of every field with @connection."""
    for name, field in timelines().items():
        if "first" not in field.args:
            continue
        page = get_named_type(field.type)
        assert isinstance(page, GraphQLObjectType)
        edge = get_named_type(page.fields["edges"].type)
        assert isinstance(edge, GraphQLObjectType)
        assert isinstance(get_nullable_type(edge.fields["node"].type), GraphQLObjectType), name
        assert str(edge.fields["cursor"].type) == str(field.args["after"].type) + "!"
        assert str(page.fields["pageInfo"].type) == "PageInfo!"
