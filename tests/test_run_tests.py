"""The script of CI: tests that fail run once more, alone. Only those that pass then are forgiven."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "run_tests.py"
PASSING = "def test_passing(): pass\n"
FAILING_ONCE = """
from pathlib import Path

def test_failing_once():
    seen = Path("seen")
    is_first = not seen.exists()
    seen.touch()
    assert not is_first, "The machine was busy."
"""
FAILING = "def test_failing():\n    assert 1 == 2, 'One is not two.'\n"
BROKEN = "import a_module_that_does_not_exist\n"
EXITING = "import pytest\n\ndef test_exiting():\n    pytest.exit('A server is missing.', returncode=3)\n"
COUNTING = """
from pathlib import Path

def test_counting():
    with Path("runs").open("a") as runs:
        runs.write("x")
"""


def run_script(folder: Path, *options: str, **modules: str) -> tuple[int, list[str]]:
    """Writes the modules of tests and runs the script on them. Returns its exit code and the last 40 lines."""
    for name, text in modules.items():
        (folder / f"test_{name}.py").write_text(text)
    command = [sys.executable, str(SCRIPT), "-p", "xdist", "-n", "1", "--rootdir", str(folder), *options]
    only_xdist = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=only_xdist, capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()[-40:]


def lines_after(lines: list[str], start: str) -> list[str]:
    """Returns the lines after the only one that starts with `start`."""
    [index] = [index for index, line in enumerate(lines) if line.startswith(start)]
    return lines[index + 1 :]


def test_passing_tests_run_once_and_are_green(tmp_path: Path) -> None:
    status, _ = run_script(tmp_path, passing=PASSING, counting=COUNTING)
    assert (status, (tmp_path / "runs").read_text()) == (0, "x")


def test_test_that_fails_once_is_named_in_a_green_run(tmp_path: Path) -> None:
    status, lines = run_script(tmp_path, once=FAILING_ONCE, counting=COUNTING)
    assert status == 0
    assert lines_after(lines, "GREEN") == ["test_once.py::test_failing_once"]
    assert (tmp_path / "runs").read_text() == "x"


def test_test_that_always_fails_is_red_with_its_error(tmp_path: Path) -> None:
    status, lines = run_script(tmp_path, once=FAILING_ONCE, always=FAILING)
    assert status == 1
    [failure] = lines_after(lines, "RED")
    assert failure.startswith("FAILED test_always.py::test_failing")
    assert "One is not two." in failure


@pytest.mark.parametrize("text", [BROKEN, EXITING])
def test_run_without_failed_test_is_red(tmp_path: Path, text: str) -> None:
    status, lines = run_script(tmp_path, passing=PASSING, broken=text)
    assert status not in (0, 1)
    assert any(line.startswith("RED") for line in lines)
    if text is BROKEN:
        [failure] = lines_after(lines, "RED")
        assert failure.startswith("ERROR test_broken.py")


def test_failures_of_an_earlier_run_are_not_repeated(tmp_path: Path) -> None:
    """The second run ends at its first failure, before it comes to the test that failed in the earlier one."""
    one_process = ("-n", "0")
    assert run_script(tmp_path, *one_process, zealous=FAILING)[0] == 1
    status, lines = run_script(tmp_path, *one_process, "-x", once=FAILING_ONCE)
    assert status == 0
    assert lines_after(lines, "GREEN") == ["test_once.py::test_failing_once"]
