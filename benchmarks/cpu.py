"""Processor time and memory by process, from /proc. Linux only."""

import asyncio
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SAMPLE_S = 0.5
MIN_IDLE_S = 1.0
"""How long the machine must be idle before a measurement begins."""

IDLE_SHARE = 0.3
"""Share of one processor below which the machine counts as idle.

It is greater than 0, because the product uses some processor time even without requests.
"""


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Processor time used so far by each process with all its threads, and by the whole machine."""

    at_s: float
    processes_s: dict[str, float]
    machine_s: float

    def percent_since(self, earlier: "CpuTimes") -> dict[str, float]:
        """Returns percent of one processor by process id. "others" is the sum of all other processes."""
        wall_s = self.at_s - earlier.at_s
        used_s = {pid: self.processes_s[pid] - earlier.processes_s[pid] for pid in self.processes_s}
        used_s["others"] = self.machine_s - earlier.machine_s - sum(used_s.values())
        return {pid: 100 * seconds / wall_s for pid, seconds in used_s.items()}


def cpu_times(pids: Iterable[int]) -> CpuTimes:
    """Returns the current times. The processes must be running."""
    return CpuTimes(time.monotonic(), {str(pid): _process_s(pid) for pid in pids}, _machine_s())


def memory_mib(pid: int, name: str = "VmRSS") -> float:
    """Returns the process's memory: VmRSS (present) or VmHWM (greatest since `forget_peak`)."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def forget_peak(pid: int) -> None:
    """Sets the process's greatest memory to the present one."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


async def wait_for_idle_machine(timeout_s: float) -> None:
    """Waits until the machine is idle, at most `timeout_s`."""
    ends_s = time.monotonic() + timeout_s
    idle_s = 0.0
    while idle_s < MIN_IDLE_S and time.monotonic() < ends_s:
        before_s = _machine_s()
        await asyncio.sleep(SAMPLE_S)
        idle_s = idle_s + SAMPLE_S if _machine_s() - before_s < SAMPLE_S * IDLE_SHARE else 0.0


def _process_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def _machine_s() -> float:
    """Returns the busy time of all processors, without waiting for disks."""
    user, nice, system, _idle, _iowait, *interrupts = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + sum(interrupts)) / TICKS_PER_S
