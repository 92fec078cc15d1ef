"""`noroshi migrate` as a process that is killed, waits for another migration, and says what it does."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymongo
import pytest

from server.commands.cli import run
from server.commands.migrate import ProgressPrinter
from server.embedded import Mongod
from storage.migrations.migrator import LOCK, MigrationProgress
from storage.migrations.steps import DATA_VERSION, STEPS
from tests.databases import fresh_database
from tests.product import eventually
from tests.server.refused_starts import refusal
from tests.serving import serving_process

BUILDING = "build the indexes at_1 of events"
STEP_LINES = "".join(f"step {step.version}: {step.title}\n" for step in STEPS)
Client = pymongo.MongoClient[dict[str, Any]]


def variables(mongodb_uri: str, redis_url: str, database: str) -> dict[str, str]:
    secret = "a secret of the tests, longer than 32 bytes"
    own = {"NOROSHI_DATABASE": database, "NOROSHI_AUTH_SECRET": secret}
    return {"MONGODB_URI": mongodb_uri, "REDIS_URL": redis_url} | own


@pytest.fixture
def old_database(own_mongod: Mongod, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Yields the variables that name a database with documents, an old version and a missing index."""
    with fresh_database(own_mongod.uri, redis_url) as name, Client(own_mongod.uri) as client:
        settings = variables(own_mongod.uri, redis_url, name)
        for variable, value in settings.items():
            monkeypatch.setenv(variable, value)
        assert run(["migrate"]) == 0
        client[name]["data_version"].delete_many({})
        client[name]["events"].drop_index("at_1")
        client[name]["events"].insert_many([{"_id": number, "at": None} for number in range(2000)])
        yield settings


@contextmanager
def hanging_index_builds(uri: str) -> Iterator[None]:
    """Lets no index build end during the block."""
    with Client(uri) as client:
        client.admin.command("configureFailPoint", "hangAfterStartingIndexBuild", mode="alwaysOn")
        try:
            yield
        finally:
            client.admin.command("configureFailPoint", "hangAfterStartingIndexBuild", mode="off")


def end_lease(settings: dict[str, str]) -> None:
    """Ends the lease of the running migration, as its time does. The lease lasts longer than a test should."""
    with Client(settings["MONGODB_URI"]) as client:
        locks = client[settings["NOROSHI_DATABASE"]]["process_locks"]
        assert locks.update_one({"_id": LOCK}, [{"$set": {"expires_at": "$$NOW"}}]).modified_count == 1


def test_migration_is_continued_after_kill_while_it_builds(
    own_mongod: Mongod, old_database: dict[str, str], tmp_path: Path
) -> None:
    """MongoDB still builds the index. The waiting migration takes the lock when the killed migration's lease ends."""
    with (
        serving_process(tmp_path / "first", "migrate", old_database) as first,
        serving_process(tmp_path / "second", "migrate", old_database) as second,
    ):
        with hanging_index_builds(own_mongod.uri):
            assert eventually(lambda: BUILDING in first.log_text + second.log_text), first.log_text + second.log_text
            killed, waiting = (first, second) if BUILDING in first.log_text else (second, first)
            assert waiting.wait_for_log("wait for another migration, or for its lease to end")
            killed.process.kill()
            killed.process.wait(60)
            assert BUILDING not in waiting.log_text
            end_lease(old_database)
            assert waiting.wait_for_log(BUILDING)
        assert waiting.process.wait(60) == 0, waiting.log_text
        assert waiting.log_text.endswith(f"{STEP_LINES}The data fit this release.\n")
    assert run(["migrate", "--check"]) == 0


def test_old_data_are_refused_listed_and_left_unchanged(
    old_database: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Web processes and workers refuse the data, and `--check` lists what is to be done. Neither changes the data."""
    for command in ("web", "worker"):
        error = refusal(tmp_path, command, **old_database)
        assert f"(missing indexes: 1, data steps: {len(STEPS)}): run `noroshi migrate`. " in error
    capsys.readouterr()
    for _ in range(2):
        assert run(["migrate", "--check"]) == 1
        assert capsys.readouterr().out == (
            f"build the indexes at_1 of events, which has about 2,000 documents\n{STEP_LINES}"
        )


def test_newer_data_is_refused_with_remedy(
    own_mongod: Mongod, old_database: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    newer = {"_id": "data", "version": DATA_VERSION + 2, "compatible_version": DATA_VERSION + 1}
    with Client(own_mongod.uri) as client:
        client[old_database["NOROSHI_DATABASE"]]["data_version"].insert_one(newer)
    for command in (["migrate"], ["migrate", "--check"]):
        assert run(command) == 1
        assert capsys.readouterr().err.endswith("start a newer release of Noroshi.\n")


def test_progress_lines_say_each_title_once() -> None:
    printed_lines: list[str] = []
    lines = ProgressPrinter(printed_lines.append)
    for progress in (
        MigrationProgress("build a"),
        MigrationProgress("build a", 1, 4),
        MigrationProgress("build b", 2, 4),
        MigrationProgress("build b"),
    ):
        lines.show(progress)
    assert printed_lines == ["build a", "build b: 50%"]
