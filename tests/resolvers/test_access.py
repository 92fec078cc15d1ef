"""Access rights: every root field against every kind of viewer (docs/access.md)."""

import os
from contextlib import aclosing

import pytest

from storage.chat.moderation_changes import Moderator
from storage.chat.roles import CommunityRole
from storage.identity.roles import INCLUDED_ROLES, Role
from tests.resolvers.access_table import OUTCOMES, Outcomes, read_tables, write_tables
from tests.resolvers.operations import RootField, root_fields
from tests.resolvers.organization_scenario import OrganizationScenario, create_organization
from tests.resolvers.people import Person, SignIn

pytestmark = pytest.mark.anyio

NOT_REPEATABLE = {"cancelScheduledPost", "resolvePublication", "decideContentReport"}
"""Fields whose second call with the same ids is a CONFLICT, even if another viewer calls."""

WRITES_TABLES = "NOROSHI_WRITE_ACCESS_TABLES"
"""Environment variable with which the tables are written, not compared."""


async def viewers_of(sign_in: SignIn, organization: OrganizationScenario) -> dict[str, Person]:
    """Returns a viewer for each column of the tables, by the name of the column."""
    outsider = await sign_in("outsider", organization.mark)
    await outsider.create_community("Another one")
    return {
        "anonymous": Person(organization.stores),
        "stranger": await sign_in("stranger", "elsewhere"),
        "outsider": outsider,
        "member": organization.cat,
        "moderator": await sign_in("moderator", organization.mark),
        "owner": await sign_in("owner", organization.mark),
        "operator": await sign_in("operator", organization.mark, [Role.OPERATOR]),
        "admin": await sign_in("admin", organization.mark, [Role.ADMIN]),
        "service": await sign_in("service", organization.mark, [Role.SERVICE]),
        "author": organization.ann,
    }


async def restore_memberships(people: dict[str, Person], organization: OrganizationScenario) -> None:
    """Restores what earlier fields may have changed: who has joined the community, and with which role."""
    community = await organization.stores.communities.get(organization.organization_id, organization.ids["Community"])
    for name, role in (("moderator", CommunityRole.MODERATOR), ("owner", CommunityRole.OWNER)):
        await people[name].join(community.id)
        await organization.stores.moderation.set_role(community, Moderator("owl"), people[name].id, role)
    for name in ("outsider", "operator", "admin"):
        await people[name].leave(community.id)


async def outcome(person: Person, field: RootField, ids: dict[str, str]) -> str:
    """Returns the outcome of a call, as the tables say it."""
    query, variables = field.text(depth=1), field.variables(ids)
    if field.root == "Subscription":
        async with aclosing(person.answers(query, **variables)) as answers:
            errors = (await anext(answers))["errors"]
    else:
        errors = (await person.execute(query, **variables))["errors"]
    code = errors[0]["extensions"]["code"] if errors else None
    return OUTCOMES.get(code, f"{code}!")


async def measured_outcomes(sign_in: SignIn) -> dict[str, Outcomes]:
    """Calls every root field as every kind of viewer, and returns the outcomes."""
    organization = await create_organization(sign_in, "acme")
    people = await viewers_of(sign_in, organization)
    outcomes: dict[str, Outcomes] = {}
    for field in root_fields():
        ids = await organization.renew(field.id_types)
        await restore_memberships(people, organization)
        of_viewers: dict[str, str] = {}
        for name, person in people.items():
            of_viewers[name] = await outcome(person, field, ids)
            if field.name in NOT_REPEATABLE and of_viewers[name] == "yes":
                ids = await organization.renew(field.id_types)
        outcomes[str(field)] = of_viewers
    return outcomes


def test_tables_have_every_field_and_no_other() -> None:
    assert {str(field) for field in root_fields()} == set(read_tables()), "Run `make access`, and check the new rows."


async def test_each_viewer_may_do_exactly_what_the_tables_say(sign_in: SignIn) -> None:
    outcomes = await measured_outcomes(sign_in)
    if os.environ.get(WRITES_TABLES):
        write_tables(outcomes)
    assert outcomes == read_tables()


async def test_token_with_several_roles_has_rights_of_each(sign_in: SignIn) -> None:
    organization = await create_organization(sign_in, "acme")
    both = await sign_in("both", organization.mark, [Role.SERVICE, Role.MEMBER])
    assert await both.code("{ communities { id } }") is None


async def test_rights_follow_token_roles_not_stored_roles(sign_in: SignIn) -> None:
    organization = await create_organization(sign_in, "acme")
    former_admin = await sign_in("dan", organization.mark, [Role.ADMIN])
    await sign_in("dan", organization.mark, [Role.MEMBER])
    delete = "mutation ($id: ID!) { deleteMessage(id: $id) { id } }"
    assert await former_admin.code(delete, id=organization.ids["Message"]) is None
    member = await sign_in("dan", organization.mark, [Role.MEMBER])
    assert await member.code(delete, id=organization.ids["Message"]) == "FORBIDDEN"


def test_roles_include_lower_roles_except_service() -> None:
    assert {
        Role.MEMBER: {Role.MEMBER},
        Role.OPERATOR: {Role.OPERATOR, Role.MEMBER},
        Role.ADMIN: {Role.ADMIN, Role.OPERATOR, Role.MEMBER},
        Role.SERVICE: {Role.SERVICE},
    } == INCLUDED_ROLES
