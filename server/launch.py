"""Becomes another program that ends when its parent ends. Run by path, so it imports nothing of ours.

Linux only: elsewhere there is no parent-death signal, and the next start ends what is left.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with_parent(parent_pid: int) -> None:
    """Asks the kernel for SIGTERM when the parent's thread that started us ends; exits when it is gone already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # It may have died between the fork and the call above; then no signal ever comes.
    if os.getppid() != parent_pid:
        sys.exit(1)


def main() -> None:
    """launch.py PARENT_PID PROGRAM ARGUMENT..."""
    command = sys.argv[2:]
    end_with_parent(int(sys.argv[1]))
    try:
        os.execv(command[0], command)  # noqa: S606 - no shell is the point
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
