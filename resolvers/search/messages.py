"""Search of messages. The viewer's blocks and present memberships limit each page."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import strawberry
from strawberry import ID, UNSET

from resolvers.access import require_member
from resolvers.arguments import Inclusive, Latest, Oldest, PageLimit, checked_time_zone, page_range, text_or_none
from resolvers.context import Info
from resolvers.search.operators import ParsedSearch, bad_term, date_bounds, parse_search
from storage.chat.search.messages import MessageMatch
from storage.errors import BadUserInput, NotFound
from storage.identity.handles.suggestions import VIEWER_WORD, normalize_handle
from storage.mongo.text_index.entries import ContentKind, author_term, content_term, topic_term
from storage.mongo.text_index.names import fold_for_comparison
from storage.mongo.text_index.pages import SearchFilter, SearchPage

OPERATORS = ("from", "in", "has", "before", "after")

MessageQuery = Annotated[
    str,
    strawberry.argument(
        description='Words and "phrases in quotes" that a message contains, and operators: `from:` a handle or `me`, '
        "`in:` the name or id of a community, or the id of a topic or conversation, `has:link`, `has:stamp`, "
        "`has:file`, `before:` and `after:` a date such as 2026-11-23. At most 200 characters. Needs a word, a phrase, "
        "`from:` or `has:`."
    ),
]
TimeZone = Annotated[
    str, strawberry.argument(description="IANA time zone in which the dates of `before:` and `after:` begin.")
]


@dataclass(frozen=True, slots=True)
class _SearchScope:
    """Where to search: in one community or conversation, in one topic, or everywhere."""

    community_id: str | None = None
    topic_id: str | None = None


async def search_messages(
    info: Info,
    query: MessageQuery,
    oldest: Oldest = UNSET,
    latest: Latest = UNSET,
    limit: PageLimit = 50,
    inclusive: Inclusive = True,
    topic_id: Annotated[
        ID | None, strawberry.argument(description="Id of a topic or a conversation, to search only there.")
    ] = UNSET,
    time_zone: TimeZone = "UTC",
) -> SearchPage[MessageMatch]:
    """Returns a page of the messages that match a query."""
    viewer = require_member(info)
    range_ = page_range(oldest, latest, limit, inclusive)
    parsed = parse_search(query, OPERATORS)
    filters = [
        *await author_terms(info, parsed),
        *content_terms(parsed, (ContentKind.LINK, ContentKind.STAMP, ContentKind.FILE)),
    ]
    filter_ = search_filter(parsed, filters, checked_time_zone(time_zone))
    place = await _place(info, parsed, text_or_none(topic_id))
    if place.topic_id is not None:
        filter_ = replace(filter_, terms=[*filter_.terms, topic_term(place.topic_id)])
    viewer_blocks = await info.context.viewer_blocks()
    return await info.context.stores.message_search.page(
        viewer.organization_id, viewer.id, viewer_blocks.blocked, filter_, range_, place.community_id
    )


def search_filter(
    parsed: ParsedSearch, filters: Sequence[str], time_zone: str, expected: str = "a word, a phrase, from: or has:"
) -> SearchFilter:
    """Returns the clauses, the terms with those of the filters, and the bounds. Raises: BadUserInput without terms."""
    terms = dict.fromkeys([*filters, *(term for each in parsed.clauses for term in each.terms())])
    if not terms:
        raise BadUserInput("query", expected)
    return SearchFilter(parsed.clauses, list(terms), *date_bounds(parsed, time_zone))


async def author_terms(info: Info, parsed: ParsedSearch) -> list[str]:
    """Returns the term of `from:`, if it is in the query. Raises: BadUserInput for an unknown handle."""
    viewer, author = require_member(info), parsed.single("from")
    if author is None:
        return []
    handle = normalize_handle(author.removeprefix("@"))
    if handle == VIEWER_WORD:
        return [author_term(viewer.id)]
    users = await info.context.stores.users.find_handles(viewer.organization_id, [handle])
    if handle not in users:
        raise bad_term(f"from:{author}", "the handle of a person, or from:me")
    return [author_term(users[handle].id)]


def content_terms(parsed: ParsedSearch, allowed: Sequence[ContentKind]) -> list[str]:
    """Returns the terms of `has:`. Raises: BadUserInput for a kind of content that is not allowed."""
    contents = {content.value: content for content in allowed}
    for value in parsed.operands.get("has", []):
        if value.lower() not in contents:
            raise bad_term(f"has:{value}", " or ".join(f"has:{each}" for each in contents))
    return [content_term(contents[value.lower()]) for value in parsed.operands.get("has", [])]


async def _place(info: Info, parsed: ParsedSearch, topic_id: str | None) -> _SearchScope:
    """Returns where to search. Raises: NotFound for the argument, BadUserInput for the operator `in:`."""
    place, name = _SearchScope(), parsed.single("in")
    if topic_id is not None:
        found = await _topic_place(info, topic_id)
        if found is None:
            raise NotFound("topic", topic_id)
        place = found
    if name is None:
        return place
    named = await _topic_place(info, name) or await _community_place(info, name)
    # Nobody learns whether there is a community with this name that the viewer has not joined.
    if named is None or (place.community_id or named.community_id) != named.community_id:
        raise bad_term(f"in:{name}", "the name or id of a community that you have joined, or the id of its topic")
    return replace(named, topic_id=place.topic_id or named.topic_id)


async def _topic_place(info: Info, topic_id: str) -> _SearchScope | None:
    viewer, stores = require_member(info), info.context.stores
    topic = await stores.topics.find(viewer.organization_id, topic_id)
    if topic is None or not await stores.communities.is_member(topic.community_id, viewer.id):
        return None
    return _SearchScope(topic.community_id, topic.id)


async def _community_place(info: Info, name: str) -> _SearchScope | None:
    found = await joined_community(info, name)
    return None if found is None else _SearchScope(found)


async def joined_community(info: Info, name: str) -> str | None:
    """Returns the id of a community that the viewer has joined, by its name or id, or None."""
    viewer, communities = require_member(info), info.context.stores.communities
    return await communities.find_joined(viewer.organization_id, viewer.id, name, fold_for_comparison(name))
