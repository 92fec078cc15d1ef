"""Access rights: every root field, and some nested fields, against every kind of viewer (docs/access.md)."""

import asyncio
import base64
import os
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from graphql import parse
from websockets.exceptions import ConnectionClosed

from schema.root import schema
from schema.sharing import required_scopes
from storage.chat.roles import CommunityRole, Moderator
from storage.identity.audit import command_line_actor
from storage.identity.keys.records import NewServiceKey
from storage.identity.keys.scopes import SCOPES
from storage.identity.roles import INCLUDED_ROLES, Role
from storage.ids import new_id
from storage.mongo import Driver
from storage.stores import open_stores
from tests.client import Client, GraphQLFailed, client
from tests.databases import CREDENTIAL_KEYS
from tests.keys import ADDRESS_KEYS
from tests.resolvers.access_table import EMPTY, OUTCOMES, AccessOutcomes, read_tables, write_tables
from tests.resolvers.nested_fields import (
    IN_LISTED_COMMUNITY,
    IN_PUBLIC_COMMUNITY,
    NESTED_FIELDS,
    operation,
    shows_a_value,
)
from tests.resolvers.operations import RootField, root_fields
from tests.resolvers.organization_scenario import OrganizationScenario, create_organization
from tests.resolvers.people import ChatScenario, Person, SignIn, until_outbox_is_empty
from tests.serving import WebProcess, web_process

pytestmark = pytest.mark.anyio

REFUSED_SOCKETS = {4401: "UNAUTHENTICATED", 4403: "UNAUTHENTICATED"}
"""Maps the close code of a WebSocket to the error code that an HTTP request with the same credential gets."""

NOT_REPEATABLE = {"cancelScheduledPost", "releaseScheduledPost", "resolvePublication", "decideContentReport"} | {
    "removeStampPack",
    "endUserSessions",
    "retryPublication",
}
"""Fields whose second call with the same ids is refused, even if another viewer calls."""

PREPARE_NESTED = """
mutation ($Community: ID!, $Topic: ID!, $Message: ID!, $Dog: ID!) {
  postMessage(input: {topicId: $Topic, replyTo: $Message, text: "A reply"}) { id }
  pinMessage(messageId: $Message) { id }
  muteMember(communityId: $Community, userId: $Dog, until: "2040-01-01T00:00:00Z") { role }
}
"""
SET_VISIBILITY = """
mutation ($id: ID!, $visibility: CommunityVisibility!) { updateCommunity(id: $id, visibility: $visibility) { id } }
"""

WRITES_TABLES = "NOROSHI_WRITE_ACCESS_TABLES"
"""Environment variable. If it is set, the tables are written before they are compared."""


async def people_of(sign_in: SignIn, organization: OrganizationScenario) -> dict[str, Person]:
    """Returns the people of docs/access.md by the names of their columns. Keys and refused tokens have no person."""
    outsider = await sign_in("outsider", organization.mark)
    await outsider.create_community("The outsider's community")
    return {
        "anonymous": Person(organization.stores),
        "other organization": await sign_in("foreigner", "elsewhere"),
        "outsider": outsider,
        "member": organization.cat,
        "moderator": await sign_in("moderator", organization.mark),
        "owner": await sign_in("owner", organization.mark),
        "operator": await sign_in("operator", organization.mark, [Role.OPERATOR]),
        "admin": await sign_in("admin", organization.mark, [Role.ADMIN]),
        "service": await sign_in("service", organization.mark, [Role.SERVICE]),
        "author": organization.ann,
    }


@cache
def scope_of(text: str) -> str:
    """Returns the scope that an operation with one root field requires."""
    (scope,) = required_scopes(schema._schema, parse(text)).values()
    return scope


@dataclass(frozen=True)
class AccessCaller:
    """Sends requests to the running product as one column of docs/access.md.

    A field is called with the token of the scope that it requires, or else with that of `chat:read`. None means no
    credential.
    """

    client: Client
    tokens: dict[str, str | None]

    async def outcome(self, field: RootField, ids: dict[str, str]) -> str:
        """Calls the field, and returns the outcome, as the tables say it."""
        # Of two viewers, only one could get a handle.
        values = {"handle": f"newt_{new_id()[-12:]}"} if field.name == "changeHandle" else {}
        code = await self._code(field, field.variables(ids, **values))
        return OUTCOMES.get(code, f"{code}!")

    async def nested_outcome(self, text: str, ids: dict[str, str]) -> str:
        """Executes a query, and returns the outcome of its fields `value`."""
        answer = await self._caller(text).execute(text, **ids)
        if answer.get("errors"):
            code = str(answer["errors"][0]["extensions"]["code"])
            return OUTCOMES.get(code, f"{code}!")
        return OUTCOMES[None] if shows_a_value(answer["data"]) else EMPTY

    def _caller(self, text: str) -> Client:
        """Returns the client with the token for the scope of the operation."""
        return Client(self.client.url, self.tokens.get(scope_of(text), self.tokens["chat:read"]), self.client.http)

    async def _code(self, field: RootField, variables: dict[str, Any]) -> str | None:
        """Calls the field, and returns the code of the error, or None if it succeeds."""
        text = field.text(depth=1)
        caller = self._caller(text)
        if field.root == "Subscription":
            return await self._code_of_subscription(caller, text, variables)
        errors = (await caller.execute(text, **variables)).get("errors")
        return str(errors[0]["extensions"]["code"]) if errors else None

    @staticmethod
    async def _code_of_subscription(caller: Client, text: str, variables: dict[str, Any]) -> str | None:
        try:
            async with caller.socket() as socket:
                await socket.subscribe(text, **variables)
                await socket.next_event()
        except GraphQLFailed as error:
            return str(error.codes[0])
        except ConnectionClosed as closed:
            return REFUSED_SOCKETS.get(closed.rcvd.code if closed.rcvd else 0, "CLOSED")
        return None


AccessCallers = Mapping[str, AccessCaller]


@asynccontextmanager
async def open_viewers(
    web: WebProcess, organization: OrganizationScenario, people: dict[str, Person]
) -> AsyncIterator[AccessCallers]:
    """Yields the callers in the order of the columns, by their names: `people`, then keys and refused tokens."""
    stores, org = organization.stores, organization.organization_id
    actor = command_line_actor(org)
    await stores.users.sign_in(org, "former", list(Role), None, None)
    await stores.user_administration.deactivate(actor, "former", "left")
    roles = tuple(role.value for role in Role)
    former, expired = web.token("former", org, roles), web.token(organization.ann.id, org, roles, ttl_s=-3600)

    async def key(scopes: Collection[str]) -> str:
        issued = await stores.service_keys.create(actor, NewServiceKey(f"{organization.mark} key", sorted(scopes)))
        assert issued.secret is not None
        return issued.secret

    def token(person: Person) -> str | None:
        user, roles = person.user, tuple(role.value for role in person.roles)
        return web.token(user.id, user.organization_id, roles) if user else None

    tokens: dict[str, dict[str, str | None]] = {
        **{name: dict.fromkeys(SCOPES, token(person)) for name, person in people.items()},
        "key with scope": {scope: await key({scope}) for scope in SCOPES},
        "key without scope": {scope: await key(set(SCOPES) - {scope}) for scope in SCOPES},
        "deactivated": dict.fromkeys(SCOPES, former),
        "expired": dict.fromkeys(SCOPES, expired),
    }
    async with client(web.url, None) as sender:
        yield {name: AccessCaller(sender, each) for name, each in tokens.items()}


async def restore_memberships(people: dict[str, Person], organization: OrganizationScenario) -> None:
    """Gives the people of the columns their memberships and roles, which earlier calls may have changed."""
    stores, community_id = organization.stores, organization.ids["Community"]
    roles = {"moderator": CommunityRole.MODERATOR, "owner": CommunityRole.OWNER}
    outsiders = ("outsider", "operator", "admin")
    own = {"community": community_id, "user": {"$in": [people[name].id for name in (*roles, *outsiders)]}}
    stored = await stores.mongo.find("memberships", own, {"user": 1, "role": 1})
    if {each["user"]: each.get("role") for each in stored} == {name: role.value for name, role in roles.items()}:
        return
    community = await stores.communities.get(organization.organization_id, community_id)
    owl, moderation = Moderator("owl"), stores.moderation
    await asyncio.gather(
        *(people[name].join(community.id) for name in roles),
        *(people[name].leave(community.id) for name in outsiders),
    )
    await asyncio.gather(*(moderation.set_role(community, owl, people[name].id, role) for name, role in roles.items()))


async def measured_outcomes(sign_in: SignIn, web: WebProcess) -> dict[str, AccessOutcomes]:
    """Calls every root field with every caller, reads concurrently, and returns the outcomes."""
    organization = await create_organization(sign_in, "acme")
    people = await people_of(sign_in, organization)
    await restore_memberships(people, organization)
    async with open_viewers(web, organization, people) as viewers:
        outcomes = await outcomes_of_nested_fields(viewers, organization)
        for field in (each.without_uploads() for each in root_fields()):
            if field.root == "Mutation":
                outcomes[str(field)] = await outcomes_of_mutation(viewers, people, organization, field)
            else:
                results = await asyncio.gather(*(each.outcome(field, organization.ids) for each in viewers.values()))
                outcomes[str(field)] = dict(zip(viewers, results, strict=True))
    return outcomes


async def outcomes_of_nested_fields(
    viewers: AccessCallers, organization: OrganizationScenario
) -> dict[str, AccessOutcomes]:
    """Reads nested fields as every kind of viewer. A member is muted, and the pinned message has a reply."""
    ids, ann = organization.ids, organization.ann
    prepared = {name: ids[name] for name in ("Community", "Topic", "Message")}
    await ann.run(PREPARE_NESTED, **prepared, Dog=organization.dog.id)
    await until_outbox_is_empty(organization.stores)
    outcomes: dict[str, AccessOutcomes] = {}
    for visibility, selections in (("LISTED", IN_LISTED_COMMUNITY), ("PUBLIC", IN_PUBLIC_COMMUNITY)):
        await ann.run(SET_VISIBILITY, id=ids["Community"], visibility=visibility)
        for field, selection in selections.items():
            text = operation(selection)
            variables = {name: ids[name] for name in ("Community", "Post", "Topic") if f"${name}" in text}
            results = await asyncio.gather(*(each.nested_outcome(text, variables) for each in viewers.values()))
            outcomes[field] = dict(zip(viewers, results, strict=True))
    return outcomes


async def outcomes_of_mutation(
    viewers: AccessCallers, people: dict[str, Person], organization: OrganizationScenario, field: RootField
) -> AccessOutcomes:
    """Calls a mutation as one viewer after the other."""
    ids = await organization.renew(field.id_types)
    await restore_memberships(people, organization)
    outcomes: dict[str, str] = {}
    for name, viewer in viewers.items():
        outcomes[name] = await viewer.outcome(field, ids)
        if field.name in NOT_REPEATABLE and outcomes[name] == "yes":
            ids = await organization.renew(field.id_types)
    return outcomes


def test_tables_have_every_field_and_no_other() -> None:
    assert {*map(str, root_fields()), *NESTED_FIELDS} == set(read_tables()), (
        "Run `make access`, and check the new rows."
    )


async def test_each_viewer_may_do_exactly_what_the_tables_say(
    tmp_path: Path, mongodb_uri: str, redis_url: str, shared_database: str, mongo_driver: Driver
) -> None:
    keys: dict[str, Any] = {"credential_keys": CREDENTIAL_KEYS, "address_keys": ADDRESS_KEYS, "is_prepared": True}
    setting = ",".join(f"{number}:{base64.b64encode(key).decode()}" for number, key in CREDENTIAL_KEYS.items())
    variables: dict[str, Any] = {"database": shared_database, "NOROSHI_CREDENTIAL_KEYS": setting}
    with web_process(tmp_path, mongodb_uri, redis_url, **variables) as web:
        async with open_stores(mongodb_uri, redis_url, web.database, mongo_driver, **keys) as stores:
            outcomes = await measured_outcomes(SignIn(stores), web)
    if os.environ.get(WRITES_TABLES):
        write_tables(outcomes)
    assert outcomes == read_tables()


async def test_token_with_several_roles_has_rights_of_each(sign_in: SignIn) -> None:
    both = await sign_in("both", roles=[Role.SERVICE, Role.MEMBER])
    assert await both.code("{ communities { id } }") is None


async def test_rights_follow_token_roles_before_first_grant(chat: ChatScenario, sign_in: SignIn) -> None:
    message = (await chat.ann.post(chat.topic))["id"]
    former_admin = await sign_in("dan", roles=[Role.ADMIN])
    await sign_in("dan")
    delete = "mutation ($id: ID!) { deleteMessage(id: $id) { id } }"
    assert await former_admin.code(delete, id=message) is None
    member = await sign_in("dan")
    assert await member.code(delete, id=message) == "FORBIDDEN"


def test_roles_include_lower_roles_except_service() -> None:
    assert {
        Role.MEMBER: {Role.MEMBER},
        Role.OPERATOR: {Role.OPERATOR, Role.MEMBER},
        Role.ADMIN: {Role.ADMIN, Role.OPERATOR, Role.MEMBER},
        Role.SERVICE: {Role.SERVICE},
    } == INCLUDED_ROLES
