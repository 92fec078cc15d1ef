"""Outages: servers or disk space that the product needs are missing for minutes, while users continue.

A run has many faults, or one outage. A run with an outage has three phases: before, during and after the outage.
`recovery.py` compares the phases.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pymongo.errors import PyMongoError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from tests.lab.cluster import REDIS_PORT, LaboratoryCluster
from tests.lab.faults import fill
from tests.lab.hosts import mount_disk
from tests.lab.programs import LaboratoryProgram
from tests.lab.recovery import RunPhases

BEFORE_S, AFTER_S = 60.0, 90.0
SAMPLE_S = 5.0
RETRY_S = 0.2
PRODUCT_DISK, PRODUCT_DISK_SIZE = "product", "64m"


@dataclass
class ClusterOutage:
    """An outage of a cluster. `disks` are filled, and `missing` programs are killed and kept away."""

    cluster: LaboratoryCluster
    disks: list[Path] = field(default_factory=list)
    missing: list[LaboratoryProgram] = field(default_factory=list)
    are_serving: Callable[[], Awaitable[bool]] | None = None
    """Returns whether the servers that the outage stops serve again. None: they serve as soon as it ends."""
    restarted: list[LaboratoryProgram] = field(default_factory=list)
    """Programs that are restarted in the middle of the outage, to check that they start during it."""

    is_over: bool = False

    async def run(self, seconds: float) -> None:
        """Begins the outage, and ends it after `seconds`."""
        self.cluster.kept_away |= {program.name for program in self.missing}
        for program in self.missing:
            program.kill()
        filling = asyncio.create_task(self._keep_full())
        await asyncio.sleep(seconds / 2)
        for program in self.restarted:
            await asyncio.to_thread(program.terminate)
        await asyncio.sleep(seconds / 2)
        self.is_over = True
        await filling
        for disk in self.disks:
            (disk / "filler").unlink(missing_ok=True)
        self.cluster.kept_away.clear()
        self.cluster.start_stopped()

    async def wait_until_served(self) -> None:
        """Waits until the servers that the outage stops serve again."""
        while self.are_serving is not None and not await self.are_serving():
            await asyncio.sleep(RETRY_S)

    async def _keep_full(self) -> None:
        """Fills the disks again and again, because programs may delete files on them."""
        while not self.is_over:
            for disk in self.disks:
                await asyncio.to_thread(fill, disk / "filler")
            await asyncio.sleep(RETRY_S)


async def full_disks_of_mongodb(cluster: LaboratoryCluster) -> ClusterOutage:
    """Returns an outage that fills the disks of all three members of the replica set."""
    disks = [host.disk / "mongodb" for host in cluster.hosts]
    return ClusterOutage(cluster, disks, are_serving=lambda: _has_primary(cluster))


async def full_disks_of_the_product(cluster: LaboratoryCluster) -> ClusterOutage:
    """Returns an outage that fills the disks with the logs and temporary files of web processes and workers."""
    programs = cluster.of_kind("web", "worker")
    return ClusterOutage(cluster, [each.log.parent for each in programs], restarted=programs[:1])


async def no_redis(cluster: LaboratoryCluster) -> ClusterOutage:
    """Returns an outage that kills all of Redis: master, replica and Sentinels."""
    return ClusterOutage(
        cluster, missing=cluster.of_kind("redis", "sentinel"), are_serving=lambda: _has_master(cluster)
    )


async def no_primary(cluster: LaboratoryCluster) -> ClusterOutage:
    """Returns an outage that kills the primary and another member, so that the last one can't be elected."""
    primary = await cluster.primary()
    other = next(each for each in cluster.of_kind("mongod") if each is not primary)
    return ClusterOutage(cluster, missing=[primary, other], are_serving=lambda: _has_primary(cluster))


OUTAGES: dict[str, Callable[[LaboratoryCluster], Awaitable[ClusterOutage]]] = {
    "disk-mongodb": full_disks_of_mongodb,
    "disk-web": full_disks_of_the_product,
    "redis": no_redis,
    "primary": no_primary,
}


def separate_disks(cluster: LaboratoryCluster) -> None:
    """Gives MongoDB, and the product's processes, disks of their own. Call it before the programs start."""
    for host in cluster.hosts:
        mount_disk(host.disk / "mongodb")
        mount_disk(host.disk / PRODUCT_DISK, PRODUCT_DISK_SIZE)
    for program in cluster.of_kind("web", "worker"):
        program.log = program.host.disk / PRODUCT_DISK / program.log.name
        program.variables = {**program.variables, "TMPDIR": str(program.log.parent), "NOROSHI_LOG_LEVEL": "debug"}


async def run_outage(cluster: LaboratoryCluster, name: str, minutes: float, now: Callable[[], float]) -> RunPhases:
    """Runs the phases before, during and after the outage. Returns when each phase began, and samples of memory."""
    phases = RunPhases(begin=now())
    sampling = asyncio.create_task(_sample_memory(cluster, phases, now))
    supervision = asyncio.create_task(cluster.supervise())
    await asyncio.sleep(BEFORE_S)
    outage = await OUTAGES[name](cluster)
    phases.outage_begin = now()
    print(f"{name} begins.", flush=True)
    await outage.run(60 * minutes)
    phases.outage_end = now()
    await outage.wait_until_served()
    phases.served = now()
    print(f"{name} ends.", flush=True)
    await asyncio.sleep(AFTER_S)
    phases.end = now()
    for task in (sampling, supervision):
        task.cancel()
    return phases


async def _sample_memory(cluster: LaboratoryCluster, phases: RunPhases, now: Callable[[], float]) -> None:
    while True:
        for program in cluster.programs.values():
            if (size := program.resident_mib()) is not None:
                phases.memory.append((program.name, now(), size))
        await asyncio.sleep(SAMPLE_S)


async def _has_primary(cluster: LaboratoryCluster) -> bool:
    with suppress(PyMongoError, LookupError):
        await cluster.primary()
        return True
    return False


async def _has_master(cluster: LaboratoryCluster) -> bool:
    for program in cluster.of_kind("redis"):
        async with Redis(host=program.host.address, port=REDIS_PORT, socket_timeout=1) as client:
            with suppress(RedisError, OSError, TimeoutError):
                await client.set("laboratory", "served")
                return True
    return False
