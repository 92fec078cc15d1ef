"""The base of the embedded servers: port, pid file, log, start, stop and restart.

A server listens on 127.0.0.1 only. Its port is below the range of ephemeral ports. A client that connects to a closed
port of that range may be connected to itself.
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

_INCOMPATIBLE = re.compile(r"error while loading shared libraries|version `GLIBC|Library not loaded|Exec format error")


class PortInUseError(StartupError):
    """Another process listens on the port."""


class PrivateServer(abc.ABC):
    """One server process with its data in one folder. Not safe for concurrent use by several tasks."""

    name: ClassVar[str]
    address_variable: ClassVar[str]
    """The setting that names a running server instead."""
    program_variable: ClassVar[str]
    """The setting that names another program."""

    def __init__(self, folder: Path, binary: Path) -> None:
        self.folder = folder.absolute()
        self.binary = binary
        self.port = 0
        self._process: ChildProcess | None = None

    @abc.abstractmethod
    def command(self) -> list[str]:
        """Returns the program and its arguments, which include the folder's absolute path to identify the process."""

    @abc.abstractmethod
    async def wait_until_ready(self) -> None:
        """Configures the server if needed, and returns once it serves. Called once the server accepts connections."""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def pid(self) -> int | None:
        """The process id; None when the server does not run."""
        return self._process.pid if self._process and self._process.exit_code is None else None

    async def start(self) -> None:
        """Starts the server, on the port of its last run if that is free, and waits until it serves.

        Raises: StartupError.
        """
        self.data.mkdir(parents=True, exist_ok=True)
        await self._end_stale_process()
        self.port = self._remembered_port()
        for _ in range(5):
            with contextlib.suppress(PortInUseError):
                return await self._start_on_port()
            self.port = _free_port()
        raise StartupError(f"{self.name} found no free port on {HOST}.")

    async def restart(self) -> None:
        """Stops the server if it runs, and starts it on the same port with the same data. Raises: StartupError."""
        await self.stop()
        await self._start_on_port()

    async def stop(self, deadline_s: float = STOP_DEADLINE_S) -> None:
        """Sends SIGTERM, and SIGKILL if the server still runs after `deadline_s`."""
        if self._process:
            await self._process.stop(deadline_s)
            self._pid_file.unlink(missing_ok=True)

    def kill(self) -> None:
        """Sends SIGKILL and cleans nothing up, as in a crash."""
        if self._process:
            self._process.kill()

    async def wait(self) -> int:
        """Waits for the end of the process and returns its exit code."""
        assert self._process, "not started"
        return await self._process.wait()

    async def _start_on_port(self) -> None:
        if not _is_free(self.port):
            raise PortInUseError(f"{self.name} can't listen on {HOST}:{self.port}: another process does.")
        self._spawn()
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                await self._wait_until_ready_or_ended()
        except TimeoutError:
            await self.stop(0)
            raise StartupError(f"{self.name} did not start within {START_DEADLINE_S:g} s, see {self._log}.") from None
        except BaseException:  # also when cancelled
            await self.stop(2.0)
            raise
        (self.folder / "port").write_text(str(self.port))

    def _spawn(self) -> None:
        self._process = ChildProcess(self.command(), output=self._log)
        self._pid_file.write_text(str(self._process.pid))

    async def _wait_until_ready_or_ended(self) -> None:
        serving = asyncio.ensure_future(self._wait_until_accepting_and_ready())
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

    async def _wait_until_accepting_and_ready(self) -> None:
        while not await _accepts_connections(self.port):  # noqa: ASYNC110 - another process can set no event
            await asyncio.sleep(POLL_INTERVAL_S)
        await self.wait_until_ready()

    def _failure(self) -> StartupError:
        """Returns an error that explains from the log why the process ended."""
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - LOG_TAIL_BYTES))
            lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
        text = "\n".join(lines)
        if "Address already in use" in text:
            return PortInUseError(f"{self.name} can't listen on {HOST}:{self.port}: another process does.")
        if "No space left on device" in text:
            free_mb = shutil.disk_usage(self.folder).free // 2**20
            return StartupError(f"{self.name} found no space left in {self.folder} ({free_mb} MB free): free some.")
        if _INCOMPATIBLE.search(text):
            return StartupError(
                f"{self.binary} can't run here ({lines[-1].strip()[:200]}): install the missing library, or name "
                f"another program with {self.program_variable}, or use a running server with {self.address_variable}."
            )
        return StartupError(f"{self.name} ended at its start: {self.failure_reason(lines)[:300]} (see {self._log}).")

    def failure_reason(self, log_lines: list[str]) -> str:
        """Returns the part of the log that says why the process ended."""
        return log_lines[-1].strip() if log_lines else "it logged nothing"

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    @property
    def _pid_file(self) -> Path:
        return self.folder / "pid"

    def _remembered_port(self) -> int:
        return stored_port(self.folder) or _free_port()

    async def _end_stale_process(self) -> None:
        """Ends a server that an earlier run left running on the same data, and no other process."""
        with contextlib.suppress(OSError, ValueError):
            pid = int(self._pid_file.read_text())
            for signal_number, deadline_s in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)):
                ends_at = time.monotonic() + deadline_s
                while self._is_own_process(pid) and time.monotonic() < ends_at:
                    os.kill(pid, signal_number)
                    await asyncio.sleep(0.1)

    def _is_own_process(self, pid: int) -> bool:
        # The kernel reuses process ids, so the command line decides.
        return str(self.data) in _command_line(pid)


def _command_line(pid: int) -> str:
    """Returns the command line of a process; empty when there is none."""
    if ON_LINUX:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return ""
    listing = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)  # noqa: S603, S607
    return listing.stdout


async def _accepts_connections(port: int) -> bool:
    with contextlib.suppress(OSError):
        _, writer = await asyncio.open_connection(HOST, port)
        writer.close()
        await writer.wait_closed()
        return True
    return False


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # The servers set this option too. With it, a connection in TIME_WAIT does not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def stored_port(folder: Path) -> int | None:
    """Returns the port of the last start of the server with this folder; None if it never started."""
    with contextlib.suppress(OSError, ValueError):
        return int((folder / "port").read_text())
    return None


def _free_port() -> int:
    return next(port for port in random.sample(PORTS, len(PORTS)) if _is_free(port))
