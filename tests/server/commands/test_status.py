"""`noroshi status` shows workers, locks, calls, mail and queues as stored in the databases."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from server.commands.cli import run
from server.commands.status import as_json, show, status, with_embedded_servers
from server.settings import Settings
from storage.heartbeats import Heartbeat, WorkerHeartbeat
from storage.locks import Locks
from storage.mail.ledger import Ledger, partition
from storage.mail.rates import MIN_SENT, day_of
from storage.stores import Stores
from tests.keys import ADDRESS_KEYS
from tests.storage.calls.in_memory_jobs import new_job
from tests.storage.mail.events import hard, ok
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio


async def test_status_shows_workers_locks_calls_and_queues(
    stores: Stores, mongodb_uri: str, redis_url: str, database: str
) -> None:
    heartbeat = WorkerHeartbeat(stores.mongo, "host/1")
    heartbeat.add_sweep("prune_events", 3)
    await heartbeat._write()
    lock = await stores.locks.acquire("call_broker:acme", "host/1")
    assert lock is not None
    await stores.call_jobs.set_limits("acme", 4, 2.5)
    await stores.call_jobs.launch(new_job(), "phone_number\n+819012345678\n+819012345679\n", None)
    settings = Settings(mongodb_uri=mongodb_uri, redis_url=redis_url, database=database)
    console = Console(width=160, record=True)
    show(await status(settings), console)
    text = console.export_text()
    for expected in ("host/1", "prune_events 1 (3 found)", "call_broker:acme", "2.5", "previews"):
        assert expected in text


async def test_status_shows_mail_backlog_logs_and_reports(
    stores: Stores, mongodb_uri: str, redis_url: str, database: str
) -> None:
    number = partition("example.org")
    assert await Locks(stores.mongo, ttl_s=600).acquire(f"mail:{number}", "host/7") is not None
    await Ledger(stores.mongo, ADDRESS_KEYS).record("acme", "mta", [ok(), ok("bob@example.org")])
    state = {"org": "acme", "file": "/var/log/mail.log", "lines": 1234, "events": 56, "rejected": 7, "behind_bytes": 78}
    await Heartbeat(stores.mongo["mail_tails"], "host/9", lambda: state)._write()
    today = day_of(await stores.mongo.now())
    for kind in ("summary", "alarm"):
        assert await stores.reports.claim("acme", today - 1, kind)
    await stores.reports.mark_sent("acme", today - 1, "summary")
    tables = await status(Settings(mongodb_uri=mongodb_uri, redis_url=redis_url, database=database))
    partitions, tails, _, reports = (table for table in tables if table.title.startswith("Mail"))
    ((shown_number, events, oldest, worker),) = partitions.rows
    assert (shown_number, events, worker) == (number, 2, "host/7")
    assert isinstance(oldest, float)
    assert 0 <= oldest < 60
    ((*source, _, lines, new, rejected, behind),) = tails.rows
    assert (source, lines, new, rejected, behind) == (["host/9", "acme", "/var/log/mail.log"], 1234, 56, 7, 78)
    assert [(row[2], row[3] is None) for row in reports.rows] == [("alarm", True), ("summary", False)]


async def test_status_as_json_has_values_by_key(
    stores: Stores, mongodb_uri: str, redis_url: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await WorkerHeartbeat(stores.mongo, "host/1")._write()
    assert await stores.locks.acquire("call_broker:acme", "host/1") is not None
    await stores.reports.claim("acme", day_of(await stores.mongo.now()), "summary")
    shown = json.loads(as_json(await status(Settings(mongodb_uri=mongodb_uri, redis_url=redis_url, database=database))))
    assert [worker["worker"] for worker in shown["workers"]] == ["host/1"]
    assert isinstance(shown["workers"][0]["silentSeconds"], float)
    assert {lock["lock"]: lock["holder"] for lock in shown["locks"]}["call_broker:acme"] == "host/1"
    assert [(report["kind"], report["sentAt"]) for report in shown["mailReports"]] == [("summary", None)]
    assert {"queue": "previews", "waiting": 0} in shown["queues"]


async def test_status_shows_bounce_rates_of_today(
    stores: Stores, mongodb_uri: str, redis_url: str, database: str
) -> None:
    now = await stores.mongo.now()
    bad = [hard(f"a{n}@bad.example", at=now) for n in range(MIN_SENT)]
    await MailScenario(stores, "acme").add_events(*bad, ok("a@few.example", at=now))
    await MailScenario(stores, "other").add_events(ok("a@few.example", at=now))
    tables = await status(Settings(mongodb_uri=mongodb_uri, redis_url=redis_url, database=database))
    (rates,) = (table for table in tables if table.title.startswith("Mail: bounce rates"))
    assert rates.rows == [
        ["acme", None, 51, 50, 50 / 51],
        ["other", None, 1, 0, 0.0],
        ["acme", "bad.example", 50, 50, 1.0],
    ]


async def test_status_without_redis_shows_the_rest(stores: Stores, mongodb_uri: str, database: str) -> None:
    settings = Settings(mongodb_uri=mongodb_uri, redis_url="redis://127.0.0.1:1/0", database=database)
    tables = await status(settings)
    assert tables[-1].title.startswith("Queues: Redis does not answer")


def test_status_without_product_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MONGODB_URI", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    assert run(["status", "--data-dir", str(tmp_path)]) == 1
    assert "Nothing runs in" in capsys.readouterr().err


def test_embedded_servers_are_found_in_data_dir(tmp_path: Path) -> None:
    for name, port in (("mongodb", "1234"), ("redis", "5678")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "port").write_text(port)
    settings = with_embedded_servers(Settings(data_dir=tmp_path, mongodb_uri=None, redis_url=None))
    assert settings.mongodb_uri == "mongodb://127.0.0.1:1234/?directConnection=true"
    assert settings.redis_url == "redis://127.0.0.1:5678/0"
