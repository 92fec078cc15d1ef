"""Child processes: started, awaited, stopped, and never left behind.

A child runs in a session of its own, so that Ctrl-C reaches only us and we decide the order in which things end.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ON_LINUX: bool = sys.platform == "linux"
POLL_INTERVAL_S = 0.02
WAIT_INTERVAL_S = 0.05
LAUNCHER = Path(__file__).with_name("launch.py")


class StartupError(Exception):
    """Why something can't be done, and what to do about it: one line for the operator."""


class ChildProcess:
    """One run of a command.

    Start it from the main thread: the parent-death signal of Linux follows the thread that started a child.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        output: Path | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        """Starts at once. `output` takes both streams, emptied first; None shares ours. Raises: OSError."""
        launcher = [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid())] if ON_LINUX else []
        with output.open("wb") if output else contextlib.nullcontext() as stream:
            self._process = subprocess.Popen(  # noqa: S603 - our own commands
                [*launcher, *command],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT if stream else None,
                env=environment,
                pass_fds=pass_fds,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number when a signal ended it."""
        return self._process.poll()

    async def wait(self) -> int:
        """The exit code, as soon as there is one."""
        while (code := self.exit_code) is None:  # noqa: ASYNC110 - the portable way, without a thread
            await asyncio.sleep(WAIT_INTERVAL_S)
        return code

    async def stop(self, deadline_s: float) -> None:
        """SIGTERM, and SIGKILL when it still runs after `deadline_s`; returns when it is gone."""
        self._process.terminate()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.wait(), deadline_s)
        self.kill()
        await self.wait()

    def kill(self) -> None:
        """SIGKILL; nothing when it has ended."""
        self._process.kill()


def end_with(parent_pid: int, deadline_s: float) -> None:
    """Ends this process when its parent is gone: by SIGTERM within a second, by force `deadline_s` later."""
    threading.Thread(target=_watch, args=(parent_pid, deadline_s), daemon=True).start()


def _watch(parent_pid: int, deadline_s: float) -> None:
    while os.getppid() == parent_pid:
        time.sleep(1)
    # On Linux the kernel has sent it already.
    if not ON_LINUX:
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(deadline_s)
    os._exit(1)
