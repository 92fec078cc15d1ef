"""The data folder: its permissions, its lock, its secrets and its free space.

Only the owner can read it. One process at a time locks it: `noroshi up`, or a command that starts the embedded MongoDB.
The kernel releases the lock when the process ends.
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

FILES = "files"
"""The folder of uploaded files. `noroshi web` and `noroshi worker` create it without the rest of the data folder."""


def prepare_data_dir(data_dir: Path) -> Path:
    """Creates the folder if it is missing, makes it private to its owner, and returns its absolute path.

    Raises: StartupError.
    """
    folder = data_dir.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _refuse_foreign_folder(folder)
        folder.chmod(0o700)
        (folder / LOCK).touch(mode=0o600)
    except OSError as error:
        raise StartupError(
            f"The data folder {folder} can't be used ({error.strerror}): choose another with --data-dir."
        ) from error
    return folder


def _refuse_foreign_folder(folder: Path) -> None:
    # Making a home directory or a shared temporary folder private would harm other programs.
    if not (folder / LOCK).exists() and any(each.name != FILES for each in folder.iterdir()):
        raise StartupError(
            f"The data folder {folder} holds files that are not Noroshi's: choose another with --data-dir."
        )


@contextlib.contextmanager
def lock_data_dir(folder: Path) -> Iterator[None]:
    """Locks the folder against other processes. Raises: StartupError when another process has locked it."""
    with (folder / LOCK).open("r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartupError(
                f"The data folder {folder} is in use by another `noroshi`, process {lock.read().strip() or 'unknown'}: "
                "stop that process, or choose another folder with --data-dir."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def require_free_space(folder: Path, min_free_bytes: int = MIN_FREE_BYTES) -> None:
    """Raises: StartupError when less than `min_free_bytes` are free, because a database on a full disk stops."""
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < min_free_bytes:
        raise StartupError(
            f"The disk of the data folder {folder} has {free_bytes // 2**20} MB free and {min_free_bytes // 2**20} MB "
            "are needed: free some, or choose another folder with --data-dir."
        )


def stored_secret(folder: Path, name: str) -> str:
    """Returns the secret of that name. The first call generates it from 256 random bits. Raises: StartupError."""
    with (folder / LOCK).with_name("secrets.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stored = _read_secrets(folder / SECRETS)
        if name not in stored:
            stored[name] = secrets.token_urlsafe(32)
            _write_secrets(folder / SECRETS, stored)
        return stored[name]


def existing_secret(data_dir: Path, name: str) -> str | None:
    """Returns the secret of that name, or None. Creates nothing. Raises: StartupError."""
    return _read_secrets(data_dir / SECRETS).get(name)


def _read_secrets(path: Path) -> dict[str, str]:
    try:
        stored = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        stored = None
    if not isinstance(stored, dict):
        raise StartupError(f"The secrets in {path} can't be read: restore the file, or remove it to make new ones.")
    return stored


def _write_secrets(path: Path, stored: dict[str, str]) -> None:
    # The rename is atomic: a crash leaves the old file or the new one.
    new_path = path.with_suffix(".new")
    new_path.unlink(missing_ok=True)
    with os.fdopen(os.open(new_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(stored, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    new_path.replace(path)
