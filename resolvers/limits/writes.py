"""Limits of writes: how many mutations of a kind a user and an organization may send in a minute (docs/limits.md).

Each mutation names its limit where it is bound (schema/root.py). The budgets belong to one web process.
"""

from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from cachetools import LRUCache
from prometheus_client import Counter

from resolvers.limits.rates import GroupRateLimiter, RateLimiter
from storage.errors import RateLimited
from storage.identity.records import User
from storage.identity.roles import Role

BURST_S = 60.0
"""All writes of a minute may come at once, for example messages that a client has kept while it was offline."""

MAX_REMEMBERED_KEYS = 100_000
"""Idempotency keys whose next use is free. Beyond this number the least recently used key is dropped."""

REFUSALS = Counter(
    "noroshi_write_refusals", "Mutations refused because a limit of writes was reached.", ["limit", "of"]
)


class WriteLimit(Enum):
    """A limit that several mutations share. The value names their activity in the error message."""

    MESSAGES = "Posting, editing and deleting messages"
    REACTIONS = "Adding and removing reactions"
    FOLLOWS = "Following, blocking and muting"
    POSTS = "Creating and deleting posts"
    SCHEDULES = "Scheduling posts"
    JOINS = "Joining, leaving and creating communities and topics"
    MODERATION = "Moderating communities"
    REPORTS = "Reporting content"
    UPLOADS = "Creating uploads"
    PRESENCE = "Signalling presence"
    OPERATIONS = "Managing accounts, publications, call jobs and mail addresses"


@dataclass(frozen=True, slots=True)
class WritesPerMinute:
    """The writes that each limit allows one user. An organization may write `organization_factor` times as many."""

    messages: int = 300
    reactions: int = 600
    follows: int = 300
    posts: int = 120
    schedules: int = 300
    joins: int = 120
    moderation: int = 120
    reports: int = 30
    uploads: int = 120
    presence: int = 120
    operations: int = 120
    organization_factor: int = 100
    service_factor: int = 10
    """How many times as many writes as a user a service key may send."""

    def of(self, limit: WriteLimit) -> int:
        """Returns how many writes of a limit one user may send in a minute."""
        number: int = getattr(self, limit.name.lower())
        return number


DEFAULT_WRITES_PER_MINUTE = WritesPerMinute()
Limiter = TypeVar("Limiter", RateLimiter, GroupRateLimiter)
KeyedMutation = tuple[str, str]
"""The name of a mutation and its idempotency key."""


class WriteBudgets:
    """Counts the writes of this process. A token with the role SERVICE is not limited, and uses no budget.

    A service key has limits of its own, and uses no budget of its organization. While the organization's budget is
    spent, each active user keeps an equal share of it.
    """

    def __init__(self, per_minute: WritesPerMinute = DEFAULT_WRITES_PER_MINUTE) -> None:
        self._users = _limiters(RateLimiter, per_minute, "by one user", 1)
        self._services = _limiters(RateLimiter, per_minute, "by one service key", per_minute.service_factor)
        factor = per_minute.organization_factor
        self._organizations = _limiters(GroupRateLimiter, per_minute, "by one organization", factor)
        self._keys: LRUCache[tuple[str, str, KeyedMutation], bool] = LRUCache(MAX_REMEMBERED_KEYS)

    def count(
        self,
        viewer: User,
        roles: frozenset[Role],
        limit: WriteLimit,
        keyed_mutation: KeyedMutation | None = None,
        *,
        has_key: bool = False,
    ) -> None:
        """Counts one write. A write and its first repetition with the same idempotency key count once.

        `has_key` says that the request has a service key.

        Raises: RateLimited if the user or the organization has reached the limit.
        """
        if Role.SERVICE in roles and not has_key:
            return
        key = None if keyed_mutation is None else (viewer.organization_id, viewer.id, keyed_mutation)
        # `pop` removes the key, so that at most every second use of a key is free.
        if key is not None and self._keys.pop(key, False):
            return
        self._spend_for_key(viewer, limit) if has_key else self._spend(viewer, limit)
        if key is not None:
            self._keys[key] = True

    def _spend_for_key(self, account: User, limit: WriteLimit) -> None:
        owner = account.organization_id, account.id
        try:
            self._services[limit].check(owner, 1)
        except RateLimited:
            REFUSALS.labels(limit.name.lower(), "service").inc()
            raise
        self._services[limit].spend(owner, 1)

    def _spend(self, viewer: User, limit: WriteLimit) -> None:
        self._check(viewer, limit)
        self._users[limit].spend((viewer.organization_id, viewer.id), 1)
        self._organizations[limit].spend(viewer.organization_id, [viewer.id], 1)

    def _check(self, viewer: User, limit: WriteLimit) -> None:
        owner = "user"
        try:
            self._users[limit].check((viewer.organization_id, viewer.id), 1)
            owner = "organization"
            self._organizations[limit].check(viewer.organization_id, viewer.id, 1)
        except RateLimited:
            REFUSALS.labels(limit.name.lower(), owner).inc()
            raise


def _limiters(
    type_: type[Limiter], per_minute: WritesPerMinute, subject: str, factor: int
) -> dict[WriteLimit, Limiter]:
    return {each: type_(per_minute.of(each) * factor, f"{each.value} {subject}", BURST_S) for each in WriteLimit}
