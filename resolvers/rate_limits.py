"""Rate limits of this process: a budget that refills evenly, for each viewer or organization (docs/limits.md)."""

import math
import time
from collections.abc import Hashable
from dataclasses import dataclass

from cachetools import LRUCache

from storage.errors import RateLimited

BURST_S = 10.0
"""An unused budget grows for this time, so that a client may spend 10 s' worth at once."""

MAX_BUDGETS = 100_000
"""Budgets in memory. Beyond this number the least recently used budget is dropped. Its key then has a full budget."""


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
        missing = min(amount, self._capacity) - self._refilled(key).left
        if missing > 0:
            wait_ms = math.ceil(missing / self._per_s * 1000)
            limit = f"{self._subject} is limited to {self._per_s * 60:,.0f} in a minute."
            raise RateLimited(f"{limit} Try again in {math.ceil(wait_ms / 1000)} s.", wait_ms)

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
