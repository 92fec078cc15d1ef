"""A `noroshi worker` with short leases, so that another worker takes over within seconds of a kill."""

import os
import sys
from functools import partial
from pathlib import Path

from jobs.webhooks import discovery as discovery_loop
from server.commands.cli import run
from storage.locks import Locks
from storage.stores import opening
from storage.webhooks import claims, discovery

LEASE_S = 3
SETTLED_S = 6.0
"""Longer than a transaction, as in the product."""


def run_worker(variables: dict[str, str], log_file: Path) -> None:
    """Runs the worker in this process, with its own environment and output."""
    claims.CLAIM_S, discovery.SETTLED_S, discovery_loop.SETTLE_EVERY_S = LEASE_S, SETTLED_S, 1.0
    discovery_loop.WITHOUT_LOCK_S = 0.5
    vars(opening)["Locks"] = partial(Locks, ttl_s=LEASE_S)
    os.environ.clear()
    os.environ.update(variables)
    with log_file.open("ab") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    sys.exit(run(["worker"]))
