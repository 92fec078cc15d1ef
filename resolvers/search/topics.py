"""Search of topics by their titles. The viewer's present memberships limit each page."""

from typing import Annotated

import strawberry
from strawberry import UNSET

from resolvers.access import require_member
from resolvers.arguments import Inclusive, Latest, Oldest, PageLimit, checked_time_zone, page_range
from resolvers.context import Info
from resolvers.search.messages import TimeZone, joined_community, search_filter
from resolvers.search.operators import bad_term, parse_search
from storage.chat.search.topics import TopicMatch
from storage.mongo.text_index.pages import SearchPage

OPERATORS = ("in", "before", "after")

TopicQuery = Annotated[
    str,
    strawberry.argument(
        description='Words and "phrases in quotes" that a title contains, and operators: `in:` the name or id of a '
        "community, `before:` and `after:` the date of creation, such as 2026-11-23. At most 200 characters. Needs a "
        "word or a phrase."
    ),
]


async def search_topics(
    info: Info,
    query: TopicQuery,
    oldest: Oldest = UNSET,
    latest: Latest = UNSET,
    limit: PageLimit = 50,
    inclusive: Inclusive = True,
    time_zone: TimeZone = "UTC",
) -> SearchPage[TopicMatch]:
    """Returns a page of the topics whose titles match a query."""
    viewer = require_member(info)
    range_ = page_range(oldest, latest, limit, inclusive)
    parsed = parse_search(query, OPERATORS)
    filter_ = search_filter(parsed, [], checked_time_zone(time_zone), "a word or a phrase")
    name = parsed.single("in")
    community_id = None if name is None else await joined_community(info, name)
    if name is not None and community_id is None:
        raise bad_term(f"in:{name}", "the name or id of a community that you have joined")
    return await info.context.stores.topic_search.page(viewer.organization_id, viewer.id, filter_, range_, community_id)
