"""One product for all processes of a test run."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from tests.product import ObservedProduct, RunningProduct, eventually, processes

END_DEADLINE_S = 120

# Keeps the objects of started products, which complain if they are deleted while their processes run.
_started: list[RunningProduct] = []


@contextmanager
def shared_product(folder: Path, start: Callable[[Path], RunningProduct]) -> Iterator[ObservedProduct]:
    """Yields the product whose data are in the folder.

    The first process of the test run that comes starts it, and the last that leaves ends it.
    """
    folder.mkdir(exist_ok=True)
    with (folder / "users").open("w") as users:
        with _locked(folder):
            product = _running_product(folder) or _start(folder, start)
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield product
        finally:
            with _locked(folder):
                if _is_last(users):
                    _end(folder, product)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lets one process after another start or end the product."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _running_product(folder: Path) -> ObservedProduct | None:
    pid_file = folder / "pid"
    return ObservedProduct(folder / "data", int(pid_file.read_text())) if pid_file.exists() else None


def _start(folder: Path, start: Callable[[Path], RunningProduct]) -> ObservedProduct:
    product = start(folder / "data")
    _started.append(product)
    assert product.url
    (folder / "pid").write_text(str(product.pid))
    return product


def _is_last(users: TextIO) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _end(folder: Path, product: ObservedProduct) -> None:
    (folder / "pid").unlink()
    product.interrupt()
    assert eventually(lambda: product.pid not in processes(), END_DEADLINE_S, interval_s=0.2), product.errors[-5000:]
