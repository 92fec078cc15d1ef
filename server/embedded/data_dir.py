"""The data folder: who may use it, what is secret in it, whether there is room.

Readable by its owner only. One `noroshi up` holds it at a time; the lock goes with the process, however that ends.
"""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from server.processes import StartupError

MIN_FREE_BYTES = 512 * 1024 * 1024
LOCK = "lock"
SECRETS = "secrets.json"


def prepare(data_dir: Path) -> Path:
    """The folder's absolute path; made when missing, and closed to others. Raises: StartupError."""
    folder = data_dir.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _refuse_a_strange_folder(folder)
        folder.chmod(0o700)
        (folder / LOCK).touch(mode=0o600)
    except OSError as error:
        raise StartupError(
            f"The data folder {folder} can't be used ({error.strerror}): choose another with --data-dir."
        ) from error
    return folder


def _refuse_a_strange_folder(folder: Path) -> None:
    # Closing somebody's home or /tmp to others would do harm, so only a new folder or ours is touched.
    if not (folder / LOCK).exists() and any(folder.iterdir()):
        raise StartupError(
            f"The data folder {folder} holds files that are not Noroshi's: choose another with --data-dir."
        )


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Nobody else holds the folder meanwhile. Raises: StartupError when somebody does."""
    with (folder / LOCK).open("r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartupError(
                f"The data folder {folder} is in use by `noroshi up`, process {lock.read().strip() or 'unknown'}: "
                "stop that one, or choose another folder with --data-dir."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def require_free_space(folder: Path, min_free_bytes: int = MIN_FREE_BYTES) -> None:
    """Raises: StartupError when less than `min_free_bytes` are free, as a database that runs full stops writing."""
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < min_free_bytes:
        raise StartupError(
            f"The disk of the data folder {folder} has {free_bytes // 2**20} MB free and {min_free_bytes // 2**20} MB "
            "are needed: free some, or choose another folder with --data-dir."
        )


def secret(folder: Path, name: str) -> str:
    """The secret of that name, made of 256 random bits when it is first asked for. Raises: StartupError."""
    with (folder / LOCK).with_name("secrets.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = _read_secrets(folder / SECRETS)
        if name not in known:
            known[name] = secrets.token_urlsafe(32)
            _write_secrets(folder / SECRETS, known)
        return known[name]


def _read_secrets(path: Path) -> dict[str, str]:
    try:
        known = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        known = None
    if not isinstance(known, dict):
        raise StartupError(f"The secrets in {path} can't be read: restore the file, or remove it to make new ones.")
    return known


def _write_secrets(path: Path, known: dict[str, str]) -> None:
    # Renamed into place: a crash leaves the old secrets or the new ones, never half of them.
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(known, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
