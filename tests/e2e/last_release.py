"""The code of the last release, from the repository's history, and an environment that runs it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_architecture import ROOT

COMMIT = "9c82fb55bc998f963b0df7603efe735a09e4bcae"
"""The commit of the last release. Change it with each release: the upgrade test starts from this commit."""


def last_release(folder: Path) -> dict[str, str]:
    """Unpacks the code, and returns the environment variables that make `python -m` run it.

    Skips the test if the history lacks the commit. Installs the release's packages if they differ from today's.
    """
    _require_commit()
    archive = _git("archive", COMMIT)
    folder.mkdir(parents=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return {"PYTHONPATH": f"{folder}:{_packages(folder)}".rstrip(":")}


def _packages(folder: Path) -> str:
    """Returns the folder with the release's packages; empty if the installed packages are the same."""
    lock = folder / "requirements.lock"
    if lock.read_bytes() == (ROOT / "requirements.lock").read_bytes():
        return ""
    packages = folder / "packages"
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes", "--target", str(packages)]
    if subprocess.run([*command, "-r", str(lock)], capture_output=True).returncode:
        pytest.skip("The packages of the last release can't be installed: `uv pip install` needs a package index.")
    return str(packages)


def _require_commit() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("Needs git and the repository's history, which holds the last release.")
    found = subprocess.run(["git", "cat-file", "-e", f"{COMMIT}^{{commit}}"], cwd=ROOT, capture_output=True)
    if found.returncode:
        pytest.skip(f"The history lacks commit {COMMIT}, the last release: `git fetch --unshallow` fetches it.")


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout
