"""Installs the locked packages of the Node peers when they are first needed."""

import shutil
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parent
INSTALLED = FOLDER / "node_modules/.package-lock.json"
"""npm writes this file after a complete installation."""


class NodePackagesMissing(Exception):
    """The packages are not installed, and can't be. The text says why, and what to do."""


def install_node_packages() -> None:
    """Installs the packages with `npm ci` unless they are as old as the lock file. Raises: NodePackagesMissing."""
    lock = FOLDER / "package-lock.json"
    missing = [program for program in ("node", "npm") if not shutil.which(program)]
    if missing:
        raise NodePackagesMissing(
            f"The peers need Node.js 20 or later with npm; not found: {', '.join(missing)}. "
            "Install them: `apt-get install nodejs npm`."
        )
    if INSTALLED.exists() and INSTALLED.stat().st_mtime >= lock.stat().st_mtime:
        return
    if subprocess.run(["npm", "ci", "--loglevel=error"], cwd=FOLDER).returncode:
        raise NodePackagesMissing("The packages of the peers can't be installed: `npm ci` needs a package registry.")
