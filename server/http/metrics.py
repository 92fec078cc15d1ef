"""What Prometheus is given: this process's figures, and those of the workers, which listen to nobody.

A worker leaves its own with each sign of life; they carry a label `worker`. One that is silent is left out.
"""

from collections.abc import Iterable, Mapping

from prometheus_client import REGISTRY, CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from storage.heartbeats import EVERY_S, workers
from storage.mongo import Mongo

SILENT_S = 4 * EVERY_S


async def figures_of_workers(mongo: Mongo) -> dict[str, str]:
    """What each worker that lives told last, in Prometheus's text format."""
    # Those of an earlier version leave none.
    return {row["_id"]: row.get("metrics", "") for row in await workers(mongo) if row["silent_s"] < SILENT_S}


def exposition(of_workers: Mapping[str, str]) -> bytes:
    """All figures in Prometheus's text format, each name once."""
    families = {family.name: family for family in REGISTRY.collect()}
    for worker, text in of_workers.items():
        for told in text_string_to_metric_families(text):
            if not told.name.endswith("_created"):
                family = families.setdefault(told.name, Metric(told.name, told.documentation, told.type))
                family.samples += [_labelled(sample, worker) for sample in told.samples]
    registry = CollectorRegistry()
    registry.register(_Told(families.values()))
    return generate_latest(registry)


def _labelled(sample: Sample, worker: str) -> Sample:
    return Sample(sample.name, {**sample.labels, "worker": worker}, sample.value)


class _Told(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families
