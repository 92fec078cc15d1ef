"""Programs on the hosts, which faults kill, suspend and restart."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.hosts import LaboratoryHost
from tests.product import environment

STOP_DEADLINE_S = 40.0
FAKETIME_LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


@dataclass
class LaboratoryProgram:
    """One program. Its output goes to `log`. With `clock`, its clock can differ from the machine's."""

    name: str
    host: LaboratoryHost
    command: list[str]
    log: Path
    variables: dict[str, str] = field(default_factory=dict)
    clock: Path | None = None
    before_start: Callable[[], None] = lambda: None
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def kind(self) -> str:
        """The name without its number."""
        return self.name.rstrip("0123456789")

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def keep_log(self, folder: Path) -> None:
        """Copies the log into the folder, unless the program logs to this folder."""
        if self.log.parent != folder and self.log.exists():
            shutil.copy(self.log, folder)

    def resident_mib(self) -> float | None:
        """Returns the program's resident memory, or None if it does not run."""
        if self.process is None:
            return None
        with suppress(OSError, StopIteration):
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
            return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024
        return None

    def start(self) -> None:
        """Starts the program, unless it runs."""
        if self.is_running:
            return
        self.before_start()
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self.host.command(*self.command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment(**self.variables, **self._clock_variables()),
                start_new_session=True,
            )

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the program if it runs."""
        if self.process is not None and self.is_running:
            os.kill(self.process.pid, number)

    def kill(self) -> None:
        """Kills the program with SIGKILL, and waits for its end."""
        self.send(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def terminate(self) -> None:
        """Sends SIGTERM, and SIGKILL after STOP_DEADLINE_S."""
        self.send(signal.SIGTERM)
        try:
            if self.process is not None:
                self.process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def set_clock(self, ahead_s: float) -> None:
        """Sets the program's clock ahead of the machine's clock, or behind it if `ahead_s` is negative.

        The clocks of other programs do not change.
        """
        assert self.clock is not None, f"{self.name} has no clock of its own"
        changed = self.clock.with_suffix(".new")
        changed.write_text(f"{ahead_s:+.0f}\n")
        changed.replace(self.clock)

    def _clock_variables(self) -> dict[str, str]:
        if self.clock is None:
            return {}
        return {
            "LD_PRELOAD": str(FAKETIME_LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self.clock),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
