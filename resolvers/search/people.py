"""Search of people by the beginnings of their handles and names. Everybody of the organization is found."""

from typing import Annotated

import strawberry
from strawberry import ID, UNSET

from resolvers.access import require_member
from resolvers.arguments import ListLimit, checked_limit, text_or_none
from resolvers.context import Info
from resolvers.search.messages import joined_community
from resolvers.search.operators import MAX_CLAUSES, ParsedSearch, bad_term, parse_search
from storage.errors import BadUserInput
from storage.identity.people_search import PeopleQuery, PersonMatch

OPERATORS = ("in",)


async def search_people(
    info: Info,
    query: Annotated[
        str,
        strawberry.argument(
            description="Beginnings of a person's handle, name, or of words of the name, in any order; also characters "
            'of a name in a script without spaces. "Phrases in quotes" contain spaces. A leading @ is ignored. `in:` '
            "the name or id of a community finds its members only. At most 200 characters."
        ),
    ],
    after_user_id: Annotated[
        ID | None,
        strawberry.argument(description="Id of the last person of the previous page. Omitted or null: the first page."),
    ] = UNSET,
    limit: ListLimit = 50,
) -> list[PersonMatch]:
    """Returns a page of the people who match a query."""
    viewer, stores = require_member(info), info.context.stores
    size, parsed = checked_limit(limit), parse_search(query, OPERATORS)
    people_query = PeopleQuery(_prefixes(parsed), await _community(info, parsed))
    after_handle = await stores.users.last_handle(viewer.organization_id, text_or_none(after_user_id))
    return await stores.people_search.page(viewer.organization_id, people_query, after_handle, size)


def _prefixes(parsed: ParsedSearch) -> list[str]:
    """Returns the words without a leading @. Raises: BadUserInput without words, or for too many."""
    prefixes = [prefix for word in parsed.words if (prefix := word.strip().removeprefix("@"))]
    if not prefixes:
        raise BadUserInput("query", "the beginning of a name or a handle")
    if len(prefixes) > MAX_CLAUSES:
        raise BadUserInput("query", f"at most {MAX_CLAUSES} words (there are {len(prefixes)})")
    return prefixes


async def _community(info: Info, parsed: ParsedSearch) -> str | None:
    name = parsed.single("in")
    if name is None:
        return None
    community_id = await joined_community(info, name)
    if community_id is None:
        raise bad_term(f"in:{name}", "the name or id of a community that you have joined")
    return community_id
