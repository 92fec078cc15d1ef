"""Setup of the benchmarks of calls: embedded servers with an empty database, a simulator, and call jobs."""

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from jobs.providers.telephony.simulator import CallScript, Simulator
from server.embedded import Mongod, Valkey, find_mongod, find_valkey
from server.worker import tune_interpreter
from storage.calls.job_changes import NewCallJob
from storage.calls.records import CallOutcome
from storage.mongo import Driver
from storage.stores import Stores, open_stores


@asynccontextmanager
async def servers(driver: Driver = "pymongo") -> AsyncIterator[tuple[Stores, int]]:
    """Yields stores on an empty database, and mongod's process id. Tunes this process like a worker."""
    tune_interpreter()
    with tempfile.TemporaryDirectory(prefix="noroshi-benchmark-") as folder:
        mongod, valkey = Mongod(Path(folder) / "mongodb", find_mongod()), Valkey(Path(folder) / "redis", find_valkey())
        await mongod.start()
        await valkey.start()
        try:
            async with open_stores(mongod.uri, valkey.url, "benchmark", driver) as stores:
                assert mongod.pid is not None
                yield stores, mongod.pid
        finally:
            await valkey.stop(0)
            await mongod.stop(0)


def simulator(stores: Stores, talk_s: Callable[[str], float], speed: float = 1.0) -> Simulator:
    """Returns a simulator that answers every call at once. `talk_s` gives a call's length by its id."""
    return Simulator(
        stores.mongo, stores.calls.report, speed, lambda id_: CallScript(0, talk_s(id_), CallOutcome.ANSWERED)
    )


async def launch(stores: Stores, org: str, numbers: int, concurrent: int, per_second: float) -> str:
    """Launches a job with a list of `numbers` phone numbers. Returns the id of the job."""
    await stores.call_jobs.set_limits(org, concurrent, per_second)
    csv = "phone_number\n" + "".join(f"+8190{10_000_000 + n}\n" for n in range(numbers))
    new = NewCallJob(org, "bench", "List", "Hello", None, None, 1, 60, 60)
    return (await stores.call_jobs.launch(new, csv, None)).id
