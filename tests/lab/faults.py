"""Faults: each is injected, lasts a while, and is healed before the next one."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from pymongo.errors import PyMongoError

from tests.lab.cluster import Cluster
from tests.lab.history import History
from tests.lab.hosts import Host
from tests.lab.programs import Program


@dataclass
class Nemesis:
    """Injects faults by chance, one after another."""

    cluster: Cluster
    history: History
    rng: random.Random
    ended: asyncio.Event
    injected: Counter[str] = field(default_factory=Counter)

    async def run(self, names: list[str]) -> None:
        """Injects faults of these names until the run ends. Each fault heals what it has broken."""
        while not self.ended.is_set() and names:
            await self.pause(self.rng.uniform(2, 7))
            if self.ended.is_set():
                return
            name = self.rng.choice(names)
            begin, detail = self.history.now(), "failed"
            try:
                detail = await FAULTS[name](self)
            finally:
                self.injected[name] += 1
                await asyncio.to_thread(self.heal)
                self.history.record("nemesis", "faults", name, {}, begin, "ok", detail)

    def heal(self) -> None:
        """Accepts all packets, and starts every program that does not run."""
        for host in self.cluster.hosts:
            host.accept_all()
        for program in self.cluster.programs.values():
            if not program.is_running:
                program.start()

    async def pause(self, seconds: float) -> None:
        """Sleeps, but not beyond the end of the run."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ended.wait()

    async def choose_host(self) -> Host:
        """Returns the host of the primary in half of the cases, otherwise any host."""
        if self.rng.random() < 0.5:
            with suppress(PyMongoError):
                return (await self.cluster.primary()).host
        return self.rng.choice(self.cluster.hosts)

    async def choose_program(self) -> Program:
        """Returns the primary in a third of the cases, otherwise any program."""
        if self.rng.random() < 0.33:
            with suppress(PyMongoError):
                return await self.cluster.primary()
        return self.rng.choice(list(self.cluster.programs.values()))

    def others(self, host: Host) -> list[Host]:
        """Returns the hosts other than this one."""
        return [each for each in self.cluster.hosts if each is not host]


async def kill(nemesis: Nemesis) -> str:
    """Kills any program, and starts it again after some seconds."""
    program = await nemesis.choose_program()
    program.kill()
    await nemesis.pause(nemesis.rng.uniform(0, 8))
    return f"killed {program.name}"


async def partition(nemesis: Nemesis) -> str:
    """Cuts a host from the two others: both ways, one way, or on and off."""
    host = await nemesis.choose_host()
    way = nemesis.rng.choice(("apart", "deaf", "mute", "flapping"))
    for _ in range(4 if way == "flapping" else 1):
        cut(nemesis, host, way)
        await nemesis.pause(nemesis.rng.uniform(1, 3) if way == "flapping" else nemesis.rng.uniform(6, 18))
        for each in nemesis.cluster.hosts:
            each.accept_all()
        if way == "flapping":
            await nemesis.pause(nemesis.rng.uniform(0.3, 2))
    return f"{host.name} {way}"


def cut(nemesis: Nemesis, host: Host, way: str) -> None:
    """Drops packets to the host (unless it is mute), and packets from the host (unless it is deaf)."""
    others = nemesis.others(host)
    if way != "mute":
        host.drop_from(others)
    if way != "deaf":
        for other in others:
            other.drop_from([host])


Fault = Callable[[Nemesis], Awaitable[str]]
FAULTS: dict[str, Fault] = {"kill": kill, "partition": partition}
