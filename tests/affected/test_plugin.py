"""The plugins beside testmon, in runs of pytest on a small project."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.affected.plugin import choose, nearness

PRODUCT = """
LIMIT = 3

class Store:
    def __init__(self):
        self.opened = True

    def pin(self):
        return 1

    def unpin(self):
        return 2
"""
CONFTEST = """
import pytest
from product import Store

@pytest.fixture
def store():
    return Store()
"""
TEST_PINS = """
def test_pin(store):
    assert store.pin() == 1

def test_unpin(store):
    assert store.unpin() == 2
"""
TEST_LIMIT = """
def test_limit():
    from product import LIMIT
    assert LIMIT == 3
"""
PLUGINS = ("xdist", "testmon.pytest_testmon", "tests.affected.recording", "tests.affected.plugin")
OPTIONS = ("--dist=loadfile", "--testmon", "-v")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose tests were recorded."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "tests").mkdir()
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    (folder / "product.py").write_text(PRODUCT)
    for name, source in (("conftest", CONFTEST), ("test_pins", TEST_PINS), ("test_limit", TEST_LIMIT)):
        (folder / "tests" / f"{name}.py").write_text(source)
    assert run(folder, workers=1) == {"PASSED": 3, "left out": 0}
    return folder


@pytest.fixture
def project(recorded: Path, tmp_path: Path) -> Path:
    """A copy of the project with its record, which a test may change."""
    return shutil.copytree(recorded, tmp_path / "project")


def run(project: Path, *options: str, workers: int = 0) -> Counter[str]:
    """Runs pytest. Returns the number of tests by outcome, and of the tests that were left out."""
    command = [sys.executable, "-m", "pytest", *(f"-p{name}" for name in PLUGINS), *OPTIONS, f"-n{workers}", *options]
    only_these = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COVERAGE_CORE": "ctrace"}
    only_these.pop("TESTMON_DATAFILE", None)
    done = subprocess.run(command, cwd=project, env=only_these, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    lines = done.stdout.splitlines()
    outcomes = Counter(word for line in lines for word in line.split() if word in ("PASSED", "FAILED") and "%]" in line)
    outcomes["left out"] = next((int(line.split()[0]) for line in lines if "would take longer" in line), 0)
    return outcomes


def test_changed_function_selects_the_tests_that_run_it(project: Path) -> None:
    (project / "product.py").write_text(PRODUCT.replace("return 2", "return 3"))
    assert run(project) == {"FAILED": 1, "left out": 0}


def test_file_named_by_option_runs_beside_the_record(project: Path) -> None:
    (project / "product.py").write_text(PRODUCT.replace("opened = True", "opened = False"))
    assert run(project) == {"left out": 0}
    assert run(project, "--also=tests/test_limit.py") == {"PASSED": 1, "left out": 0}


def test_files_beyond_the_limit_stay_affected(project: Path) -> None:
    (project / "product.py").write_text(PRODUCT.replace("return", "return 0 +"))
    only_limit = ("--limit-s=0", "--also=tests/test_limit.py")
    assert run(project, *only_limit, workers=1) == {"PASSED": 1, "left out": 2}
    assert run(project) == {"PASSED": 2, "left out": 0}


def test_named_and_near_files_are_chosen_first() -> None:
    seconds = {"tests/storage/test_a.py": 1.0, "tests/jobs/test_b.py": 1.0, "tests/jobs/mail/test_c.py": 1.0}
    near = ["jobs/mail/digests.py"]
    assert choose(seconds, ["tests/storage/test_a.py"], near, 1.0) == {"tests/storage/test_a.py"}
    assert choose(seconds, [], near, 2.5) == {"tests/jobs/mail/test_c.py", "tests/jobs/test_b.py"}


def test_short_files_are_chosen_beside_one_that_is_too_long() -> None:
    assert choose({"tests/a.py": 1.0, "tests/b.py": 90.0, "tests/c.py": 2.0}, [], [], 10.0) == {
        "tests/a.py",
        "tests/c.py",
    }
    assert choose({"tests/b.py": 90.0}, [], [], 10.0) == {"tests/b.py"}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("storage/chat/pins.py", 2),
        ("storage/ids.py", 1),
        ("tests/storage/faults.py", 1),
        ("jobs/x.py", 0),
        ("README.md", 0),
    ],
)
def test_nearness_is_the_number_of_shared_folders(changed: str, expected: int) -> None:
    assert nearness("tests/storage/chat/test_pins.py", [changed]) == expected
