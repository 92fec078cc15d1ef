"""An organization is not affected by a twin: an organization with equal users, texts, addresses, numbers and tags.

All mutations are executed in the first organization, except those that undo others. Then all mutations are executed in
the twin, and its members follow and block one another. Documents and answers of the first organization stay as they
were. A query or a deletion without its condition on the organization fails here, because the twin's documents meet
every other condition.
"""

from collections.abc import AsyncIterator
from itertools import permutations
from typing import Any

import pytest

from storage.mail.imports import BookImporter, LegacyBookRow
from storage.mail.rates import day_of
from storage.publishing.transitions import MarkFailed
from storage.stores import Stores
from tests.keys import ADDRESS_KEYS
from tests.resolvers.operations import RootField
from tests.resolvers.organization_scenario import OrganizationScenario, create_organization
from tests.resolvers.people import Person, SignIn, until_outbox_is_empty
from tests.resolvers.test_isolation import FIELDS, FIELDS_WITHOUT_OPTIONAL_IDS, execute_field
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

MARK = "twin"
ADDRESS = "ann@example.org"
DECAYING_FIELDS = {"messagesPerMinute", "estimatedEndAt"}
"""Fields whose values change with time alone."""

SHARED_COLLECTIONS = {"process_locks", "fences"}


def members(organization: OrganizationScenario) -> list[Person]:
    return [organization.ann, organization.cat, organization.dog]


async def execute_mutations(organization: OrganizationScenario, *, undo: bool) -> None:
    """Executes each mutation, and fills the address book and the feeds.

    Mutations that undo others come last. Without `undo` they are left out.
    """
    mutations = sorted((each for each in FIELDS if each.root == "Mutation"), key=is_undoing)
    for field in mutations:
        if undo or not is_undoing(field):
            # A browser belongs to the person who registered it last, in any organization.
            endpoint = f"https://push.example.org/{organization.organization_id}"
            await execute_field(organization.superuser, field, organization.ids, depth=1, endpoint=endpoint)
    stores, org = organization.stores, organization.organization_id
    await MailScenario(stores, org).aggregate()
    importer = BookImporter(stores.mongo, ADDRESS_KEYS)
    for source in ("mta", "rows"):
        await importer.add(org, source, [LegacyBookRow(ADDRESS, 5, 2, 1)])
    removed_sources = ("mta", "rows", None) if undo else ()
    for source in removed_sources:
        await importer.rebuild(org, source, lambda _: None)
    for person in members(organization):
        await stores.home.record_read(org, person.id)
        await stores.home.rebuild(org, person.id)
    await until_outbox_is_empty(stores)


def is_undoing(field: RootField) -> bool:
    return field.name.startswith(("delete", "leave", "cancel", "disconnect", "remove", "takeBack", "un"))


async def fail_due_publications(stores: Stores) -> None:
    """Ends the publications that were tried again. The scenario of the other organization claims all that are due."""
    for claim in await stores.claims.claim(1000):
        await stores.scheduled_posts.apply(MarkFailed(claim, "REFUSED", f"{MARK} is refused"))
    await until_outbox_is_empty(stores)


async def documents(stores: Stores) -> set[str]:
    """Returns every document of the database, each with the name of its collection."""
    names = set(await stores.mongo.database.list_collection_names()) - SHARED_COLLECTIONS
    return {f"{name} {document!r}" for name in names async for document in stores.mongo[name].find()}


async def answers(organization: OrganizationScenario) -> dict[str, Any]:
    """Returns the answers to every query, and the results of the reads of jobs."""
    organization.stores.address_book._domains.clear()
    queries = [field for field in FIELDS + FIELDS_WITHOUT_OPTIONAL_IDS if field.root == "Query"]
    results: dict[str, Any] = {
        f"{field}({sorted(field.variables(organization.ids))})": without_decaying_fields(
            await execute_field(organization.superuser, field, organization.ids, query=MARK, tag=MARK)
        )
        for field in queries
    }
    results["joined"] = await organization.superuser.execute("{ communities(joined: true) { id } }")
    return results | {f"jobs: {name}": value async for name, value in read_for_jobs(organization)}


def without_decaying_fields(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: without_decaying_fields(value) for name, value in data.items() if name not in DECAYING_FIELDS}
    return [without_decaying_fields(each) for each in data] if isinstance(data, list) else data


async def read_for_jobs(organization: OrganizationScenario) -> AsyncIterator[tuple[str, str]]:
    """Yields the names and results of the reads of workers."""
    stores, org = organization.stores, organization.organization_id
    ids = sorted(person.id for person in members(organization))
    day = day_of(await stores.mongo.now())
    for author in ids:
        yield f"followers of {author}", repr(await stores.feeds.followers(org, author, ""))
        yield f"blockers of {author}", repr(sorted(await stores.relations.blockers_among(org, author, ids)))
    yield "users with blocks", repr(sorted(await stores.relations.users_with_blocks(org, ids)))
    yield "domains with bounces", repr(await stores.bounce_rates.worst_domains(org, day))
    yield "sources of mail", repr(await BookImporter(stores.mongo, ADDRESS_KEYS).sources(org))
    yield "numbers that are not called", repr(await stores.do_not_call.listed_numbers(org, ["+819012345670"]))


async def test_twin_organization_changes_nothing(sign_in: SignIn) -> None:
    first = await create_organization(sign_in, MARK, "first")
    await execute_mutations(first, undo=False)
    await fail_due_publications(first.stores)
    documents_before, answers_before = await documents(first.stores), await answers(first)
    twin = await create_organization(sign_in, MARK, "second")
    await execute_mutations(twin, undo=True)
    for person, other in permutations(members(twin), 2):
        await person.follow(other)
    assert await answers(first) == answers_before
    for person, other in permutations(members(twin), 2):
        await person.block(other)
    assert await answers(first) == answers_before
    await until_outbox_is_empty(twin.stores)
    assert documents_before - await documents(twin.stores) == set()
