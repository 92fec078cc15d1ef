"""One run: starts the deployment, lets workloads and faults act, heals everything, reads everything, and checks."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import orjson

from tests.lab.cluster import Cluster, plan_cluster
from tests.lab.faults import Nemesis
from tests.lab.history import History
from tests.lab.hosts import create_hosts
from tests.lab.outages import separate_disks, suffer
from tests.lab.outside import outside_services
from tests.lab.recovery import Phases, outage_tables
from tests.lab.report import checks_table, faults_table, operations_table
from tests.lab.session import Laboratory
from tests.lab.workloads.catalogue import Workload, create_workloads

HOSTS = ("east", "west", "north")
SETTLE_DEADLINE_S = 900.0


@dataclass(frozen=True)
class Plan:
    """The wishes of the command line."""

    seed: str
    minutes: float
    faults: list[str]
    areas: list[str]
    folder: Path
    outage: str | None = None


async def run(plan: Plan) -> int:
    """Runs the plan, prints the table, and returns the number of violations."""
    history = History(plan.folder / "history.jsonl")
    hosts = create_hosts(HOSTS, plan.folder / "disks")
    async with outside_services() as outside:
        cluster = plan_cluster(hosts, plan.folder, outside.telephony.url, with_clocks="clock" in plan.faults)
        laboratory = Laboratory(history, cluster.web_urls, plan.seed)
        if plan.outage:
            separate_disks(cluster)
        try:
            await cluster.start()
            workloads = create_workloads(laboratory, outside, plan.areas)
            phases = await _act(plan, laboratory, cluster, workloads)
        finally:
            history.close()
            for program in cluster.programs.values():
                program.kill()
                program.keep_log(plan.folder)
    lines, violations = checks_table(history.operations)
    # A cancelled connection of the telephony twin would be reported while the loop closes.
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    tables = [operations_table(history.operations, phases.begin, phases.end), lines]
    if plan.outage:
        tables += outage_tables(history.operations, phases, violations)
    else:
        tables.insert(1, faults_table(history.operations))
    print("\n\n".join("\n".join(table) for table in tables), flush=True)
    return violations


async def _act(plan: Plan, laboratory: Laboratory, cluster: Cluster, workloads: list[Workload]) -> Phases:
    """Runs workloads and faults for the plan's time, and then the final reads."""
    for workload in workloads:
        await workload.prepare()
    acting = asyncio.gather(*(workload.run() for workload in workloads))
    phases = await (_suffer_outage if plan.outage else _suffer_faults)(plan, laboratory, cluster)
    print("Healed. Reading everything.", flush=True)
    # Users repeat what was not answered. Without a supervisor, a program that failed to start would stay away.
    supervision = asyncio.create_task(cluster.supervise())
    async with asyncio.timeout(SETTLE_DEADLINE_S):
        await acting
        await cluster.wait_until_ready()
        await asyncio.gather(*(workload.settle() for workload in workloads))
    supervision.cancel()
    return phases


async def _suffer_faults(plan: Plan, laboratory: Laboratory, cluster: Cluster) -> Phases:
    begin = laboratory.history.now()
    nemesis = Nemesis(cluster, laboratory.history, laboratory.random("nemesis"), laboratory.ended)
    await asyncio.gather(nemesis.run(plan.faults), _end(plan, laboratory))
    return Phases(begin, end=laboratory.history.now())


async def _suffer_outage(plan: Plan, laboratory: Laboratory, cluster: Cluster) -> Phases:
    assert plan.outage is not None
    phases = await suffer(cluster, plan.outage, plan.minutes, laboratory.history.now)
    laboratory.ended.set()
    (plan.folder / "phases.json").write_bytes(orjson.dumps(phases))
    return phases


async def _end(plan: Plan, laboratory: Laboratory) -> None:
    await asyncio.sleep(plan.minutes * 60)
    laboratory.ended.set()
