"""Faults, and the nemesis, which injects them: each fault is healed before the next one begins."""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pymongo.errors import PyMongoError

from tests.lab.cluster import MONGO_PORT, REDIS_PORT, SENTINEL_PORT, LaboratoryCluster
from tests.lab.history import HistoryRecorder
from tests.lab.hosts import LaboratoryHost
from tests.lab.programs import LaboratoryProgram

SUSPENDED_S = 20.0
RESTART_DEADLINE_S = 60.0
BLOCK_BYTES = 1 << 20


@dataclass
class Nemesis:
    """Injects faults that are chosen at random, one after another. Named after the part of Jepsen that does so."""

    cluster: LaboratoryCluster
    history: HistoryRecorder
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
        self.cluster.start_stopped()

    async def pause(self, seconds: float) -> None:
        """Sleeps, but not beyond the end of the run."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ended.wait()

    async def choose_host(self) -> LaboratoryHost:
        """Returns the host of the primary in half of the cases, otherwise any host."""
        if self.rng.random() < 0.5:
            with suppress(PyMongoError, LookupError):
                return (await self.cluster.primary()).host
        return self.rng.choice(self.cluster.hosts)

    async def choose_program(self) -> LaboratoryProgram:
        """Returns the primary in a third of the cases, otherwise any program."""
        if self.rng.random() < 0.33:
            with suppress(PyMongoError, LookupError):
                return await self.cluster.primary()
        return self.rng.choice(list(self.cluster.programs.values()))

    def others(self, host: LaboratoryHost) -> list[LaboratoryHost]:
        """Returns the hosts other than this one."""
        return [each for each in self.cluster.hosts if each is not host]


async def kill(nemesis: Nemesis) -> str:
    """Kills any program, and waits some seconds. `Nemesis.heal` then starts the program again."""
    program = await nemesis.choose_program()
    program.kill()
    await nemesis.pause(nemesis.rng.uniform(0, 8))
    return f"killed {program.name}"


async def partition(nemesis: Nemesis) -> str:
    """Cuts a host from the two others: both ways, one direction, or on and off."""
    host = await nemesis.choose_host()
    direction = nemesis.rng.choice(("both ways", "incoming", "outgoing", "flapping"))
    for _ in range(4 if direction == "flapping" else 1):
        drop_packets(nemesis, host, direction)
        await nemesis.pause(nemesis.rng.uniform(1, 3) if direction == "flapping" else nemesis.rng.uniform(6, 18))
        for each in nemesis.cluster.hosts:
            each.accept_all()
        if direction == "flapping":
            await nemesis.pause(nemesis.rng.uniform(0.3, 2))
    return f"partitioned {host.name}: {direction}"


def drop_packets(nemesis: Nemesis, host: LaboratoryHost, direction: str) -> None:
    """Drops packets between the host and the other hosts: incoming, outgoing, or both."""
    others = nemesis.others(host)
    if direction != "outgoing":
        host.drop_from(others)
    if direction != "incoming":
        for other in others:
            other.drop_from([host])


async def suspend(nemesis: Nemesis) -> str:
    """Stops any program for 20 seconds. It keeps its connections and its memory."""
    program = await nemesis.choose_program()
    program.send(signal.SIGSTOP)
    try:
        await nemesis.pause(SUSPENDED_S)
    finally:
        program.send(signal.SIGCONT)
    return f"suspended {program.name}"


async def change_clock(nemesis: Nemesis) -> str:
    """Sets the clock of a web process or a worker minutes ahead or behind. Only the database's clock should count."""
    program = nemesis.rng.choice(nemesis.cluster.of_kind("web", "worker"))
    minutes = nemesis.rng.uniform(-4, 4)
    program.set_clock(60 * minutes)
    try:
        await nemesis.pause(nemesis.rng.uniform(5, 20))
    finally:
        program.set_clock(0)
    return f"{program.name} {60 * minutes:+.0f} s"


async def fill_disk(nemesis: Nemesis) -> str:
    """Fills the disk of a host, so that its mongod can't write, and frees it again."""
    host = await nemesis.choose_host()
    filler = host.disk / "filler"
    try:
        await asyncio.to_thread(fill, filler)
        await nemesis.pause(nemesis.rng.uniform(5, 15))
    finally:
        filler.unlink(missing_ok=True)
    return f"filled the disk of {host.name}"


def fill(file: Path) -> None:
    """Appends to the file until its disk is full."""
    with suppress(OSError), file.open("ab", buffering=0) as out:
        while True:
            out.write(bytes(BLOCK_BYTES))


async def lose_packets(nemesis: Nemesis) -> str:
    """Drops a share of the packets to a host, or all packets to one kind of server, without informing their sender."""
    host = await nemesis.choose_host()
    match = nemesis.rng.choice(
        (
            f"numgen random mod 100 < {nemesis.rng.randrange(10, 40)}",
            f"tcp dport {{ {REDIS_PORT}, {SENTINEL_PORT} }}",
            f"tcp dport {MONGO_PORT}",
        )
    )
    host.drop_from(nemesis.others(host), match)
    await nemesis.pause(nemesis.rng.uniform(6, 18))
    return f"{host.name} lost packets: {match}"


async def restart(nemesis: Nemesis) -> str:
    """Restarts all programs of a kind one after the other with SIGTERM, as a deployment does."""
    kind = nemesis.rng.choice(("web", "worker", "mongod"))
    for program in nemesis.cluster.of_kind(kind):
        await asyncio.to_thread(program.terminate)
        program.start()
        with suppress(TimeoutError):
            await nemesis.cluster.wait_until_ready(RESTART_DEADLINE_S)
    return f"restarted each {kind}"


async def elect(nemesis: Nemesis) -> str:
    """Makes the primary step down."""
    try:
        return f"{await nemesis.cluster.step_down()} stepped down"
    except (PyMongoError, LookupError) as error:
        return f"no primary stepped down: {type(error).__name__}"


InjectFault = Callable[[Nemesis], Awaitable[str]]
FAULTS: dict[str, InjectFault] = {
    "kill": kill,
    "partition": partition,
    "suspend": suspend,
    "clock": change_clock,
    "disk": fill_disk,
    "loss": lose_packets,
    "restart": restart,
    "election": elect,
}
