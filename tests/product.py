"""The whole product as processes of its own: `noroshi up`, started, observed and killed from outside."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")
NOROSHI = [sys.executable, "-P", "-m", "server.commands.cli"]


def eventually(look: Callable[[], Found], deadline_s: float = 60.0, interval_s: float = 0.05) -> Found:
    """Returns the first true value of `look`, or its last value when the deadline passes."""
    ends_at = time.monotonic() + deadline_s
    while not (found := look()) and time.monotonic() < ends_at:
        time.sleep(interval_s)
    return found


def environment(**more: str) -> dict[str, str]:
    """Returns this process's environment without the product's settings, plus the given ones."""
    own = ("NOROSHI_", "MONGODB_URI", "REDIS_URL")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)} | more


def processes() -> dict[int, tuple[int, str]]:
    """Returns every process by id, with its parent's id and its command line, without zombies.

    Oldest first where /proc exists: ids wrap around, so a new process may have the lowest.
    """
    rows = _proc() if Path("/proc/self/stat").exists() else _ps()
    return {pid: (parent, command.strip()) for pid, parent, state, command in rows if state != "Z"}


def _proc() -> list[tuple[int, int, str, str]]:
    started: list[tuple[int, tuple[int, int, str, str]]] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            started.append((int(fields[19]), (int(folder.name), int(fields[1]), fields[0], command)))
    return [row for _, row in sorted(started)]


def _ps() -> Iterator[tuple[int, int, str, str]]:
    listing = subprocess.run(["ps", "-Ao", "pid=,ppid=,state=,args="], capture_output=True, text=True, check=True)
    for line in listing.stdout.splitlines():
        pid, parent, state, command = line.split(None, 3)
        yield int(pid), int(parent), state[0], command


class Product:
    """One `noroshi up`. Its output goes to files beside the data folder."""

    def __init__(
        self, data_dir: Path, *arguments: str, program: Sequence[str | Path] = NOROSHI, **variables: str
    ) -> None:
        self.data_dir = data_dir
        self._out, self._err = data_dir.with_name("out"), data_dir.with_name("err")
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                [*program, "up", "--port", "0", "--data-dir", str(data_dir), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=environment(**variables),
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self._out.read_text()

    @property
    def errors(self) -> str:
        return self._err.read_text()

    @property
    def url(self) -> str:
        """Waits until the product is ready, and returns its address."""
        eventually(lambda: "  product " in self.output or self.process.poll() is not None, 120)
        assert "  product " in self.output, f"not ready: {self.output}\n{self.errors}"
        return self.output.partition("  product ")[2].split()[0].rstrip("/")

    def children(self) -> dict[int, str]:
        """Returns the command lines of its running child processes."""
        return {pid: command for pid, (parent, command) in processes().items() if parent == self.process.pid}

    def child(self, *names: str) -> int:
        """Waits for a child process whose command line holds one of the names, and returns the oldest one's id."""
        found = eventually(
            lambda: [pid for pid, command in self.children().items() if any(n in command for n in names)]
        )
        assert found, f"none of {names}: {self.children()}\n{self.errors}"
        return found[0]

    def interrupt(self) -> None:
        """Sends SIGINT to the whole process group, as Ctrl-C in a terminal does."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> int:
        """Interrupts it, and returns the exit code."""
        self.interrupt()
        return self.process.wait(120)


@contextmanager
def running(
    data_dir: Path, *arguments: str, program: Sequence[str | Path] = NOROSHI, **variables: str
) -> Iterator[Product]:
    """Starts a product and ends it afterwards, if it still runs."""
    product = Product(data_dir, *arguments, program=program, **variables)
    try:
        assert product.url
        yield product
    finally:
        if product.process.poll() is None:
            product.end()
