"""Runs `noroshi up` as a process tree that a test observes and kills from outside."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from tests.preloaded import PreloadedProcess

Value = TypeVar("Value")
NOROSHI = [sys.executable, "-P", "-m", "server.commands.cli"]


def eventually(condition: Callable[[], Value], deadline_s: float = 60.0, interval_s: float = 0.05) -> Value:
    """Calls the condition until its value is true or the deadline passes. Returns the last value."""
    ends_at = time.monotonic() + deadline_s
    while not (value := condition()) and time.monotonic() < ends_at:
        time.sleep(interval_s)
    return value


NO_WRITE_LIMITS = {
    f"NOROSHI_{name}": "1000000000"
    for name in (
        "MESSAGES_PER_MINUTE",
        "REACTIONS_PER_MINUTE",
        "FOLLOWS_PER_MINUTE",
        "POSTS_PER_MINUTE",
        "SCHEDULES_PER_MINUTE",
        "JOINS_PER_MINUTE",
        "OPERATIONS_PER_MINUTE",
    )
}
"""Settings of tests and benchmarks, whose users write faster than people."""


def environment(**more: str) -> dict[str, str]:
    """Returns this process's environment without the product's settings, without limits of writes, and with `more`."""
    settings = ("NOROSHI_", "MONGODB_URI", "REDIS_URL")
    return {name: value for name, value in os.environ.items() if not name.startswith(settings)} | NO_WRITE_LIMITS | more


def processes() -> dict[int, tuple[int, str]]:
    """Returns the parent's id and the command line of every process by process id, without zombies.

    Where /proc exists, the oldest process is first. Process ids do not tell the age, because they wrap around.
    """
    rows = _rows_of_proc() if Path("/proc/self/stat").exists() else _rows_of_ps()
    return {pid: (parent, command.strip()) for pid, parent, state, command in rows if state != "Z"}


def _rows_of_proc() -> list[tuple[int, int, str, str]]:
    rows: list[tuple[int, tuple[int, int, str, str]]] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            rows.append((int(fields[19]), (int(folder.name), int(fields[1]), fields[0], command)))
    return [row for _, row in sorted(rows)]


def _rows_of_ps() -> Iterator[tuple[int, int, str, str]]:
    listing = subprocess.run(["ps", "-Ao", "pid=,ppid=,state=,args="], capture_output=True, text=True, check=True)
    for line in listing.stdout.splitlines():
        pid, parent, state, command = line.split(None, 3)
        yield int(pid), int(parent), state[0], command


@contextmanager
def sigstopped(pid: int) -> Iterator[None]:
    """Stops a process with SIGSTOP, and continues it afterwards."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class ObservedProduct:
    """A running `noroshi up`, perhaps started by another process of the test run.

    Its standard output and standard error are in files beside the data folder.
    """

    def __init__(self, data_dir: Path, pid: int) -> None:
        self.data_dir, self.pid = data_dir, pid
        self._out, self._err = data_dir.with_name("out"), data_dir.with_name("err")

    @property
    def output(self) -> str:
        return self._out.read_text()

    @property
    def errors(self) -> str:
        return self._err.read_text()

    @property
    def url(self) -> str:
        """The product's address, once it is ready."""
        assert "  product " in self.output, f"The product is not ready: {self.output}\n{self.errors}"
        return self.output.partition("  product ")[2].split()[0].rstrip("/")

    def children(self) -> dict[int, str]:
        """Returns the command lines of the running child processes by process id."""
        return {pid: command for pid, (parent, command) in processes().items() if parent == self.pid}

    def child(self, *names: str) -> int:
        """Waits for a child process whose command line contains one of the names. Returns the id of the oldest."""
        pids = eventually(lambda: [pid for pid, command in self.children().items() if any(n in command for n in names)])
        assert pids, f"No child process is named {names}: {self.children()}\n{self.errors}"
        return pids[0]

    def database_port(self, program: str) -> int:
        """Returns the port of an embedded server from its command line."""
        command = next(command for command in self.children().values() if program in command.split()[0]).split()
        return int(command[command.index("--port") + 1])

    def interrupt(self) -> None:
        """Sends SIGINT to the whole process group, as Ctrl-C in a terminal does."""
        os.killpg(self.pid, signal.SIGINT)


StartedProcess = subprocess.Popen[bytes] | PreloadedProcess
StartOfCommand = Callable[[list[str], dict[str, str], Path, Path], StartedProcess]
"""Starts a `noroshi` command with an environment, and writes its output and its errors to two files."""


def start_program(
    command: Sequence[str],
    environment: dict[str, str],
    output: Path,
    errors: Path,
    program: Sequence[str | Path] = NOROSHI,
) -> subprocess.Popen[bytes]:
    """Starts a `noroshi` command as users do, in a session of its own."""
    with output.open("w") as out, errors.open("w") as err:
        return subprocess.Popen(
            [*program, *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=environment,
            start_new_session=True,
        )


class RunningProduct(ObservedProduct):
    """A running `noroshi up` that this process has started."""

    def __init__(
        self, data_dir: Path, *arguments: str, start: StartOfCommand = start_program, **variables: str
    ) -> None:
        command = ["up", "--port", "0", "--data-dir", str(data_dir), *arguments]
        self.process = start(command, environment(**variables), data_dir.with_name("out"), data_dir.with_name("err"))
        super().__init__(data_dir, self.process.pid)

    @property
    def url(self) -> str:
        """Waits until the product is ready, and returns its address."""
        eventually(lambda: "  product " in self.output or self.process.poll() is not None, 120)
        return super().url

    def end(self) -> int:
        """Interrupts the product, and returns its exit code."""
        self.interrupt()
        return self.process.wait(120)


@contextmanager
def running_product(
    data_dir: Path, *arguments: str, start: StartOfCommand = start_program, **variables: str
) -> Iterator[RunningProduct]:
    """Starts a product, and ends it afterwards if it still runs."""
    product = RunningProduct(data_dir, *arguments, start=start, **variables)
    try:
        assert product.url
        yield product
    finally:
        if product.process.poll() is None:
            product.end()


def first_admin_link(product: ObservedProduct) -> str:
    """Waits until the product has printed the link that makes the first ADMIN, and returns the link."""
    link = eventually(lambda: re.search(r"http\S+#first-admin=[\w-]{43}", product.output))
    assert link, product.output
    return link[0]
