"""Rate limits of this process: a budget that refills evenly, for each viewer or organization (docs/limits.md)."""

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from cachetools import LRUCache

from storage.errors import RateLimited

BURST_S = 10.0
"""An unused budget grows for this time, so that a client may spend 10 s' worth at once."""

MAX_BUDGETS = 100_000
"""Budgets in memory. Beyond this number the least recently used budget is dropped. Its key then has a full budget."""

ACTIVE_S = 60.0
"""A member of a group is active for this time after the last attempt to spend."""


@dataclass(slots=True)
class _SpendingBudget:
    left: float
    refilled_at: float


class RateLimiter:
    """Limits what each key, such as a viewer's id, may spend in a minute."""

    def __init__(self, per_minute: float, subject: str, burst_s: float = BURST_S) -> None:
        """Takes the limit, and the subject of the error message, such as "The cost of your operations".

        A key may spend the budget of `burst_s` seconds at once.
        """
        self._per_s = per_minute / 60
        self._capacity = per_minute / 60 * burst_s
        self._subject = subject
        self._budgets: LRUCache[Hashable, _SpendingBudget] = LRUCache(MAX_BUDGETS)

    def check(self, key: Hashable, amount: float) -> None:
        """Raises RateLimited, with the time to wait, if `amount` is more than the key's budget.

        A key with a full budget may spend any amount. It then waits longer before it may spend again.
        """
        if wait_ms := self.wait_ms(key, amount):
            raise self.refusal(wait_ms)

    def wait_ms(self, key: Hashable, amount: float) -> int:
        """Returns the time until `check` permits the amount, in milliseconds; 0 if it permits it now."""
        missing = min(amount, self._capacity) - self._refilled(key).left
        return math.ceil(missing / self._per_s * 1000) if missing > 0 else 0

    def refusal(self, wait_ms: int) -> RateLimited:
        """Returns the error that names the limit and the time to wait."""
        limit = f"{self._subject} is limited to {self._per_s * 60:,.0f} in a minute."
        return RateLimited(f"{limit} Try again in {math.ceil(wait_ms / 1000)} s.", wait_ms)

    def spend(self, key: Hashable, amount: float) -> None:
        """Subtracts the amount, even if it is more than the budget."""
        self._refilled(key).left -= amount

    def remaining(self, key: Hashable) -> int:
        """Returns what the key may spend now; negative after an expensive operation."""
        return math.floor(self._refilled(key).left)

    def _refilled(self, key: Hashable) -> _SpendingBudget:
        now = time.monotonic()
        budget = self._budgets.get(key)
        if budget is None:
            budget = self._budgets[key] = _SpendingBudget(self._capacity, now)
        budget.left = min(budget.left + (now - budget.refilled_at) * self._per_s, self._capacity)
        budget.refilled_at = now
        return budget


class GroupRateLimiter:
    """Limits what the members of each group, such as an organization, may spend in a minute together.

    While the group's budget is spent, each of its n active members may still spend an n-th of the limit. Members
    who spend much therefore never use up the share of another member.
    """

    def __init__(self, per_minute: float, subject: str, burst_s: float = BURST_S) -> None:
        """Takes the same arguments as RateLimiter."""
        self._per_s = per_minute / 60
        self._groups = RateLimiter(per_minute, subject, burst_s)
        # Shares hold seconds, not amounts: they refill by one in a second, however many members are active.
        self._shares = RateLimiter(60, subject, burst_s)
        self._active: OrderedDict[tuple[Hashable, Hashable], float] = OrderedDict()
        """When each active member last attempted to spend. The oldest is first. Attempts remove inactive members."""
        self._active_members: Counter[Hashable] = Counter()
        """The number of active members of each group."""

    def check(self, group: Hashable, member: Hashable, amount: float) -> None:
        """Raises RateLimited, with the time to wait, if the amount is more than the group's budget and the share."""
        self._mark_active((group, member))
        if group_wait_ms := self._groups.wait_ms(group, amount):
            share_wait_ms = self._shares.wait_ms((group, member), self._share_s(group, amount))
            if share_wait_ms:
                raise self._groups.refusal(min(group_wait_ms, share_wait_ms))

    def spend(self, group: Hashable, members: Sequence[Hashable], amount: float) -> None:
        """Subtracts the amount. While the group's budget is spent, members also pay equal parts with their shares."""
        if self._groups.wait_ms(group, amount):
            seconds = self._share_s(group, amount / len(members))
            for member in members:
                self._shares.spend((group, member), seconds)
        self._groups.spend(group, amount)

    def _share_s(self, group: Hashable, amount: float) -> float:
        """Returns the time in which a member's share grows by the amount."""
        return amount * max(self._active_members[group], 1) / self._per_s

    def _mark_active(self, member: tuple[Hashable, Hashable]) -> None:
        now = time.monotonic()
        if member not in self._active:
            self._active_members[member[0]] += 1
        self._active[member] = now
        self._active.move_to_end(member)
        while now - next(iter(self._active.values())) > ACTIVE_S:
            (group, _), _ = self._active.popitem(last=False)
            self._active_members[group] -= 1
            if not self._active_members[group]:
                del self._active_members[group]
