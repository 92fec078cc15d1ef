"""Launches a program that ends when its parent ends, and whose limit of open files is the user's maximum.

Runs as a script that replaces itself with the program, so it imports no package of Noroshi. Linux only: other systems
have no parent-death signal. On those systems, the next start ends servers that survived the previous run.
"""

import ctypes
import os
import resource
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with_parent(parent_pid: int) -> None:
    """Asks the kernel for SIGTERM when the parent's starting thread ends. Exits if the parent is already gone."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # No signal comes if the parent died before the call above.
    if os.getppid() != parent_pid:
        sys.exit(1)


def allow_open_files() -> None:
    """Raises the limit of open files to the user's maximum.

    The usual limit of 1,024 is too low for a thousand sockets and for MongoDB, which aborts.
    """
    maximum = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (maximum, maximum))


def main() -> None:
    """Runs `launch.py PARENT_PID PROGRAM ARGUMENT...`."""
    command = sys.argv[2:]
    end_with_parent(int(sys.argv[1]))
    allow_open_files()
    try:
        os.execv(command[0], command)  # noqa: S606 - no shell is the point
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
