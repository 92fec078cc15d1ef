"""Events to five receivers through kills of workers and elections, and the delay of the topic's own subscribers.

Two receivers are healthy, one is slow, one fails for a minute, and one is down. They run in this process. The delay is
also measured beside five healthy receivers. With `--pin`, workers, receivers and writers have a processor of their own.
"""

import asyncio
import itertools
import os
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from benchmarks.cpu import cpu_times
from benchmarks.fanout import LoadProcess, load_process
from benchmarks.fanout_load import SubscriptionLoadSpec
from benchmarks.fanout_posting import FIELD, QUERY
from benchmarks.servers import FOLDER_PREFIX, pin_to_core
from benchmarks.tables import percentile, print_table
from tests.e2e.webhook_deployment import (
    TopicWriter,
    WebhookDeployment,
    broken_promises,
    closed_port,
    create_writers,
    ordinary_worker,
    repeats,
    webhook_deployment,
)
from tests.twins.event_receiver import EventReceiver
from tests.twins.twin import running_twin
from tests.waiting import until

TOPICS = 5
SOCKETS = 20
SLOW_S = 0.02
DEADLINE_S = 400.0
POLL_S = 0.2
PROCESSES = ["web", "worker", "worker", "mongod", "mongod", "mongod", "receivers, writers", "sockets", "others"]
"""Names of the processes whose use of a processor is printed."""

START_WORKER = ordinary_worker

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Plan:
    """The number of events, their rate, the faults, and the slices without faults."""

    events: int
    rate: float
    kills: int
    elections: int
    outage_s: float
    retry_s: float
    slices: int
    slice_s: float
    pin: bool = False
    """Whether workers, receivers and writers have a processor of their own, until a worker is killed."""


@dataclass
class Receivers:
    """Receivers by name, and the id of the webhook of the last one, which is down."""

    by_name: dict[str, EventReceiver]
    down_id: str = ""

    def received(self) -> dict[str, int]:
        """Returns how many different messages each receiver that lives has."""
        return {name: len({id_ for id_, _ in each.messages}) for name, each in self.by_name.items()}

    def have_slice(self, count: int) -> bool:
        """Returns whether all receivers that live have so many messages, but the failing one."""
        return all(received >= count or name == "failing" for name, received in self.received().items())


@asynccontextmanager
async def healthy_receivers(deployment: WebhookDeployment) -> AsyncIterator[Receivers]:
    """Runs five healthy receivers, with a webhook each."""
    running = {f"healthy {number}": EventReceiver() for number in range(5)}
    async with AsyncExitStack() as stack:
        ids = []
        for receiver in running.values():
            await stack.enter_async_context(running_twin(receiver))
            ids.append(await deployment.create_webhook(receiver))
        yield Receivers(running)
        for id_ in ids:
            await deployment.delete_webhook(id_)


@asynccontextmanager
async def no_receivers(_deployment: WebhookDeployment) -> AsyncIterator[Receivers]:
    """Runs no receivers."""
    yield Receivers({})


@asynccontextmanager
async def receivers(deployment: WebhookDeployment) -> AsyncIterator[Receivers]:
    """Runs receivers, with a webhook each. The failing one answers 500 until its status is changed."""
    running = {name: EventReceiver() for name in ("healthy", "also healthy", "slow", "failing")}
    running["slow"].delay_s, running["failing"].status = SLOW_S, 500
    async with AsyncExitStack() as stack:
        ids = []
        for receiver in running.values():
            await stack.enter_async_context(running_twin(receiver))
            ids.append(await deployment.create_webhook(receiver))
        down = EventReceiver()
        down.url = stack.enter_context(closed_port())
        ids.append(await deployment.create_webhook(down))
        yield Receivers(running, ids[-1])
        for id_ in ids:
            await deployment.delete_webhook(id_)


@dataclass
class Slices:
    """The latencies at the sockets, and percent of a processor by process id in each slice."""

    latencies_ms: list[float] = field(default_factory=list)
    cpu: list[dict[str, float]] = field(default_factory=list)

    def cpu_row(self) -> list[str]:
        """Returns the mean percents of the processes, in the order of PROCESSES."""
        return [
            f"{sum(values) / len(values):.0f}" for values in zip(*(each.values() for each in self.cpu), strict=True)
        ]


@dataclass
class WebhookBenchmark:
    """The deployment, writers who post at a steady rate, and sockets that are subscribed to the first topic."""

    deployment: WebhookDeployment
    writers: Sequence[TopicWriter]
    load: LoadProcess
    plan: Plan
    reported: int = 0
    """Number of messages of the first topic whose latencies were returned."""

    @property
    def posted(self) -> int:
        """The number of acknowledged messages."""
        return sum(len(writer.timestamps) for writer in self.writers)

    def pin(self) -> None:
        """Pins workers and this process to the second processor, and all other processes to the first one."""
        apart = {*(worker.process.pid for worker in self.deployment.workers), os.getpid()}
        for pid in self._pids():
            pin_to_core(int(pid in apart), pid)

    async def write(self, count: int) -> None:
        """Posts `count` messages, one after another at the rate of the plan. Writers who were held up catch up."""
        began_s, writers = time.monotonic(), len(self.writers)

        async def write_to(first: int, writer: TopicWriter) -> None:
            for number in range(first, max(count, writers), writers):
                await asyncio.sleep(max(began_s + number / self.plan.rate - time.monotonic(), 0))
                await writer.post()

        await asyncio.gather(*itertools.starmap(write_to, enumerate(self.writers)))

    async def latencies_ms(self) -> list[float]:
        """Returns the latencies at the sockets since the last call. Raises: AssertionError for a lost event."""
        await until(self._have_all, DEADLINE_S, POLL_S)
        report = await self.load.execute("report")
        assert not report["faults"], report["faults"]
        await self.load.execute("reset")
        self.reported = len(self.writers[0].timestamps)
        latencies: list[float] = report["latencies_ms"]
        return latencies

    async def _have_all(self) -> bool:
        count = len(self.writers[0].timestamps) - self.reported
        return bool((await self.load.execute("progress"))["least"] >= count)

    async def measure_slices(self) -> dict[str, Slices]:
        """Returns what was measured beside no and five webhooks, in interleaved slices without faults."""
        conditions = {
            "without webhooks": no_receivers,
            "five healthy webhooks": healthy_receivers,
            "five webhooks": receivers,
        }
        measured = {name: Slices() for name in conditions}
        for _ in range(self.plan.slices):
            for name, condition in conditions.items():
                async with condition(self.deployment) as running:
                    await self._measure_slice(running, measured[name])
        return measured

    async def _measure_slice(self, running: Receivers, slices: Slices) -> None:
        before, cpu = self.posted, cpu_times(self._pids())
        await self.write(round(self.plan.rate * self.plan.slice_s))
        slices.latencies_ms += await self.latencies_ms()
        slices.cpu.append(cpu_times(self._pids()).percent_since(cpu))
        await until(partial(running.have_slice, self.posted - before), DEADLINE_S, POLL_S)

    def _pids(self) -> list[int]:
        """Returns the ids of the processes, in the order of PROCESSES."""
        deployment = self.deployment
        members = [member.pid or 0 for member in deployment.members.members]
        workers = [worker.process.pid for worker in deployment.workers]
        return [deployment.web.process.pid, *workers, *members, os.getpid(), self.load.pid]

    async def measure_faults(self) -> tuple[list[list[str]], list[float]]:
        """Posts all events while processes are killed. Returns a row for each receiver, and the latencies."""
        before = {writer.chat.topic: len(writer.timestamps) for writer in self.writers}
        async with receivers(self.deployment) as running:
            first = self.posted
            recovery = asyncio.create_task(self._recover(running))
            await asyncio.gather(self.write(self.plan.events), self._inject(first))
            latencies = await self.latencies_ms()
            seconds = await self._wait_for_receivers(running, self.posted - first)
            await recovery
            posted = {writer.chat.topic: writer.timestamps[before[writer.chat.topic] :] for writer in self.writers}
            rows = []
            for name, receiver in running.by_name.items():
                assert broken_promises(receiver, posted) == [], name
                figures = len(receiver.events()), len(receiver.refused), repeats(receiver)
                rows.append([name, *(f"{figure:,}" for figure in figures), f"{seconds[name]:.0f}"])
            await until(lambda: self._is_disabled(running), DEADLINE_S, POLL_S)
            return [*rows, ["down", "0", "all", "0", "disabled"]], latencies

    async def _recover(self, running: Receivers) -> None:
        await asyncio.sleep(self.plan.outage_s)
        running.by_name["failing"].status = 200

    async def _inject(self, first: int) -> None:
        """Kills the oldest worker each time, and makes primaries step down, spread over the events."""
        kills, elections = self.plan.kills, self.plan.elections
        faults = [((number + 0.5) / kills, "kill") for number in range(kills)]
        faults += [((number + 1) / (elections + 1), "election") for number in range(elections)]
        for share, fault in sorted(faults):
            await until(partial(self._has_posted, first + share * self.plan.events * 0.99), DEADLINE_S, POLL_S)
            if fault == "kill":
                await self.deployment.kill_worker(self.deployment.workers[0])
            else:
                await self.deployment.members.step_down()

    def _has_posted(self, count: float) -> bool:
        return self.posted >= count

    async def _wait_for_receivers(self, running: Receivers, count: int) -> dict[str, float]:
        """Waits until all receivers that live have all messages. Returns the seconds from now that each took."""
        began_s, seconds = time.monotonic(), dict[str, float]()
        while len(seconds) < len(running.by_name):
            assert time.monotonic() < began_s + DEADLINE_S, f"{running.received()} of {count}"
            for name, received in running.received().items():
                if received >= count:
                    seconds.setdefault(name, time.monotonic() - began_s)
            await asyncio.sleep(POLL_S)
        return seconds

    async def _is_disabled(self, running: Receivers) -> bool:
        return bool((await self.deployment.webhook(running.down_id))["disabledReason"] == "FAILING")


async def measure(plan: Plan) -> None:
    """Measures the slices without faults, then the events through faults. Prints two tables."""
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder:
        async with webhook_deployment(Path(folder), START_WORKER, plan.retry_s) as deployment:
            await asyncio.gather(deployment.start_worker(), deployment.start_worker())
            writers, web = await create_writers(deployment, TOPICS), deployment.web
            tokens = [web.token("user0") for _ in range(SOCKETS)]
            port, topic = int(web.url.rpartition(":")[2]), {"topicId": writers[0].chat.topic}
            async with load_process(SubscriptionLoadSpec(port, tokens, QUERY, FIELD, topic, SOCKETS)) as load:
                await load.execute("connect")
                benchmark = WebhookBenchmark(deployment, writers, load, plan)
                await benchmark.write(TOPICS)
                await benchmark.latencies_ms()
                if plan.pin:
                    benchmark.pin()
                measured = await benchmark.measure_slices()
                rows, through_faults = await benchmark.measure_faults()
    title = f"{plan.events:,} events, {plan.kills} kills of workers, {plan.elections} elections"
    print_table(title, ["receiver", "received", "refused", "repeats", "all received after s"], rows)
    latencies = {name: slices.latencies_ms for name, slices in measured.items()}
    latencies["five webhooks, faults"] = through_faults
    print_table(
        "Percent of a processor, mean of the slices",
        ["", *PROCESSES],
        [[name, *slices.cpu_row()] for name, slices in measured.items()],
    )
    print_table(
        f"Latency at {SOCKETS} sockets of a topic, {plan.rate:g} messages a second to {TOPICS} topics",
        ["", "events", "p50 ms", "p99 ms", "max ms"],
        [
            [name, f"{len(each):,}", *(f"{percentile(each, p):.0f}" for p in (50, 99, 100))]
            for name, each in latencies.items()
        ],
    )


@app.command()
def main(
    events: Annotated[int, typer.Option(min=1, help="Number of events that are sent through faults.")] = 10_000,
    kills: Annotated[int, typer.Option(min=0, help="How many workers are killed with SIGKILL meanwhile.")] = 10,
    elections: Annotated[int, typer.Option(min=0, help="How many primaries step down meanwhile.")] = 2,
    rate: Annotated[float, typer.Option(min=1, help="Messages a second.")] = 40.0,
    outage_s: Annotated[float, typer.Option("--outage", help="Seconds for which a receiver fails.")] = 60.0,
    retry_s: Annotated[float, typer.Option("--retry", help="Seconds until a webhook that fails is disabled.")] = 90.0,
    slices: Annotated[int, typer.Option(min=1, help="Slices without faults, each with and without webhooks.")] = 4,
    slice_s: Annotated[float, typer.Option("--slice", help="Seconds of a slice.")] = 5.0,
    pin: Annotated[
        bool, typer.Option("--pin", help="Give workers, receivers and writers a processor of their own.")
    ] = False,
) -> None:
    """Measures deliveries through faults and latencies at sockets, and prints three tables."""
    uvloop.run(measure(Plan(events, rate, kills, elections, outage_s, retry_s, slices, slice_s, pin)))


if __name__ == "__main__":
    app()
