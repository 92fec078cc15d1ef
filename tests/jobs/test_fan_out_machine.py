"""Home feeds compared with a model, for any sequence of follows, blocks, posts, runs of workers, faults and crashes.

Feeds are also compared while they are limited to three posts, of many more that the followed people have.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test as run_machine

from storage.feed.feeds import FeedItemStore
from storage.mongo import Driver
from storage.stores import open_stores
from tests.jobs.contexts import job_context
from tests.jobs.feed_machine import MAX_FOLLOWERS, FeedMachine, JobsOnLoop, SmallFeedMachine
from tests.storage.feed.feed_scenario import limit_feeds

CHUNK_SIZE = 2
"""Number of followers whose feeds get a post together."""


@contextmanager
def machine(
    mongodb_uri: str, redis_url: str, database: str, driver: Driver, base: type[FeedMachine] = FeedMachine
) -> Iterator[type[FeedMachine]]:
    """Yields the machine's class with stores on a separate event loop, because Hypothesis is synchronous."""
    with asyncio.Runner() as runner:
        stores_context = open_stores(mongodb_uri, redis_url, database, driver, MAX_FOLLOWERS)
        stores = runner.run(stores_context.__aenter__())
        stores_with_small_chunks = replace(
            stores, feeds=FeedItemStore(stores.mongo, stores.outbox, stores.home_subscribers, CHUNK_SIZE)
        )
        try:
            process = JobsOnLoop(runner, job_context(stores_with_small_chunks))
            yield type("BoundMachine", (base,), {"process": process})
        finally:
            runner.run(stores_context.__aexit__(None, None, None))


def settings_for(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
        # Shrinking a failure would take many minutes.
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
    )


def test_home_feed_matches_model(mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver) -> None:
    with machine(mongodb_uri, redis_url, database, mongo_driver) as machine_class:
        run_machine(machine_class, settings=settings_for(4, 15))


def test_small_home_feed_matches_model(
    mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_feeds(monkeypatch, SmallFeedMachine.max_items)
    with machine(mongodb_uri, redis_url, database, mongo_driver, SmallFeedMachine) as machine_class:
        run_machine(machine_class, settings=settings_for(2, 15))


@pytest.mark.soak
def test_home_feed_matches_model_in_long_runs(
    mongodb_uri: str, redis_url: str, database: str, mongo_driver: Driver
) -> None:
    with machine(mongodb_uri, redis_url, database, mongo_driver) as machine_class:
        run_machine(machine_class, settings=settings_for(500, 100))
