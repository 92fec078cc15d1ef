"""The command line: `python -m tests.lab --seed 7 --minutes 5 --nemesis kill,partition`.

The laboratory starts itself again in network, mount and process namespaces of its own. When the first process of these
namespaces ends, the kernel ends all other processes and removes all mounts and hosts. So does Ctrl-C or a crash.
"""

import argparse
import asyncio
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.lab.faults import FAULTS
from tests.lab.outages import OUTAGES
from tests.lab.programs import FAKETIME_LIBRARY
from tests.lab.run import RunOptions, run
from tests.lab.workloads.catalogue import WORKLOADS

ISOLATED = "--isolated"
CANNOT_RUN = 77
"""The exit code if the laboratory can't run here. Automake and Meson take this code for a skipped test."""

NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc")

PROBE = """
mount -t tmpfs noroshi-lab-names /run
ip link add bridge type bridge
ip link add to-host type veth peer name eth0
ip netns add host
nft add table inet lab
nft "add chain inet lab input { type filter hook input priority 0; }"
nft add rule inet lab input ip saddr 10.0.0.1 numgen random mod 100 '<' 10 drop
"""
"""A script that tries everything that `hosts.py` does. It runs in namespaces that the kernel removes afterwards."""


def main() -> int:
    """Checks what the laboratory needs, enters its namespaces, and runs it. Returns the exit code."""
    arguments = _parser().parse_args()
    if arguments.outage:
        arguments.nemesis = []
    if missing := missing_requirement(arguments.nemesis):
        print(f"The laboratory can't run here: {missing}")
        return CANNOT_RUN
    if not arguments.isolated:
        seed = arguments.seed or secrets.token_hex(3)
        folder = tempfile.mkdtemp(prefix="noroshi-lab-")
        command = [*NAMESPACES, sys.executable, "-m", "tests.lab", *sys.argv[1:], "--seed", seed, ISOLATED, folder]
        os.execvp(command[0], command)
    return _run_isolated(arguments)


def _run_isolated(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.isolated)
    options = RunOptions(
        arguments.seed, arguments.minutes, arguments.nemesis, arguments.areas, folder, arguments.outage
    )
    faults = options.outage or ",".join(options.faults) or "none"
    print(f"Seed {options.seed}, {options.minutes:g} min, faults {faults}. Logs and history: {folder}", flush=True)
    # The first process of a namespace ignores SIGTERM unless it handles it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code = 1
    try:
        code = 1 if asyncio.run(run(options)) else 0
    except KeyboardInterrupt:
        print("Interrupted.")
    finally:
        if code or arguments.keep:
            print(f"The history and the logs are kept in {folder}", flush=True)
        else:
            _remove(folder)
    return code


def _remove(folder: Path) -> None:
    for disk in (folder / "disks").iterdir():
        subprocess.run(["umount", "--recursive", str(disk)], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def missing_requirement(faults: list[str]) -> str | None:
    """Returns a sentence about what the laboratory lacks for these faults, or None if it can run."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "it needs Linux and the user root."
    for program, package in {"ip": "iproute2", "nft": "nftables", "unshare": "util-linux"}.items():
        if shutil.which(program) is None:
            return f"{program} is not installed (`apt-get install {package}`)."
    if "clock" in faults and FAKETIME_LIBRARY is None:
        return "faketime is not installed (`apt-get install faketime`)."
    if subprocess.run([*NAMESPACES, "true"], capture_output=True).returncode:
        return "the user root may not create namespaces here."
    probe = subprocess.run([*NAMESPACES, "sh", "-ec", PROBE], capture_output=True, text=True)
    return f"the kernel or the container refuses a host: {probe.stderr.strip()}" if probe.returncode else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description="Runs workloads under faults.")
    parser.add_argument("--seed", help="seed of the choice of operations and faults; random if omitted")
    parser.add_argument("--minutes", type=float, default=3.0, help="duration of the faults in minutes (default: 3)")
    parser.add_argument(
        "--nemesis", type=_names_of(FAULTS), default=list(FAULTS), help="faults, separated by commas; or none"
    )
    parser.add_argument("--outage", choices=OUTAGES, help="one outage for the whole duration, instead of faults")
    parser.add_argument(
        "--areas", type=_names_of(WORKLOADS), default=list(WORKLOADS), help="areas, separated by commas"
    )
    parser.add_argument("--keep", action="store_true", help="keep the history and the logs in any case")
    parser.add_argument(ISOLATED, metavar="FOLDER", help=argparse.SUPPRESS)
    return parser


def _names_of(known: Mapping[str, object]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = [] if text == "none" else text.split(",")
        if unknown := set(names) - known.keys():
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: expected some of {', '.join(known)}")
        return names

    return parse


if __name__ == "__main__":
    sys.exit(main())
