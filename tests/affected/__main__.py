"""Runs the tests that the changes of the working tree can affect (`make quick`), or renews the record (`make record`).

`python -m tests.affected [--record] [--since COMMIT] [options of pytest]`
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.affected.changes import ALWAYS, NEVER, changed_files, importing_tests, own_tests, process_tests
from tests.test_architecture import ROOT

FOLDER = ROOT / ".testmon"
PLUGINS = ("testmon.pytest_testmon", "tests.affected.recording", "tests.affected.plugin")
TESTMON = (*(f"-p{name}" for name in PLUGINS), "--testmon", "--testmon-forceselect")
"""Options that load testmon. It would not select beside the `-m` of pyproject.toml unless this is forced."""

LIMIT_S = "75"
"""How long the tests of `make quick` may take in total, by the record. Three at a time take less than a minute."""

COMPLETE = (0, 1)
"""Exit codes of pytest after which every test has run."""


def record_folder() -> Path:
    """Returns the folder of the record for the locked packages and this Python. Others make every test affected."""
    state = (ROOT / "requirements.lock").read_bytes() + sys.version.encode()
    return FOLDER / hashlib.sha256(state).hexdigest()[:16]


def run_pytest(record: Path, *options: str) -> int:
    """Runs pytest with the record. The C tracer of coverage can tell tests apart, unlike the one of Python 3.14."""
    variables = {**os.environ, "TESTMON_DATAFILE": str(record / "data"), "COVERAGE_CORE": "ctrace"}
    sys.stdout.flush()
    return subprocess.run([sys.executable, "-m", "pytest", *options], cwd=ROOT, env=variables).returncode


def renew_record(options: list[str]) -> int:
    """Runs each test that is not in the record or that later changes affect. An interrupted run is continued."""
    record = record_folder()
    for other in FOLDER.glob("*"):
        if other != record:
            shutil.rmtree(other)
    record.mkdir(parents=True, exist_ok=True)
    status = run_pytest(record, *TESTMON, f"--ignore={NEVER}", *options)
    if status in COMPLETE:
        (record / "complete").touch()
    return status


def run_affected(since: str, options: list[str]) -> int:
    """Runs the tests that changes since the record affect, and those that the files changed since the commit name."""
    record, changed = record_folder(), changed_files(since)
    print(f"Changed: {', '.join(changed) or 'nothing but comments'}.")
    print(f"Not run: {NEVER} and soak tests. `make test` runs every test.")
    own = own_tests(changed)
    if not (record / "complete").exists():
        print("No record of these packages: only the test files of the changed modules run. `make record` makes one.")
        return run_pytest(record, *own, *(test for test in ALWAYS if test not in own), *options)
    processes = process_tests(changed)
    also = dict.fromkeys([*own, *ALWAYS, *importing_tests(changed, since), *processes])
    if processes:
        print(f"By their folder, because they start processes: {', '.join(processes)}.")
    chosen = [f"--also={test}" for test in also] + [f"--near={name}" for name in changed]
    return run_pytest(record, *TESTMON, f"--ignore={NEVER}", *chosen, f"--limit-s={LIMIT_S}", *options)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.affected", description=__doc__)
    parser.add_argument("--record", action="store_true", help="renew the record")
    parser.add_argument("--since", default="HEAD", metavar="COMMIT", help="name files that changed since this commit")
    arguments, options = parser.parse_known_args()
    return renew_record(options) if arguments.record else run_affected(arguments.since, options)


if __name__ == "__main__":
    sys.exit(main())
