"""Use cases of administrators about retention: how long the organization keeps data about people."""

from collections.abc import Sequence
from typing import Annotated

import strawberry
from strawberry import UNSET, Parent

from resolvers.access import require_role
from resolvers.context import Info
from storage.errors import BadUserInput
from storage.identity.records import User
from storage.identity.roles import Role
from storage.privacy.retention_rules import BOUNDS, RetainedData, RetentionRule


async def retention_rules(info: Info) -> list[RetentionRule]:
    """Returns the rule of each kind of data."""
    viewer = require_role(info, Role.ADMIN)
    return await info.context.stores.retention_rules.list_rules(viewer.organization_id)


async def set_retention_rule(
    info: Info,
    data: Annotated[RetainedData, strawberry.argument(description="Kind of data.")],
    days: Annotated[
        int | None,
        strawberry.argument(
            description="Days, from `minDays` to `maxDays` of the rule. Omitted or null: the default of the product."
        ),
    ] = UNSET,
) -> RetentionRule:
    """Sets how long the organization keeps a kind of data."""
    require_role(info, Role.ADMIN)
    bounds = BOUNDS[data]
    chosen = days if isinstance(days, int) else None
    if chosen is not None and not bounds.minimum <= chosen <= bounds.maximum:
        raise BadUserInput("days", f"{bounds.minimum} to {bounds.maximum} for {data.value}, or null for the default")
    return await info.context.stores.retention_rules.set_rule(info.context.actor, data, chosen)


async def default_days(root: Parent[RetentionRule]) -> int | None:
    """Returns the number of days in an organization that has set none; None if the data are kept for good."""
    return root.bounds.default


async def min_days(root: Parent[RetentionRule]) -> int:
    """Returns the smallest number of days that may be set."""
    return root.bounds.minimum


async def max_days(root: Parent[RetentionRule]) -> int:
    """Returns the greatest number of days that may be set."""
    return root.bounds.maximum


async def set_by(root: Parent[RetentionRule], info: Info) -> User | None:
    """Returns the administrator who set the rule; None for the default."""
    return (await set_by_each([root], info))[0]


async def set_by_each(rules: Sequence[RetentionRule], info: Info) -> list[User | None]:
    """Returns the administrator who set each rule; None for the default."""
    if not rules:
        return []
    ids = [rule.set_by_id for rule in rules]
    return await info.context.stores.users.find_or_none(rules[0].organization_id, ids)
