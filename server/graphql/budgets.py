"""Budgets for the cost of operations: each viewer, service and organization has one in each process (docs/limits.md).

The cost is the upper bound that document limits also use (server/graphql/cost.py). An execution that answers several
viewers costs each of them an equal part.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from prometheus_client import Counter

from resolvers.rate_limits import RateLimiter
from storage.errors import RateLimited
from storage.identity.records import User
from storage.identity.roles import Role

REFUSALS = Counter("noroshi_cost_refusals", "Operations refused because a budget for cost was spent.", ["budget"])


@dataclass(frozen=True, slots=True)
class CostPerMinute:
    """The cost that a viewer, a viewer with the role SERVICE, and an organization may spend in a minute."""

    viewer: int = 3_000_000
    service: int = 20_000_000
    organization: int = 30_000_000


DEFAULT_COST_PER_MINUTE = CostPerMinute()


class CostBudgets:
    """The budgets of this process."""

    def __init__(self, limits: CostPerMinute) -> None:
        self._viewers = RateLimiter(limits.viewer, "The cost of your operations")
        self._services = RateLimiter(limits.service, "The cost of this service's operations")
        self._organizations = RateLimiter(limits.organization, "The cost of your organization's operations")

    def check(self, viewer: User, roles: frozenset[Role], cost: int) -> None:
        """Raises: RateLimited if the cost is more than what the viewer or the organization may spend now."""
        try:
            self._personal_limiter(roles).check(_key(viewer), cost)
        except RateLimited:
            REFUSALS.labels("service" if Role.SERVICE in roles else "viewer").inc()
            raise
        try:
            self._organizations.check(viewer.organization_id, cost)
        except RateLimited:
            REFUSALS.labels("organization").inc()
            raise

    def spend(self, viewers: Sequence[User], roles: frozenset[Role], cost: int) -> None:
        """Divides the cost among viewers of one organization, and subtracts it."""
        for viewer in viewers:
            self._personal_limiter(roles).spend(_key(viewer), cost / len(viewers))
        self._organizations.spend(viewers[0].organization_id, cost)

    def remaining(self, viewer: User, roles: frozenset[Role]) -> int:
        """Returns what is left of the viewer's budget; negative after an expensive operation."""
        return self._personal_limiter(roles).remaining(_key(viewer))

    def _personal_limiter(self, roles: frozenset[Role]) -> RateLimiter:
        return self._services if Role.SERVICE in roles else self._viewers


def _key(viewer: User) -> tuple[str, str]:
    return viewer.organization_id, viewer.id
