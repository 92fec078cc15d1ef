"""Search of posts. Posts of blocked and muted authors are left out, as in the feed of the organization."""

from typing import Annotated

import strawberry
from strawberry import UNSET

from resolvers.access import require_member
from resolvers.arguments import Inclusive, Latest, Oldest, PageLimit, checked_time_zone, page_range
from resolvers.context import Info
from resolvers.search.messages import TimeZone, author_terms, content_terms, search_filter
from resolvers.search.operators import parse_search
from storage.feed.search import PostMatch
from storage.mongo.text_index.entries import ContentKind
from storage.mongo.text_index.pages import SearchPage

OPERATORS = ("from", "has", "before", "after")

PostQuery = Annotated[
    str,
    strawberry.argument(
        description='Words and "phrases in quotes" that a post contains, and operators: `from:` a handle or `me`, '
        "`has:link`, `has:media`, `before:` and `after:` a date such as 2026-11-23. At most 200 characters. Needs a "
        "word, a phrase, `from:` or `has:`."
    ),
]


async def search_posts(
    info: Info,
    query: PostQuery,
    oldest: Oldest = UNSET,
    latest: Latest = UNSET,
    limit: PageLimit = 50,
    inclusive: Inclusive = True,
    time_zone: TimeZone = "UTC",
) -> SearchPage[PostMatch]:
    """Returns a page of the posts that match a query."""
    viewer = require_member(info)
    range_ = page_range(oldest, latest, limit, inclusive)
    parsed = parse_search(query, OPERATORS)
    filters = [*await author_terms(info, parsed), *content_terms(parsed, (ContentKind.LINK, ContentKind.MEDIA))]
    filter_ = search_filter(parsed, filters, checked_time_zone(time_zone))
    hidden = (await info.context.hidden_subjects()).users
    return await info.context.stores.post_search.page(viewer.organization_id, hidden, filter_, range_)
