"""The hosts: network namespaces that are joined by a bridge, and rules that drop packets between them.

The laboratory itself runs in namespaces of its own (`__main__.py`). The bridge and the names of the hosts exist only
there, so the kernel removes them with the laboratory's last process, however it ends.
"""

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PREFIX = "10.77.0"
CLIENT_ADDRESS = f"{PREFIX}.254"
"""The address of the bridge, from which clients call and where the twins of outside services listen."""

SUBNET = f"{PREFIX}.0/24"
DISK_SIZE = "600m"
CHAIN = "{ type filter hook input priority 0; }"


@dataclass(frozen=True)
class LaboratoryHost:
    """A host with its address and its disk, a tmpfs of DISK_SIZE."""

    name: str
    address: str
    disk: Path

    def command(self, *arguments: str) -> list[str]:
        """Returns the command that runs a program on this host. Its process id is the program's."""
        return ["ip", "netns", "exec", self.name, *arguments]

    def drop(self, match: str) -> None:
        """Drops incoming packets that match a rule of nft, without informing their sender."""
        _run(*self.command("nft", "add", "rule", "inet", "lab", "input", *match.split(), "drop"))

    def drop_from(self, others: Iterable["LaboratoryHost"], match: str = "") -> None:
        """Drops packets from these hosts. With `match`, drops only packets that match this rule of nft."""
        for other in others:
            self.drop(f"ip saddr {other.address} {match}")

    def accept_all(self) -> None:
        """Removes all rules that drop packets."""
        _run(*self.command("nft", "flush", "chain", "inet", "lab", "input"))


def create_hosts(names: Iterable[str], disks: Path) -> list[LaboratoryHost]:
    """Creates the bridge and the hosts. Needs a network namespace and a mount namespace of the caller's own."""
    Path("/run/netns").mkdir(exist_ok=True)
    _run("mount", "-t", "tmpfs", "noroshi-lab-names", "/run/netns")
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", "bridge", "type", "bridge")
    _run("ip", "address", "add", f"{CLIENT_ADDRESS}/24", "dev", "bridge")
    _run("ip", "link", "set", "bridge", "up")
    return [_create_host(name, f"{PREFIX}.{number}", disks / name) for number, name in enumerate(names, start=1)]


def mount_disk(folder: Path, size: str = DISK_SIZE) -> None:
    """Creates the folder as a disk of its own. It disappears with the laboratory's mount namespace."""
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={size}", "noroshi-lab-disk", str(folder))


def _create_host(name: str, address: str, disk: Path) -> LaboratoryHost:
    mount_disk(disk)
    host = LaboratoryHost(name, address, disk)
    _run("ip", "netns", "add", name)
    _run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
    _run("ip", "link", "set", f"to-{name}", "master", "bridge", "up")
    for rest in (
        ["address", "add", f"{address}/24", "dev", "eth0"],
        ["link", "set", "eth0", "up"],
        ["link", "set", "lo", "up"],
    ):
        _run("ip", "-n", name, *rest)
    _run(*host.command("nft", "add", "table", "inet", "lab"))
    _run(*host.command("nft", "add", "chain", "inet", "lab", "input", CHAIN))
    return host


def _run(*command: str) -> None:
    completed = subprocess.run(command, capture_output=True, text=True)
    if completed.returncode:
        raise RuntimeError(f"{' '.join(command)}: {completed.stderr.strip()}")
