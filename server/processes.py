"""Child processes: start, wait, stop, and end with their parent.

A child runs in its own session. Ctrl-C therefore reaches only the parent, which stops its children in order.
"""

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ON_LINUX: bool = sys.platform == "linux"
POLL_INTERVAL_S = 0.02
WAIT_INTERVAL_S = 0.05
LAUNCHER = Path(__file__).with_name("launch.py")


class StartupError(Exception):
    """An error for the operator: one line that says what is wrong and what to do."""


@contextlib.contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Collects no garbage in the block, which imports modules. They leave none, and the import takes a sixth less."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class ChildProcess:
    """One run of a command.

    Create it in the main thread: on Linux, the kernel ends a child when the thread that started it ends.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        output: Path | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        """Starts the command. Both output streams go to the file `output`, or to the parent's. Raises: OSError."""
        launcher = [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid())] if ON_LINUX else []
        with output.open("wb") if output else contextlib.nullcontext() as stream:
            self._process = subprocess.Popen(  # noqa: S603 - only fixed commands
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
        """The exit code; None while it runs, the negative signal number when a signal ended it."""
        return self._process.poll()

    async def wait(self) -> int:
        """Waits for the end of the process and returns its exit code."""
        while (code := self.exit_code) is None:  # noqa: ASYNC110 - the portable way, without a thread
            await asyncio.sleep(WAIT_INTERVAL_S)
        return code

    async def stop(self, deadline_s: float) -> None:
        """Sends SIGTERM, and SIGKILL after `deadline_s`. Returns when the process has ended."""
        self._process.terminate()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.wait(), deadline_s)
        self.kill()
        await self.wait()

    def kill(self) -> None:
        """Sends SIGKILL, unless the process has ended."""
        self._process.kill()


def watch_parent(parent_pid: int, deadline_s: float) -> None:
    """Starts a thread that ends this process when its parent is gone.

    The process gets SIGTERM within a second, and is ended by force `deadline_s` seconds later.
    """
    threading.Thread(target=_end_after_parent, args=(parent_pid, deadline_s), daemon=True).start()


def _end_after_parent(parent_pid: int, deadline_s: float) -> None:
    while os.getppid() == parent_pid:
        time.sleep(1)
    # On Linux the kernel sends the signal.
    if not ON_LINUX:
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(deadline_s)
    os._exit(1)
