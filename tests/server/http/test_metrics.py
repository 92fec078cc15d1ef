"""The metrics page of a web process, which includes the metrics of workers."""

from collections import Counter

import pytest

from server.http.metrics import SILENT_S, exposition, worker_metrics
from storage.heartbeats import WorkerHeartbeat
from storage.metrics import CALLS_LATE, process_metrics
from storage.stores import Stores

pytestmark = pytest.mark.anyio


def exposition_lines(metrics_by_worker: dict[str, str]) -> list[str]:
    return exposition(metrics_by_worker).decode().splitlines()


def test_metrics_of_workers_have_same_name_and_worker_label() -> None:
    CALLS_LATE.inc()
    metrics = process_metrics()
    value = next(line for line in metrics.splitlines() if line.startswith("noroshi_calls_late_total")).split()[1]
    lines = [
        line
        for line in exposition_lines({"host/1": metrics, "host/2": metrics})
        if line.startswith("noroshi_calls_late_total")
    ]
    assert lines == [
        f"noroshi_calls_late_total {value}",
        f'noroshi_calls_late_total{{worker="host/1"}} {value}',
        f'noroshi_calls_late_total{{worker="host/2"}} {value}',
    ]


def test_metric_unknown_to_web_process_is_shown() -> None:
    newer = process_metrics() + "# HELP noroshi_new News.\n# TYPE noroshi_new gauge\nnoroshi_new 4.0\n"
    lines = exposition_lines({"host/1": newer})
    declarations = Counter(line.split()[2] for line in lines if line.startswith("# TYPE"))
    assert set(declarations.values()) == {1}
    assert 'noroshi_new{worker="host/1"} 4.0' in lines


async def test_worker_keeps_a_label_that_names_no_host(stores: Stores) -> None:
    heartbeat = WorkerHeartbeat(stores.mongo, "host/1")
    labels: list[str] = []
    for _ in range(2):
        await heartbeat._write()
        labels += await worker_metrics(stores.mongo)
    assert len(labels) == 2
    assert len(set(labels)) == 1
    assert "host" not in labels[0]


async def test_worker_of_older_version_is_left_out(stores: Stores) -> None:
    await WorkerHeartbeat(stores.mongo, "host/1")._write()
    await stores.mongo["workers"].update_one({"_id": "host/1"}, {"$unset": {"label": 1}})
    assert await worker_metrics(stores.mongo) == {}


async def test_silent_worker_is_left_out(stores: Stores) -> None:
    await WorkerHeartbeat(stores.mongo, "host/1")._write()
    assert len(await worker_metrics(stores.mongo)) == 1
    long_ago = {"$subtract": ["$$NOW", int(SILENT_S * 1000) + 1]}
    await stores.mongo["workers"].update_one({"_id": "host/1"}, [{"$set": {"at": long_ago}}])
    assert await worker_metrics(stores.mongo) == {}
