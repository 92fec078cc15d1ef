"""What mongod and Valkey have in common as private servers of ours: port, pid file, log, start, stop, restart.

A server listens on 127.0.0.1 only, on a port below the range that outgoing connections take theirs from: a client that
knocks at a closed port of that range may be connected to itself.
"""

import abc
import asyncio
import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import ClassVar

from server.processes import ON_LINUX, POLL_INTERVAL_S, ChildProcess, StartupError

HOST = "127.0.0.1"
PORTS = range(20_000, 30_000)
START_DEADLINE_S = 60.0
STOP_DEADLINE_S = 20.0
LOG_TAIL_BYTES = 65_536

_CANT_RUN = re.compile(r"error while loading shared libraries|version `GLIBC|Library not loaded|Exec format error")


class PortTaken(StartupError):
    """Something else listens on the port."""


class PrivateServer(abc.ABC):
    """One server with its data in one folder. Not for two tasks at a time."""

    name: ClassVar[str]
    variable: ClassVar[str]

    def __init__(self, folder: Path, binary: Path) -> None:
        self.folder = folder.absolute()
        self.binary = binary
        self.port = 0
        self._process: ChildProcess | None = None

    @abc.abstractmethod
    def command(self) -> list[str]:
        """The program and its arguments, the folder's absolute path among them: it tells our processes from others."""

    @abc.abstractmethod
    async def until_it_serves(self) -> None:
        """Returns when it does its work; does what is left to do for that. Called when it accepts connections."""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def pid(self) -> int | None:
        """None when it does not run."""
        return self._process.pid if self._process and self._process.exit_code is None else None

    async def start(self) -> None:
        """Serves when this returns, on the port of last time unless that is taken. Raises: StartupError."""
        self.data.mkdir(parents=True, exist_ok=True)
        await self._end_stale_process()
        self.port = self._remembered_port()
        for _ in range(5):
            with contextlib.suppress(PortTaken):
                return await self._start_on_port()
            self.port = _free_port()
        raise StartupError(f"{self.name} found no free port on {HOST}.")

    async def restart(self) -> None:
        """Runs again on the same port with the same data, whether or not it still ran. Raises: StartupError."""
        await self.stop()
        await self._start_on_port()

    async def stop(self, deadline_s: float = STOP_DEADLINE_S) -> None:
        """Ends it in an orderly way, or by force after `deadline_s`."""
        if self._process:
            await self._process.stop(deadline_s)
            self._pid_file.unlink(missing_ok=True)

    def kill(self) -> None:
        """As a crash does: SIGKILL, and nothing tidied up."""
        if self._process:
            self._process.kill()

    async def wait(self) -> int:
        """The exit code, as soon as it has ended."""
        assert self._process, "not started"
        return await self._process.wait()

    async def _start_on_port(self) -> None:
        if not _is_free(self.port):
            raise PortTaken(f"{self.name} can't listen on {HOST}:{self.port}: something else does.")
        self._spawn()
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                await self._until_it_serves_or_ends()
        except TimeoutError:
            await self.stop(0)
            raise StartupError(f"{self.name} did not start within {START_DEADLINE_S:g} s, see {self._log}.") from None
        except BaseException:  # also when called off
            await self.stop(2.0)
            raise
        (self.folder / "port").write_text(str(self.port))

    def _spawn(self) -> None:
        self._process = ChildProcess(self.command(), output=self._log)
        self._pid_file.write_text(str(self._process.pid))

    async def _until_it_serves_or_ends(self) -> None:
        serving = asyncio.ensure_future(self._until_it_accepts_and_serves())
        ended = asyncio.ensure_future(self.wait())
        try:
            await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                raise self._failure()
            await serving
        finally:
            ended.cancel()
            serving.cancel()
            await asyncio.wait({serving, ended})

    async def _until_it_accepts_and_serves(self) -> None:
        while not await _accepts(self.port):  # noqa: ASYNC110 - another process can set no event
            await asyncio.sleep(POLL_INTERVAL_S)
        await self.until_it_serves()

    def _failure(self) -> StartupError:
        """What the log says about the end of the process."""
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - LOG_TAIL_BYTES))
            lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
        text = "\n".join(lines)
        if "Address already in use" in text:
            return PortTaken(f"{self.name} can't listen on {HOST}:{self.port}: something else does.")
        if "No space left on device" in text:
            free_mb = shutil.disk_usage(self.folder).free // 2**20
            return StartupError(f"{self.name} found no space left in {self.folder} ({free_mb} MB free): free some.")
        if _CANT_RUN.search(text):
            return StartupError(
                f"{self.binary} can't run here ({lines[-1].strip()[:200]}): install what it misses, "
                f"or put another {self.name} on PATH, or set {self.variable}."
            )
        return StartupError(f"{self.name} ended at its start: {self.last_words(lines)[:300]} (see {self._log}).")

    def last_words(self, log_lines: list[str]) -> str:
        """The line of the log that says why it ended."""
        return log_lines[-1].strip() if log_lines else "without a word"

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    @property
    def _pid_file(self) -> Path:
        return self.folder / "pid"

    def _remembered_port(self) -> int:
        with contextlib.suppress(OSError, ValueError):
            return int((self.folder / "port").read_text())
        return _free_port()

    async def _end_stale_process(self) -> None:
        """Ends what an earlier run of ours left running on these data, and nothing else."""
        with contextlib.suppress(OSError, ValueError):
            pid = int(self._pid_file.read_text())
            for request, deadline_s in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)):
                ends_at = time.monotonic() + deadline_s
                while self._is_ours(pid) and time.monotonic() < ends_at:
                    os.kill(pid, request)
                    await asyncio.sleep(0.1)

    def _is_ours(self, pid: int) -> bool:
        # Process ids are used again; only the command line tells whose this one is.
        return str(self.data) in _command_line(pid)


def _command_line(pid: int) -> str:
    """Empty when there is no such process."""
    if ON_LINUX:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return ""
    listing = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)  # noqa: S603, S607
    return listing.stdout


async def _accepts(port: int) -> bool:
    with contextlib.suppress(OSError):
        _, writer = await asyncio.open_connection(HOST, port)
        writer.close()
        await writer.wait_closed()
        return True
    return False


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the servers do: a connection that is only winding down does not keep the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    return next(port for port in random.sample(PORTS, len(PORTS)) if _is_free(port))
