"""Metrics for Prometheus: of this web process, and of the workers, which serve no HTTP.

A worker stores its metrics with each heartbeat. Its metrics get the label `worker`. Workers without a recent heartbeat
are left out. Everyone who reaches the port may read the metrics. Therefore no label names an organization, a user, a
mail domain or a host.
"""

from collections.abc import Iterable, Mapping

from prometheus_client import REGISTRY, CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from storage.heartbeats import INTERVAL_S, recent_workers
from storage.mongo import Mongo

SILENT_S = 4 * INTERVAL_S


async def worker_metrics(mongo: Mongo) -> dict[str, str]:
    """Returns the last metrics of each live worker by its label, in Prometheus's text format."""
    live = [row for row in await recent_workers(mongo) if row["silent_s"] < SILENT_S]
    # Workers of older versions store no label.
    return {row["label"]: row["metrics"] for row in live if "label" in row and "metrics" in row}


def exposition(metrics_by_worker: Mapping[str, str]) -> bytes:
    """Returns all metrics in Prometheus's text format, with each name once."""
    families = {family.name: family for family in REGISTRY.collect()}
    for worker, text in metrics_by_worker.items():
        for family_of_worker in text_string_to_metric_families(text):
            if not family_of_worker.name.endswith("_created"):
                name, kind = family_of_worker.name, family_of_worker.type
                family = families.setdefault(name, Metric(name, family_of_worker.documentation, kind))
                family.samples += [_labelled(sample, worker) for sample in family_of_worker.samples]
    registry = CollectorRegistry()
    registry.register(_FixedCollector(families.values()))
    return generate_latest(registry)


def _labelled(sample: Sample, worker: str) -> Sample:
    return Sample(sample.name, {**sample.labels, "worker": worker}, sample.value)


class _FixedCollector(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families
