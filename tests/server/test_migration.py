"""Migrations of a product: `noroshi up` migrates by itself, and failures are errors of one line."""

from pathlib import Path
from typing import Any

import pymongo
import pytest

from server.migration import check_data, migrate_data
from server.processes import StartupError
from server.settings import Settings
from storage.migrations.migrator import MigrationProgress
from storage.migrations.steps import DATA_VERSION
from tests.databases import fresh_database
from tests.product import running_product


async def migrate(settings: Settings) -> None:
    reports: list[MigrationProgress] = []
    await migrate_data(settings, reports.append)


def test_up_migrates_old_data_before_it_serves(data_dir: Path, mongodb_uri: str, redis_url: str) -> None:
    with (
        fresh_database(mongodb_uri, redis_url) as name,
        pymongo.MongoClient[dict[str, Any]](mongodb_uri) as client,
    ):
        client[name]["users"].insert_one({"_id": {"org": "acme", "id": "ann"}, "handle": "ann"})
        servers = {"MONGODB_URI": mongodb_uri, "REDIS_URL": redis_url, "NOROSHI_DATABASE": name}
        with running_product(data_dir, **servers) as product:
            assert "build the indexes" in product.errors
            data_version = client[name]["data_version"].find_one()
    assert data_version is not None
    assert data_version["version"] == DATA_VERSION


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
