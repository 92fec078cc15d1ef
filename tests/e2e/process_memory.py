"""The memory of a process, as the kernel reports it."""

import re
from pathlib import Path

import pytest

from tests.serving import ServerProcess

needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Reads a process's memory in /proc.")


def memory_mib(process: ServerProcess) -> float:
    """Returns the resident memory."""
    return _status_mib(process, "VmRSS")


def peak_memory_mib(process: ServerProcess) -> float:
    """Returns the largest resident memory since the process began, or since `forget_peak`."""
    return _status_mib(process, "VmHWM")


def forget_peak(process: ServerProcess) -> None:
    """Sets the peak to the present memory."""
    Path(f"/proc/{process.process.pid}/clear_refs").write_text("5")


def _status_mib(process: ServerProcess, name: str) -> float:
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    found = re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024
