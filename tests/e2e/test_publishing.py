"""Scheduled posts by real workers that are killed: none is lost, repeated or early, according to the ledgers."""

from pathlib import Path

import pytest

from server.embedded import Mongod, Valkey, find_mongod, find_valkey
from storage.ids import new_id
from storage.stores import Stores, open_stores
from tests.databases import CREDENTIAL_KEYS
from tests.e2e.publishing_load import (
    PublishingLoadPlan,
    WorkerProcesses,
    open_load_scenario,
    run_load,
    worker_variables,
)

pytestmark = pytest.mark.anyio

SMALL = PublishingLoadPlan(publications=80, duration_s=4, workers=2, kills=2)
FULL = PublishingLoadPlan(
    publications=10_000, duration_s=120, workers=4, kills=50, redis_kills=3, stepdowns=2, outcome_deadline_s=400
)


async def test_publishing_through_kills_loses_and_repeats_nothing(
    stores: Stores, mongodb_uri: str, redis_url: str, database: str, tmp_path: Path
) -> None:
    workers = WorkerProcesses(tmp_path, worker_variables(mongodb_uri, redis_url, database))
    with workers.stack:
        async with open_load_scenario(stores, SMALL) as load_scenario:
            outcome = await run_load(load_scenario, SMALL, workers, mongodb_uri)
    assert outcome == {"lost": [], "repeated": [], "early": [], "states": {"PUBLISHED": SMALL.publications}}


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_10_000_publications_survive_every_fault(tmp_path: Path) -> None:
    mongod, valkey = Mongod(tmp_path / "mongodb", find_mongod()), Valkey(tmp_path / "redis", find_valkey())
    await mongod.start()
    await valkey.start()
    database = f"t_{new_id()}"
    try:
        async with open_stores(mongod.uri, valkey.url, database, credential_keys=CREDENTIAL_KEYS) as stores:
            workers = WorkerProcesses(tmp_path, worker_variables(mongod.uri, valkey.url, database))
            with workers.stack:
                async with open_load_scenario(stores, FULL) as load_scenario:
                    outcome = await run_load(load_scenario, FULL, workers, mongod.uri, valkey)
    finally:
        await valkey.stop()
        await mongod.stop()
    assert outcome == {"lost": [], "repeated": [], "early": [], "states": {"PUBLISHED": FULL.publications}}
