"""Builds the wheel and installs it into an empty environment."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.product import RunningProduct, running_product, start_program
from tests.programs import WEB_CLIENT

ROOT = WEB_CLIENT.parent
INSTALL_TIMEOUT_S = 900


def run_command(*command: str | Path, cwd: Path = ROOT) -> str:
    """Runs a command, and returns its output. Raises: AssertionError with the output if it fails."""
    completed = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


def install_wheel(folder: Path) -> Path:
    """Returns a virtual environment in the folder, with the wheel and its dependencies at their locked versions."""
    tools = Path(sys.executable).parent
    run_command(tools / "hatchling", "build", "--target", "wheel", "--directory", folder)
    (wheel,) = folder.glob("noroshi-*.whl")
    run_command(tools / "uv", "venv", "--python", sys.executable, folder / "venv")
    constraints = ("--constraint", ROOT / "requirements.lock")
    python = folder / "venv" / "bin" / "python"
    run_command(
        tools / "uv", "pip", "install", "--python", python, *constraints, f"noroshi[embedded] @ {wheel.as_uri()}"
    )
    return folder / "venv"


@contextmanager
def product_of_wheel(environment: Path, folder: Path, *arguments: str, **variables: str) -> Iterator[RunningProduct]:
    """Runs `noroshi up` of the environment. The data are in the folder."""
    start = partial(start_program, program=[environment / "bin" / "noroshi"])
    with running_product(folder / "data", *arguments, start=start, PYTHONPATH="", **variables) as product:
        yield product
