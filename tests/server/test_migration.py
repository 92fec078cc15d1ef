"""Migrations of a product: failures are errors of one line. test_supervisor.py shows that `noroshi up` migrates."""

from typing import Any

import pymongo
import pytest

from server.migration import check_data, migrate_data
from server.processes import StartupError
from server.settings import Settings
from storage.migrations.migrator import MigrationProgress
from tests.databases import fresh_database


async def migrate(settings: Settings) -> None:
    reports: list[MigrationProgress] = []
    await migrate_data(settings, reports.append)


@pytest.mark.anyio
async def test_failed_index_build_is_one_line_and_repeatable(mongodb_uri: str, redis_url: str) -> None:
    with (
        fresh_database(mongodb_uri, redis_url) as name,
        pymongo.MongoClient[dict[str, Any]](mongodb_uri) as client,
    ):
        settings = Settings(mongodb_uri=mongodb_uri, redis_url=redis_url, database=name)
        client[name]["users"].insert_many([{"_id": {"org": "acme", "id": n}, "handle": "ann"} for n in range(2)])
        with pytest.raises(StartupError) as failure:
            await migrate(settings)
        assert "\n" not in str(failure.value)
        assert "E11000 duplicate key" in str(failure.value)
        assert str(failure.value).endswith("continues.")
        client[name]["users"].delete_one({})
        await migrate(settings)
        await check_data(settings)
