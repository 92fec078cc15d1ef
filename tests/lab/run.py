"""One run: starts the deployment, runs workloads and faults, heals all faults, reads the final state, and checks."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import orjson

from tests.lab.cluster import LaboratoryCluster, plan_cluster
from tests.lab.faults import Nemesis
from tests.lab.history import HistoryRecorder
from tests.lab.hosts import create_hosts
from tests.lab.outages import run_outage, separate_disks
from tests.lab.outside import outside_services
from tests.lab.recovery import RunPhases, outage_tables
from tests.lab.report import checks_table, faults_table, operations_table
from tests.lab.session import Laboratory
from tests.lab.workloads.catalogue import Workload, create_workloads

HOSTS = ("east", "west", "north")
FINISH_DEADLINE_S = 900.0


@dataclass(frozen=True)
class RunOptions:
    """The options of the command line."""

    seed: str
    minutes: float
    faults: list[str]
    areas: list[str]
    folder: Path
    outage: str | None = None


async def run(options: RunOptions) -> int:
    """Runs the laboratory, prints the tables, and returns the number of violations."""
    history = HistoryRecorder(options.folder / "history.jsonl")
    hosts = create_hosts(HOSTS, options.folder / "disks")
    async with outside_services() as outside:
        cluster = plan_cluster(hosts, options.folder, outside.telephony.url, with_clocks="clock" in options.faults)
        laboratory = Laboratory(history, cluster.web_urls, options.seed)
        if options.outage:
            separate_disks(cluster)
        try:
            await cluster.start()
            workloads = create_workloads(laboratory, outside, options.areas)
            phases = await _run_workloads(options, laboratory, cluster, workloads)
        finally:
            history.close()
            for program in cluster.programs.values():
                program.kill()
                program.keep_log(options.folder)
    lines, violations = checks_table(history.operations)
    # A cancelled connection of the telephony twin would be reported while the loop closes.
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    tables = [operations_table(history.operations, phases.begin, phases.end), lines]
    if options.outage:
        tables += outage_tables(history.operations, phases, violations)
    else:
        tables.insert(1, faults_table(history.operations))
    print("\n\n".join("\n".join(table) for table in tables), flush=True)
    return violations


async def _run_workloads(
    options: RunOptions, laboratory: Laboratory, cluster: LaboratoryCluster, workloads: list[Workload]
) -> RunPhases:
    """Runs workloads and faults for the time of the run, and then the final reads."""
    for workload in workloads:
        await workload.prepare()
    running = asyncio.gather(*(workload.run() for workload in workloads))
    phases = await (_run_outage if options.outage else _run_faults)(options, laboratory, cluster)
    print("Healed. Reading everything.", flush=True)
    # Users repeat operations that were not answered. The supervisor starts programs that failed to start.
    supervision = asyncio.create_task(cluster.supervise())
    async with asyncio.timeout(FINISH_DEADLINE_S):
        await running
        await cluster.wait_until_ready()
        await asyncio.gather(*(workload.finish() for workload in workloads))
    supervision.cancel()
    return phases


async def _run_faults(options: RunOptions, laboratory: Laboratory, cluster: LaboratoryCluster) -> RunPhases:
    begin = laboratory.history.now()
    nemesis = Nemesis(cluster, laboratory.history, laboratory.random("nemesis"), laboratory.ended)
    await asyncio.gather(nemesis.run(options.faults), _end_after_minutes(options, laboratory))
    return RunPhases(begin, end=laboratory.history.now())


async def _run_outage(options: RunOptions, laboratory: Laboratory, cluster: LaboratoryCluster) -> RunPhases:
    assert options.outage is not None
    phases = await run_outage(cluster, options.outage, options.minutes, laboratory.history.now)
    laboratory.ended.set()
    (options.folder / "phases.json").write_bytes(orjson.dumps(phases))
    return phases


async def _end_after_minutes(options: RunOptions, laboratory: Laboratory) -> None:
    await asyncio.sleep(options.minutes * 60)
    laboratory.ended.set()
