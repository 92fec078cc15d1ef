"""`noroshi up` as the operator meets it: real processes, started, killed, and gone."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from urllib.request import urlopen

import pytest

from server.processes import ChildProcess, StartupError
from server.supervisor import keep_running
from tests.product import NOROSHI, Product, environment, eventually, processes, running

CREW = ("noroshi web", "noroshi worker", "mongod", "valkey-server")


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """One product for the tests that leave it as they found it."""
    with running(tmp_path_factory.mktemp("up") / "data", "--web", "2") as product:
        yield product


def is_whole(product: Product) -> bool:
    """Whether each of the five runs under its name. A start without its server is made again."""
    commands = product.children().values()
    names = sorted(name for command in commands for name in CREW if name in command)
    return names == sorted((*CREW, "noroshi web")) and len(commands) == len(names)


def is_ready(product: Product) -> bool:
    try:
        with urlopen(f"{product.url}/readyz", timeout=30) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def up(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A start that is expected to fail."""
    command = [*NOROSHI, "up", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment(**variables))


def test_it_says_how_long_it_took_and_where_it_serves(product: Product) -> None:
    assert is_ready(product)
    assert re.search(r"ready in \d+\.\d s", product.output)
    assert f"product   {product.url}/\n" in product.output
    assert f"GraphiQL  {product.url}/graphiql\n" in product.output


def test_the_process_list_shows_each_process_by_its_name(product: Product) -> None:
    ours = ["noroshi web", "noroshi web", "noroshi worker"]
    assert eventually(lambda: sorted(name for name in product.children().values() if "noroshi " in name) == ours)
    assert eventually(lambda: is_whole(product))
    assert processes()[product.process.pid][1] == "noroshi up"


@pytest.mark.parametrize("name", CREW)
def test_what_is_killed_runs_again_and_the_product_serves(product: Product, name: str) -> None:
    assert eventually(lambda: is_whole(product)), product.errors
    victim = product.child(name)
    os.kill(victim, signal.SIGKILL)
    assert eventually(lambda: victim not in product.children() and is_whole(product)), product.errors
    assert eventually(lambda: is_ready(product)), product.errors


def test_the_other_web_process_serves_while_one_is_replaced(product: Product) -> None:
    assert eventually(lambda: is_whole(product)), product.errors
    victim = product.child("noroshi web")
    os.kill(victim, signal.SIGKILL)
    until = time.monotonic() + 1
    while time.monotonic() < until:
        assert is_ready(product)
    assert eventually(lambda: is_whole(product)), product.errors


def test_a_second_start_on_the_same_data_is_refused_and_harms_nothing(product: Product) -> None:
    refused = up("--port", "0", "--data-dir", str(product.data_dir))
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr == (
        f"noroshi: The data folder {product.data_dir} is in use by `noroshi up`, process {product.process.pid}: "
        "stop that process, or choose another folder with --data-dir.\n"
    )
    assert is_ready(product)


def test_a_taken_port_is_one_line_with_the_remedy(data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupant:
        port = occupant.getsockname()[1]
        refused = up("--port", str(port), "--data-dir", str(data_dir))
    assert refused.returncode == 1
    assert refused.stderr == (
        f"noroshi: Can't listen on 127.0.0.1:{port}, it is in use: choose another with --port or --host.\n"
    )
    assert not data_dir.exists()


def test_an_unreachable_mongodb_is_one_line_without_the_password(data_dir: Path) -> None:
    refused = up("--port", "0", "--data-dir", str(data_dir), MONGODB_URI="mongodb://user:hunter2@127.0.0.1:1/")
    assert refused.returncode == 1
    assert refused.stderr.startswith("noroshi: MONGODB_URI (127.0.0.1:1): no answer within 3 s.")
    assert refused.stderr.count("\n") == 1
    assert "hunter2" not in refused.stderr


def test_a_web_process_that_never_starts_ends_the_start(data_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os, sys\nif 'web' in sys.orig_argv: os._exit(7)\n")
    refused = up("--port", "0", "--data-dir", str(data_dir), PYTHONPATH=str(tmp_path))
    assert refused.returncode == 1
    assert refused.stderr.endswith("noroshi: `noroshi web` ends as soon as it starts; see the log lines above.\n")
    assert "Traceback" not in refused.stderr


def test_demo_users_can_not_be_signed_in_for_an_identity_provider(data_dir: Path) -> None:
    refused = up("--demo", "--data-dir", str(data_dir), NOROSHI_AUTH_JWKS_URL="https://issuer.example/keys")
    assert refused.returncode == 1
    assert refused.stderr.startswith("noroshi: Tokens come from the identity provider")


def test_a_product_on_given_servers_starts_none_of_its_own(
    data_dir: Path, database: str, mongodb_uri: str, redis_url: str
) -> None:
    with running(data_dir, MONGODB_URI=mongodb_uri, REDIS_URL=redis_url, NOROSHI_DATABASE=database) as product:
        assert eventually(lambda: sorted(product.children().values()) == ["noroshi web", "noroshi worker"])


def test_ctrl_c_ends_everything_with_the_databases_last(data_dir: Path) -> None:
    product = Product(data_dir)
    assert product.url
    children = product.children()
    product.interrupt()
    while product.process.poll() is None:
        alive = " ".join(command for pid, (_, command) in processes().items() if pid in children)
        assert "mongod" in alive or not alive
        assert "valkey" in alive or "noroshi w" not in alive
    assert product.process.returncode == 130
    assert not set(children) & set(processes())
    assert "Traceback" not in product.errors


@pytest.mark.parametrize("present", ["mongod", "noroshi web"])
def test_ctrl_c_during_the_start_leaves_nothing(data_dir: Path, present: str) -> None:
    product = Product(data_dir)
    product.child(present)
    children = product.children()
    assert product.end() == 130
    assert not set(children) & set(processes())
    assert "Traceback" not in product.errors


def test_a_killed_supervisor_leaves_no_process_and_can_be_started_again(data_dir: Path) -> None:
    product = Product(data_dir)
    assert product.url
    children = product.children()
    product.process.kill()
    product.process.wait()
    assert eventually(lambda: not set(children) & set(processes()))
    with running(data_dir) as again:
        assert is_ready(again)


def test_demo_prints_a_working_sign_in_link_for_every_demo_user(data_dir: Path) -> None:
    from server.demo import DEMO_USERS

    with running(data_dir, "--demo") as product:
        assert eventually(lambda: product.output.count("#token=") == len(DEMO_USERS), 60), product.errors
        for user in DEMO_USERS:
            line = next(line for line in product.output.splitlines() if f"(@{user.handle}, " in line)
            assert re.search(rf"{user.organization_id}.*  {product.url}/#token=[\w.-]+$", line)


class Crashing:
    """What ends as soon as it starts."""

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
async def kept_running(member: Crashing) -> AsyncIterator[None]:
    keeping = asyncio.create_task(keep_running(member))
    yield
    keeping.cancel()
    await asyncio.wait({keeping})
    await member.wait()


async def until_started(member: Crashing, times: int) -> None:
    async with asyncio.timeout(60):
        while len(member.starts) < times:
            await asyncio.sleep(0.05)


@pytest.mark.anyio
async def test_the_pauses_between_restarts_grow() -> None:
    member = Crashing()
    async with kept_running(member):
        await until_started(member, 4)
    pauses = [later - sooner for sooner, later in pairwise(member.starts)]
    assert [pause >= at_least for pause, at_least in zip(pauses, (0.2, 0.4, 0.8), strict=False)] == [True] * 3


@pytest.mark.anyio
async def test_a_restart_that_fails_is_tried_again() -> None:
    member = Crashing(failures=2)
    async with kept_running(member):
        await until_started(member, 2)
