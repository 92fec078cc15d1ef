"""Processes of the product that are forked from one that has imported its modules.

Importing them takes a process more time than most tests keep it busy.
"""

import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

MODULES = [
    "server.commands.cli",
    "server.app",
    "server.web",
    "server.worker",
    "server.migration",
    "server.auth.key_check",
]

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(MODULES)


class PreloadedProcess:
    """A process that calls a function. It has the methods of `subprocess.Popen` that tests use."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self._process = _context.Process(target=function, args=arguments, daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Returns the exit code. Raises: TimeoutError."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutError(f"Process {self.pid} still runs after {timeout} s.")
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def preloaded_command(
    command: Sequence[str],
    environment: Mapping[str, str],
    output: Path,
    errors: Path | None = None,
    listener: socket.socket | None = None,
) -> PreloadedProcess:
    """Starts a `noroshi` command. Without a file for errors, they are in that of the output."""
    files = (output, errors or output)
    for file in files:
        file.write_bytes(b"")
    return PreloadedProcess(_run_command, list(command), dict(environment), files, listener)


def _run_command(
    command: list[str], environment: dict[str, str], files: tuple[Path, Path], listener: socket.socket | None
) -> None:
    """Runs the command in this process, with its own environment and output."""
    from server.commands.cli import run

    if command[0] == "up":
        os.setsid()  # Like a terminal's command, the product is a process group, which Ctrl-C interrupts.
    os.environ.clear()
    os.environ.update(environment)
    for stream, path in zip((sys.stdout, sys.stderr), files, strict=True):
        with path.open("ab") as file:
            os.dup2(file.fileno(), stream.fileno())
    sys.exit(run([*command, *([f"--fd={listener.fileno()}"] if listener else [])]))
