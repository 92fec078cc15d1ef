"""Events while packets between a web process and Redis are dropped, and its connections stay open.

One web process reaches Redis through a TCP proxy, another one directly. A member posts through both, and a socket of
the first process receives the events. A round has a healthy phase and two faults. The first fault discards the
traffic of the connections that are open when it begins, as after the expiry of a NAT entry. The second discards all
traffic, also of new connections.
"""

import asyncio
import itertools
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import httpx2
import typer
from rich.console import Console
from rich.table import Table

from server.embedded import Mongod, Valkey, find_mongod, find_valkey
from tests.client import Client, SubscriptionSocket, client
from tests.e2e.chat_topic import POSTED_EVENTS, ChatTopic, create_chat_topic, post, subscribed
from tests.serving import WebProcess, web_process
from tests.storage.faulty_proxy import FaultyProxy, faulty_proxy

PAUSE_S = 0.1
"""Time between two posts through the same process."""

POLL_S = 0.1
REST_S = 3.0
"""Time for the last events of a phase to arrive."""

MAX_NOTICED_S = 10.0

InjectFault = Callable[[FaultyProxy], Awaitable[None]]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


async def drop_nothing(proxy: FaultyProxy) -> None:
    """Drops no packets."""


async def drop_open_connections(proxy: FaultyProxy) -> None:
    proxy.drop_traffic_of_open_connections()


FAULTS: dict[str, InjectFault] = {
    "nothing": drop_nothing,
    "open connections": drop_open_connections,
    "all traffic": FaultyProxy.drop_traffic,
}


@dataclass
class PhaseResults:
    """Results of all phases with the same fault, or without one."""

    latencies_s: list[float] = field(default_factory=list)
    post_durations_s: list[float] = field(default_factory=list)
    noticed_s: list[float] = field(default_factory=list)
    """Seconds from each fault until the hub gave its connection up."""

    hub_disconnects: int = 0
    lost: int = 0
    unavailable_s: list[float] = field(default_factory=list)
    """Seconds of each phase during which /readyz reported that Redis does not answer."""

    def cells(self) -> list[str]:
        """Returns the cells of the table."""
        latencies = sorted(self.latencies_s)
        return [
            f"{len(latencies):,}",
            f"{latencies[len(latencies) // 2] * 1000:.0f} ms",
            f"{latencies[-1]:.2f} s",
            f"{max(self.post_durations_s) * 1000:.0f} ms",
            " ".join(f"{each:.1f}" for each in self.noticed_s) or "-",
            " ".join(f"{each:.1f}" for each in self.unavailable_s),
            str(self.lost),
            str(self.hub_disconnects),
        ]


@dataclass
class HalfOpenScenario:
    """A subscriber behind the proxy, and a member with a connection to either process."""

    web: WebProcess
    proxy: FaultyProxy
    chat: ChatTopic
    posters: list[Client]
    socket: SubscriptionSocket
    posted_at_s: dict[str, float] = field(default_factory=dict)
    received_at_s: dict[str, float] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    async def receive(self) -> None:
        """Records events until the task is cancelled. Raises if an event is repeated, or if the socket is closed."""
        while True:
            text = (await self.socket.next_event())["message"]["text"]
            assert text not in self.received_at_s, f"repeated: {text}"
            self.received_at_s[text] = time.perf_counter()

    async def post_until(self, ends_at_s: float, poster: Client, phase: PhaseResults, texts: list[str]) -> None:
        """Posts one message after the other."""
        while (began_s := time.perf_counter()) < ends_at_s:
            texts.append(str(next(self.numbers)))
            self.posted_at_s[texts[-1]] = began_s
            await post(self.chat, poster, texts[-1])
            phase.post_durations_s.append(time.perf_counter() - began_s)
            await asyncio.sleep(PAUSE_S)

    async def run_phase(self, phase: PhaseResults, seconds: float, fault: InjectFault) -> None:
        """Begins a fault, posts for some seconds, ends the fault, and waits for the last events."""
        disconnects, texts = await self.hub_disconnects(), list[str]()
        await fault(self.proxy)
        ends_at_s = time.perf_counter() + seconds
        posting = (self.post_until(ends_at_s, each, phase, texts) for each in self.posters)
        watching = self.watch_hub(phase, disconnects, ends_at_s), self.watch_readiness(phase, ends_at_s)
        await asyncio.gather(*watching, *posting)
        await self.proxy.restore()
        await asyncio.sleep(REST_S)
        phase.hub_disconnects += await self.hub_disconnects() - disconnects
        arrived = [text for text in texts if text in self.received_at_s]
        phase.latencies_s += [self.received_at_s[text] - self.posted_at_s[text] for text in arrived]
        phase.lost += len(texts) - len(arrived)

    async def watch_hub(self, phase: PhaseResults, disconnects: int, ends_at_s: float) -> None:
        """Records after how many seconds the hub gives its connection up."""
        began_s = time.perf_counter()
        while (now_s := time.perf_counter()) < ends_at_s:
            if await self.hub_disconnects() > disconnects:
                phase.noticed_s.append(now_s - began_s)
                return
            await asyncio.sleep(POLL_S)

    async def watch_readiness(self, phase: PhaseResults, ends_at_s: float) -> None:
        """Records for how long /readyz reports that Redis does not answer."""
        phase.unavailable_s.append(0.0)
        async with httpx2.AsyncClient(timeout=30) as http:
            while (now_s := time.perf_counter()) < ends_at_s:
                state = (await http.get(f"{self.web.url}/readyz")).json()
                await asyncio.sleep(POLL_S)
                phase.unavailable_s[-1] += 0 if state["redis"] == "ok" else time.perf_counter() - now_s

    async def hub_disconnects(self) -> int:
        """Returns how many connections the hub behind the proxy has lost."""
        text = (await self.posters[0].http.get(f"{self.web.url}/metrics")).text
        match = re.search(r"^noroshi_hub_disconnects_total(?:{[^}]*})? ([\d.e+]+)$", text, re.MULTILINE)
        return int(float(match[1])) if match else 0


@asynccontextmanager
async def open_scenario(folder: Path) -> AsyncIterator[HalfOpenScenario]:
    """Starts MongoDB, Redis, the proxy and two web processes, and subscribes to a new topic."""
    mongod, valkey = Mongod(folder / "mongodb", find_mongod()), Valkey(folder / "redis", find_valkey())
    async with AsyncExitStack() as stack:
        for server in (mongod, valkey):
            await server.start()
            stack.push_async_callback(server.stop)
        proxy = await stack.enter_async_context(faulty_proxy(valkey.url))
        direct = stack.enter_context(web_process(folder / "direct", mongod.uri, valkey.url))
        web = await asyncio.to_thread(
            lambda: stack.enter_context(web_process(folder / "web", mongod.uri, proxy.redis_url, direct))
        )
        posters = [await stack.enter_async_context(client(each.url, direct.token())) for each in (web, direct)]
        chat = await create_chat_topic(posters[0])
        socket, _ = await stack.enter_async_context(subscribed(chat, posters[0], document=POSTED_EVENTS))
        yield HalfOpenScenario(web, proxy, chat, posters, socket)


async def measure(rounds: int, seconds: float) -> dict[str, PhaseResults]:
    """Alternates healthy phases and both faults."""
    phases = {name: PhaseResults() for name in FAULTS}
    with TemporaryDirectory() as folder:
        async with open_scenario(Path(folder)) as scenario:
            receiving = asyncio.create_task(scenario.receive())
            for _ in range(rounds):
                for name, fault in FAULTS.items():
                    await scenario.run_phase(phases[name], seconds, fault)
                    assert not receiving.done(), f"The socket ended: {receiving.exception()!r}"
            receiving.cancel()
    return phases


@app.command()
def main(
    rounds: Annotated[int, typer.Option(help="Faults of each kind.")] = 5,
    seconds: Annotated[float, typer.Option(help="Duration of each phase.")] = 20.0,
) -> None:
    """Prints the latency of events with and without faults. Fails if a fault is noticed late or an event is lost."""
    phases = asyncio.run(measure(rounds, seconds))
    columns = ["dropped", "events", "p50", "max", "slowest post", "noticed after, s", "readyz reports Redis, s"]
    table = Table(*columns, "lost", "disconnects of the hub")
    for name, phase in phases.items():
        table.add_row(name, *phase.cells())
    Console(width=160).print(table)
    faults = [phases[name] for name, fault in FAULTS.items() if fault is not drop_nothing]
    are_noticed = all(len(each.noticed_s) == rounds and max(each.noticed_s) <= MAX_NOTICED_S for each in faults)
    if not are_noticed or any(phase.lost for phase in phases.values()):
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
