"""`noroshi up` with real processes that are started, killed and stopped."""

import asyncio
import os
import re
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pymongo
import pytest

from server.processes import ChildProcess, StartupError
from server.settings import Settings
from server.supervisor import keep_running, run_up
from storage.migrations.steps import DATA_VERSION
from tests.databases import fresh_database
from tests.preloaded import preloaded_command
from tests.product import RunningProduct, environment, eventually, processes, running_product
from tests.server.refused_starts import refusal as refusal_of_process

PROCESS_NAMES = ("noroshi web", "noroshi worker", "noroshi standby", "mongod", "valkey-server")


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProduct]:
    """Yields a running product for the tests that leave it unchanged."""
    with running_product(tmp_path_factory.mktemp("up") / "data", "--web", "2") as product:
        yield product


def all_processes_run(product: RunningProduct) -> bool:
    """Returns whether exactly the six processes run: two web processes, and one of each other kind."""
    commands = product.children().values()
    names = sorted(name for command in commands for name in PROCESS_NAMES if name in command)
    return names == sorted((*PROCESS_NAMES, "noroshi web")) and len(commands) == len(names)


def is_ready(product: RunningProduct) -> bool:
    try:
        with urlopen(f"{product.url}/readyz", timeout=30) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def test_up_prints_start_time_and_addresses(product: RunningProduct) -> None:
    assert is_ready(product)
    assert re.search(r"ready in \d+\.\d s", product.output)
    assert f"product   {product.url}/\n" in product.output
    assert f"GraphiQL  {product.url}/graphiql\n" in product.output


def test_first_start_prints_a_link_for_the_first_admin(product: RunningProduct) -> None:
    assert product.url
    assert eventually(lambda: f"{product.url}/#first-admin=" in product.output), product.output


def test_process_list_shows_process_names(product: RunningProduct) -> None:
    names = ["noroshi standby", "noroshi web", "noroshi web", "noroshi worker"]
    assert eventually(lambda: sorted(name for name in product.children().values() if "noroshi " in name) == names)
    assert eventually(lambda: all_processes_run(product))
    assert processes()[product.process.pid][1] == "noroshi up"


def test_standby_takes_the_place_of_killed_worker(product: RunningProduct) -> None:
    assert eventually(lambda: all_processes_run(product)), product.errors
    standby_pid = product.child("noroshi standby")
    os.kill(product.child("noroshi worker"), signal.SIGKILL)
    assert eventually(lambda: product.children().get(standby_pid) == "noroshi worker"), product.errors
    assert eventually(lambda: all_processes_run(product)), product.errors


def test_worker_is_restarted_without_a_standby(product: RunningProduct) -> None:
    assert eventually(lambda: all_processes_run(product)), product.errors
    killed_pids = [product.child(name) for name in ("noroshi standby", "noroshi worker")]
    for pid in killed_pids:
        os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: not set(killed_pids) & set(product.children()) and all_processes_run(product))


@pytest.mark.parametrize("name", ["noroshi worker", "mongod", "valkey-server"])
def test_killed_process_is_restarted_and_product_serves(product: RunningProduct, name: str) -> None:
    assert eventually(lambda: all_processes_run(product)), product.errors
    killed_pid = product.child(name)
    os.kill(killed_pid, signal.SIGKILL)
    assert eventually(lambda: killed_pid not in product.children() and all_processes_run(product)), product.errors
    assert eventually(lambda: is_ready(product)), product.errors


def test_other_web_process_serves_during_restart(product: RunningProduct) -> None:
    assert eventually(lambda: all_processes_run(product)), product.errors
    killed_pid = product.child("noroshi web")
    os.kill(killed_pid, signal.SIGKILL)
    ends_at = time.monotonic() + 1
    while time.monotonic() < ends_at:
        assert is_ready(product)
        time.sleep(0.02)
    assert eventually(lambda: killed_pid not in product.children() and all_processes_run(product)), product.errors


def test_second_start_on_used_data_dir_is_refused(product: RunningProduct) -> None:
    line = refusal_of_process(product.data_dir.parent, "up", "--port", "0", "--data-dir", str(product.data_dir))
    assert line == (
        f"noroshi: The data folder {product.data_dir} is in use by another `noroshi`, process {product.process.pid}: "
        "stop that process, or choose another folder with --data-dir.\n"
    )
    assert is_ready(product)


def refusal(**settings: object) -> str:
    """Runs the product with settings that it must refuse, and returns the error, which the command prints."""
    with pytest.raises(StartupError) as refused:
        run_up(Settings(**settings), web=1, workers=1, say=fail_when_ready, started_at=time.monotonic())  # type: ignore[arg-type]
    return str(refused.value)


def fail_when_ready(line: str) -> None:
    """Fails the test as soon as the product prints that it is ready."""
    raise AssertionError(f"The product must not start: {line}")


def test_used_port_error_has_a_remedy(data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupant:
        port = occupant.getsockname()[1]
        error = refusal(port=port, data_dir=data_dir)
    assert error == f"Can't listen on 127.0.0.1:{port}, it is in use: choose another with --port or --host."
    assert not data_dir.exists()


def test_unreachable_mongodb_error_hides_password(data_dir: Path) -> None:
    error = refusal(port=0, data_dir=data_dir, mongodb_uri="mongodb://user:hunter2@127.0.0.1:1/")
    assert error.startswith("MONGODB_URI (127.0.0.1:1): no answer within 3 s.")
    assert "\n" not in error
    assert "hunter2" not in error


def test_failing_web_process_ends_start(
    data_dir: Path, tmp_path: Path, database: str, mongodb_uri: str, redis_url: str
) -> None:
    # The worker only waits, because its start costs much.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\nif 'web' in sys.orig_argv: os._exit(7)\nif 'worker' in sys.orig_argv: signal.pause()\n"
    )
    servers = {"MONGODB_URI": mongodb_uri, "REDIS_URL": redis_url, "NOROSHI_DATABASE": database}
    command, output = ["up", "--port", "0", "--data-dir", str(data_dir)], tmp_path / "output"
    process = preloaded_command(command, environment(PYTHONPATH=str(tmp_path), **servers), output)
    assert process.wait(60) == 1
    assert output.read_text().endswith("noroshi: `noroshi web` ends as soon as it starts; see the log lines above.\n")
    assert "Traceback" not in output.read_text()


def test_demo_with_identity_provider_is_refused(data_dir: Path) -> None:
    error = refusal(port=0, demo=True, data_dir=data_dir, auth_jwks_url="https://issuer.example/keys")
    assert error.startswith("Tokens come from the identity provider")
    assert not data_dir.exists()


def test_ctrl_c_during_start_of_mongod_leaves_no_process(data_dir: Path) -> None:
    interrupt_once_started(RunningProduct(data_dir, start=preloaded_command), "mongod")


def test_ctrl_c_during_start_of_web_leaves_no_process(
    data_dir: Path, database: str, mongodb_uri: str, redis_url: str
) -> None:
    servers = {"MONGODB_URI": mongodb_uri, "REDIS_URL": redis_url, "NOROSHI_DATABASE": database}
    interrupt_once_started(RunningProduct(data_dir, start=preloaded_command, **servers), "noroshi web")


def interrupt_once_started(product: RunningProduct, child: str) -> None:
    """Ends the product with Ctrl-C as soon as it has the child process, and expects that nothing remains."""
    product.child(child)
    children = product.children()
    assert product.end() == 130
    assert not set(children) & set(processes())
    assert "Traceback" not in product.errors


def test_demo_on_running_servers_migrates_and_prints_links(data_dir: Path, mongodb_uri: str, redis_url: str) -> None:
    """With the addresses of running servers, the product starts no embedded servers. It migrates before it serves."""
    with (
        fresh_database(mongodb_uri, redis_url) as name,
        pymongo.MongoClient[dict[str, Any]](mongodb_uri) as client,
    ):
        client[name]["users"].insert_one({"_id": {"org": "acme", "id": "old"}, "handle": "old"})
        servers = {"MONGODB_URI": mongodb_uri, "REDIS_URL": redis_url, "NOROSHI_DATABASE": name}
        with running_product(data_dir, "--demo", start=preloaded_command, **servers) as product:
            assert "build the indexes" in product.errors
            assert client[name]["data_version"].find_one({"version": DATA_VERSION})
            names = ["noroshi standby", "noroshi web", "noroshi worker"]
            assert eventually(lambda: sorted(product.children().values()) == names)
            assert_link_of_every_user(product)


def assert_link_of_every_user(product: RunningProduct) -> None:
    from server.demo import DEMO_USERS

    assert eventually(lambda: f"{product.url}/graphiql#token=" in product.output, 60), product.errors
    for user in DEMO_USERS:
        line = next(line for line in product.output.splitlines() if f"(@{user.handle}, " in line)
        assert re.search(rf"{user.organization_id}.*  {product.url}/#token=[\w.-]+$", line)


def test_killed_supervisor_leaves_no_process_and_restarts(product: RunningProduct) -> None:
    """Must be the last test of the product, whose data folder it starts again. Ctrl-C then ends the databases last."""
    children = product.children()
    product.process.kill()
    product.process.wait()
    assert eventually(lambda: not set(children) & set(processes()))
    restarted = RunningProduct(product.data_dir, start=preloaded_command)
    assert is_ready(restarted)
    assert_databases_end_last(restarted)


def assert_databases_end_last(product: RunningProduct) -> None:
    """Ends the product with Ctrl-C."""
    children = product.children()
    product.interrupt()
    while product.process.poll() is None:
        alive = " ".join(command for pid, (_, command) in processes().items() if pid in children)
        assert "mongod" in alive or not alive
        assert "valkey" in alive or "noroshi w" not in alive
        time.sleep(0.01)
    assert product.process.returncode == 130
    assert not set(children) & set(processes())
    assert "Traceback" not in product.errors


class CrashingProcess:
    """A process that exits as soon as it starts. Its first `failures` restarts fail."""

    name = "crashing"

    def __init__(self, failures: int = 0) -> None:
        self.starts: list[float] = []
        self._failures = failures
        self._process = self._run()

    def _run(self) -> ChildProcess:
        self.starts.append(time.monotonic())
        return ChildProcess([sys.executable, "-S", "-c", "raise SystemExit(3)"])

    async def wait(self) -> int:
        return await self._process.wait()

    async def restart(self) -> None:
        if self._failures:
            self._failures -= 1
            raise StartupError("not now")
        self._process = self._run()


@asynccontextmanager
async def supervised(process: CrashingProcess) -> AsyncIterator[None]:
    """Keeps the process running until the block ends."""
    supervision = asyncio.create_task(keep_running(process))
    yield
    supervision.cancel()
    await asyncio.wait({supervision})
    await process.wait()


async def wait_for_starts(process: CrashingProcess, times: int) -> None:
    async with asyncio.timeout(60):
        while len(process.starts) < times:
            await asyncio.sleep(0.05)


@pytest.mark.anyio
async def test_pauses_between_restarts_grow() -> None:
    process = CrashingProcess()
    async with supervised(process):
        await wait_for_starts(process, 4)
    pauses_s = [later - earlier for earlier, later in pairwise(process.starts)]
    assert [pause_s >= min_s for pause_s, min_s in zip(pauses_s, (0.2, 0.4, 0.8), strict=False)] == [True] * 3


@pytest.mark.anyio
async def test_failed_restart_is_retried() -> None:
    process = CrashingProcess(failures=2)
    async with supervised(process):
        await wait_for_starts(process, 2)
