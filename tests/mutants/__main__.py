"""Changes the product in small ways, and reports the changes that no test notices: `make mutants` (docs/mutants.md).

Works on a copy of the tree, with a MongoDB and a Valkey of its own.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from server.embedded import Mongod, Valkey, find_mongod, find_valkey
from tests.conftest import MONGOD_OPTIONS
from tests.test_architecture import DOCUMENT_TYPES, MODULES, ROOT, TESTED_ELSEWHERE, possible_test_files

FOLDER = Path(__file__).parent
DEFAULT = ("storage", "resolvers", "server/graphql")
IN_MEMORY = Path("/dev/shm")
_ORGANIZATION = r'("(_id\.)?(org|o)"|\borganization_id\b|\borg\b)'
ORGANIZATION_FILTERS = "|".join(
    [
        r'without `"(_id\.)?(org|o)":',
        rf"without `[^`{{]*{_ORGANIZATION}[^`{{]*`$",
        r"`[^`{]*(organization_id|organization)` -> `None`",
        rf"`[^`{{]*{_ORGANIZATION} [!=]= [^`{{]*` -> `(True|False)`",
        rf"`[^`{{]* [!=]= [^`{{]*{_ORGANIZATION}` -> `(True|False)`",
    ]
)
"""Matches the names of mutants that lack an entry, a condition or a part of a key with the organization."""

COLUMNS = ("killed", "timeout", "survived", "not executed")


def modules_of(paths: list[str]) -> list[str]:
    """Returns the modules at or below the paths."""
    roots = [Path(path) for path in paths]
    found = [each for each in MODULES if any(each == path or path in each.parents for path in roots)]
    return [str(each) for each in found if each.name != "__init__.py" and each not in DOCUMENT_TYPES]


def tests_of(module: str) -> list[str]:
    """Returns the test file of the module, and the tests that tests.toml lists for the module or its folders."""
    own = [str(each) for each in possible_test_files(Path(module)) if (ROOT / each).exists()]
    own += [TESTED_ELSEWHERE[module]] if module in TESTED_ELSEWHERE else []
    more: dict[str, list[str]] = tomllib.loads((FOLDER / "tests.toml").read_text(encoding="utf-8"))
    named = [module, *(str(parent) for parent in Path(module).parents)]
    return list(dict.fromkeys(own + [test for name in named for test in more.get(name, ())]))


def equivalents() -> dict[str, dict[str, str]]:
    """Returns the reasons why listed mutants need not be noticed by a test, by module and mutant."""
    listed: dict[str, dict[str, str]] = tomllib.loads((FOLDER / "equivalent.toml").read_text(encoding="utf-8"))
    return listed


@contextmanager
def copied_tree(folder: Path) -> Iterator[Path]:
    """Yields a copy of the files of the repository, without those that git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    yield folder


@contextmanager
def servers(folder: Path) -> Iterator[dict[str, str]]:
    """Starts MongoDB and Valkey, and yields the variables that make tests use them."""
    mongod = Mongod(folder / "mongodb", find_mongod(), options=MONGOD_OPTIONS)
    valkey = Valkey(folder / "redis", find_valkey())
    try:
        asyncio.run(mongod.start())
        asyncio.run(valkey.start())
        yield {"TEST_MONGODB_URI": mongod.uri, "TEST_REDIS_URL": valkey.url}
    finally:
        asyncio.run(mongod.stop())
        asyncio.run(valkey.stop())


@contextmanager
def prepared_copy() -> Iterator[tuple[Path, dict[str, str]]]:
    """Yields a copy of the tree, and the variables with which its tests use servers of their own."""
    with ExitStack() as stack:
        parent = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants-", dir=parent)))
        copy = stack.enter_context(copied_tree(folder / "tree"))
        (folder / "tmp").mkdir()
        environment = {**os.environ, **stack.enter_context(servers(folder)), "PYTHONPATH": str(copy)}
        environment["TMPDIR"] = str(folder / "tmp")
        # A cached module would hide a change within the same second.
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        yield copy, environment


def results(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the outcome of each mutant."""
    with ExitStack() as stack:
        copy, environment = stack.enter_context(prepared_copy())
        command = [sys.executable, "-m", "tests.mutants.runner", json.dumps(plan)]
        runner = stack.enter_context(subprocess.Popen(command, cwd=copy, env=environment, stdout=subprocess.PIPE))
        assert runner.stdout is not None
        yield from (json.loads(line) for line in runner.stdout)
    if runner.returncode:
        raise SystemExit(runner.returncode)


def print_summary(outcomes: dict[str, Counter[str]], listed: dict[str, dict[str, str]]) -> None:
    """Prints the numbers of each module as rows of a Markdown table."""
    print(f"\n| module | mutants | {' | '.join(COLUMNS)} | listed |\n| --- | {'---: | ' * (len(COLUMNS) + 2)}")
    for module, counts in outcomes.items():
        numbers = " | ".join(str(counts[each]) for each in COLUMNS)
        print(f"| `{module}` | {counts.total()} | {numbers} | {len(listed.get(module, ()))} |")


def main() -> None:
    """Reports mutants that survive or whose lines no test executes, unless equivalent.toml lists them.

    Exits with 1 if there are any.
    """
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("paths", nargs="*", default=DEFAULT, help="modules or folders")
    parser.add_argument("--only", default="", help="a regular expression; only mutants whose name contains a match")
    parser.add_argument(
        "--organizations",
        action="store_true",
        help="only mutants that leave out the organization in a query, document or key",
    )
    parser.add_argument("--tests", nargs="+", help="run these test files instead of those of the module")
    parser.add_argument("--verbose", action="store_true", help="report killed mutants too, with the test that failed")
    arguments = parser.parse_args()
    modules, listed = modules_of(list(arguments.paths)), equivalents()
    only = ORGANIZATION_FILTERS if arguments.organizations else arguments.only
    plan = {"modules": {name: arguments.tests or tests_of(name) for name in modules}, "only": only}
    outcomes: dict[str, Counter[str]] = {}
    for each in results({**plan, "skipped": {name: list(keys) for name, keys in listed.items()}}):
        outcomes.setdefault(each["module"], Counter())[each["outcome"]] += 1
        if arguments.verbose or each["outcome"] in ("survived", "not executed"):
            place = f"{each['module']}:{each['line']}"
            print(f"{each['outcome']:12} {each['seconds']:6} s  {place}  {each['mutant']}  {each['test']}", flush=True)
    print_summary(outcomes, listed)
    sys.exit(any(counts["survived"] + counts["not executed"] for counts in outcomes.values()))


if __name__ == "__main__":
    main()
