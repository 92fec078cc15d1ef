"""Limits of writes: every mutation has a limit or is listed as unlimited, and refusals say how long to wait."""

from collections.abc import Callable
from typing import Any

import pytest
from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLList,
    get_named_type,
    get_nullable_type,
    is_required_argument,
    is_required_input_field,
)

from resolvers.context import Context
from resolvers.limits.writes import WriteBudgets, WriteLimit, WritesPerMinute
from schema.root import schema
from server.app import writes_per_minute
from server.settings import Settings
from storage.errors import RateLimited
from storage.identity.records import User
from storage.identity.roles import Role
from storage.stores import Stores
from tests.execution import run_operation
from tests.resolvers.people import OPERATIONS

pytestmark = pytest.mark.anyio

UNLIMITED = {"markRead", "markNotificationsRead", "recordDeliveries", "reportCall", "endSession", "endOtherSessions"}
"""A read mark is one document, which clients update while a person scrolls. A person has few sessions, and ending them
must not be refused. The other mutations need the role SERVICE."""

SCALARS = {
    "Int": 1,
    "Float": 1.0,
    "Boolean": True,
    "Timestamp": "1.000000",
    "DateTime": "2030-01-01T00:00:00Z",
    "LocalDateTime": "2030-01-01T00:00:00",
}
"""An example value by scalar type. The value of every other scalar type is "x"."""

ONE_A_MINUTE = WritesPerMinute(**{limit.name.lower(): 1 for limit in WriteLimit})
ANN, BEN = (User(name, name, name, "acme", (Role.MEMBER,), 0, 0) for name in ("ann", "ben"))
MEMBER, ALL_ROLES = frozenset({Role.MEMBER}), frozenset({Role.MEMBER, Role.OPERATOR, Role.ADMIN})
MESSAGES = WriteLimit.MESSAGES


def mutations() -> dict[str, GraphQLField]:
    root = schema._schema.mutation_type
    assert root is not None
    return dict(root.fields)


def example_value(type_: GraphQLInputType) -> Any:
    """Returns a value of the type, without optional fields."""
    nullable, named = get_nullable_type(type_), get_named_type(type_)
    if isinstance(nullable, GraphQLList):
        return [example_value(nullable.of_type)]
    if isinstance(named, GraphQLInputObjectType):
        required = {name: field for name, field in named.fields.items() if is_required_input_field(field)}
        return {name: example_value(field.type) for name, field in required.items()}
    return next(iter(named.values)) if isinstance(named, GraphQLEnumType) else SCALARS.get(named.name, "x")


def operation(name: str, field: GraphQLField) -> tuple[str, dict[str, Any]]:
    """Returns a document that executes the mutation with example values, and its variables."""
    arguments: dict[str, GraphQLArgument] = {
        name: argument for name, argument in field.args.items() if is_required_argument(argument)
    }
    declarations = ", ".join(f"${name}: {argument.type}" for name, argument in arguments.items())
    passed_arguments = ", ".join(f"{name}: ${name}" for name in arguments)
    selection = " { __typename }" if hasattr(get_named_type(field.type), "fields") else ""
    if not arguments:
        return f"mutation {{ {name}{selection} }}", {}
    values = {name: example_value(argument.type) for name, argument in arguments.items()}
    return f"mutation({declarations}) {{ {name}({passed_arguments}){selection} }}", values


async def refusal_of(context: Context, name: str) -> dict[str, Any] | None:
    """Executes the mutation once, and returns the extensions of RATE_LIMITED, or None if it was not refused."""
    document, variables = operation(name, mutations()[name])
    result = await run_operation(OPERATIONS, context, document, variables)
    refusals = [error.extensions or {} for error in result.errors or ()]
    return next((each for each in refusals if each["code"] == "RATE_LIMITED"), None)


@pytest.mark.parametrize("name", mutations())
async def test_mutation_is_limited_unless_listed(shared_stores: Stores, name: str) -> None:
    """The counts of writes belong to the context, so that all mutations share one database."""
    context = Context(shared_stores, str, ANN, ALL_ROLES, write_budgets=WriteBudgets(ONE_A_MINUTE))
    assert await refusal_of(context, name) is None
    refusal = await refusal_of(context, name)
    assert (refusal is None) == (name in UNLIMITED), "Choose a `limit` where schema/root.py binds the mutation."
    if refusal is not None:
        assert 0 < refusal["retryAfterMs"] <= 60_000


def refusal_message(count: Callable[[], None]) -> str:
    with pytest.raises(RateLimited) as error:
        count()
    return error.value.message


def test_refusal_names_activity_and_number() -> None:
    budgets = WriteBudgets(WritesPerMinute(messages=2))
    budgets.count(ANN, MEMBER, MESSAGES)
    budgets.count(ANN, MEMBER, MESSAGES)
    assert refusal_message(lambda: budgets.count(ANN, MEMBER, MESSAGES)) == (
        "Posting, editing and deleting messages by one user is limited to 2 in a minute. Try again in 30 s."
    )
    budgets.count(ANN, MEMBER, WriteLimit.REACTIONS)
    budgets.count(BEN, MEMBER, MESSAGES)


def test_organization_has_a_multiple_of_one_users_number() -> None:
    budgets = WriteBudgets(WritesPerMinute(messages=2, organization_factor=2))
    users = [User(name, name, name, "acme", (), 0, 0) for name in "abcde"]
    # The fifth write is within the share of its user.
    for user in users:
        budgets.count(user, MEMBER, MESSAGES)
    assert "by one organization is limited to 4 in" in refusal_message(
        lambda: budgets.count(users[4], MEMBER, MESSAGES)
    )
    budgets.count(User("a", "a", "a", "globex", (), 0, 0), MEMBER, MESSAGES)


def test_refused_write_costs_nothing() -> None:
    budgets = WriteBudgets(WritesPerMinute(messages=1, organization_factor=2))
    budgets.count(ANN, MEMBER, MESSAGES)
    for _ in range(5):
        refusal_message(lambda: budgets.count(ANN, MEMBER, MESSAGES))
    budgets.count(BEN, MEMBER, MESSAGES)


def test_first_repetition_of_a_key_is_free() -> None:
    budgets = WriteBudgets(WritesPerMinute(messages=2))
    repetition = "postMessage", "key"
    for _ in range(4):
        budgets.count(ANN, MEMBER, MESSAGES, repetition)
    refusal_message(lambda: budgets.count(ANN, MEMBER, MESSAGES, repetition))
    budgets.count(BEN, MEMBER, MESSAGES, repetition)


@pytest.mark.parametrize(
    ("viewer", "keyed_mutation"),
    [
        (BEN, ("postMessage", "key")),
        (User("ann", "ann", "ann", "globex", (), 0, 0), ("postMessage", "key")),
        (ANN, ("editMessage", "key")),
        (ANN, ("postMessage", "other key")),
    ],
)
def test_key_is_free_only_for_its_user_and_mutation(viewer: User, keyed_mutation: tuple[str, str]) -> None:
    budgets = WriteBudgets(WritesPerMinute(messages=1, organization_factor=2))
    budgets.count(ANN, MEMBER, MESSAGES, ("postMessage", "key"))
    budgets._users[MESSAGES].spend((viewer.organization_id, viewer.id), 1)
    refusal_message(lambda: budgets.count(viewer, MEMBER, MESSAGES, keyed_mutation))


def test_service_is_not_limited_and_uses_no_budget() -> None:
    budgets = WriteBudgets(WritesPerMinute(messages=1, organization_factor=1))
    for _ in range(3):
        budgets.count(ANN, MEMBER | {Role.SERVICE}, MESSAGES)
    budgets.count(ANN, MEMBER, MESSAGES)


def test_settings_have_the_documented_defaults() -> None:
    assert writes_per_minute(Settings.from_environment()) == WritesPerMinute()
