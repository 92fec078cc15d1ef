"""Budgets for the cost of operations: each viewer, service and organization has one in each process (docs/limits.md).

An organization has a budget for its people, and another one for its services. While such a budget is spent, everyone
who is active keeps an equal share of it, so that nobody makes the operations of a colleague be refused.

The cost is the upper bound that document limits also use (server/graphql/cost.py). An execution that answers several
viewers costs each of them an equal part.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from prometheus_client import Counter

from resolvers.limits.rates import GroupRateLimiter, RateLimiter
from server.graphql.protocols import Viewer
from storage.errors import RateLimited

REFUSALS = Counter("noroshi_cost_refusals", "Operations refused because a budget for cost was spent.", ["budget"])


@dataclass(frozen=True, slots=True)
class CostPerMinute:
    """The cost that a viewer, a viewer with the role SERVICE, and an organization may spend in a minute.

    An organization's services may together spend as much again as its people.
    """

    viewer: int = 3_000_000
    service: int = 20_000_000
    organization: int = 30_000_000


DEFAULT_COST_PER_MINUTE = CostPerMinute()


@dataclass(frozen=True, slots=True)
class _Limiters:
    """The budgets of all people, or of all services."""

    kind: str
    personal: RateLimiter
    organization: GroupRateLimiter


class CostBudgets:
    """The budgets of this process."""

    def __init__(self, limits: CostPerMinute) -> None:
        self._people = _Limiters(
            "viewer",
            RateLimiter(limits.viewer, "The cost of your operations"),
            GroupRateLimiter(limits.organization, "The cost of your organization's operations"),
        )
        self._services = _Limiters(
            "service",
            RateLimiter(limits.service, "The cost of this service's operations"),
            GroupRateLimiter(limits.organization, "The cost of the operations of your organization's services"),
        )

    def check(self, viewer: Viewer, cost: int, *, is_service: bool = False) -> None:
        """Raises: RateLimited if the cost is more than what the viewer or the organization may spend now."""
        limiters = self._of(is_service)
        budget = limiters.kind
        try:
            limiters.personal.check(_key(viewer), cost)
            budget = "organization"
            limiters.organization.check(viewer.organization_id, viewer.id, cost)
        except RateLimited:
            REFUSALS.labels(budget).inc()
            raise

    def spend(self, viewers: Sequence[Viewer], cost: int, *, is_service: bool = False) -> None:
        """Divides the cost among viewers of one organization, and subtracts it."""
        limiters = self._of(is_service)
        for viewer in viewers:
            limiters.personal.spend(_key(viewer), cost / len(viewers))
        limiters.organization.spend(viewers[0].organization_id, [each.id for each in viewers], cost)

    def remaining(self, viewer: Viewer, *, is_service: bool = False) -> int:
        """Returns what is left of the viewer's budget; negative after an expensive operation."""
        return self._of(is_service).personal.remaining(_key(viewer))

    def _of(self, is_service: bool) -> _Limiters:
        return self._services if is_service else self._people


def _key(viewer: Viewer) -> tuple[str, str]:
    return viewer.organization_id, viewer.id
