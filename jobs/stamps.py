"""Sweepers that give people the packs of stamps that they have earned. Each person gets a pack once."""

from jobs.context import JobContext

DELAY_S = 10.0
"""Age of the events that are evaluated. Their transactions have ended by then."""


async def evaluate_active_people(jobs: JobContext) -> int:
    """Evaluates the rules for people who were active lately. Returns the number of new owners."""
    return await jobs.stores.stamp_rule_activity.sweep(DELAY_S)


async def evaluate_all_people(jobs: JobContext) -> int:
    """Evaluates the rules for everybody, a few hundred people at a time. Returns the number of new owners."""
    return await jobs.stores.stamp_rule_walk.sweep()
