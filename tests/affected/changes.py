"""The changes of the working tree, and the test files that they name: those of the changed modules."""

import ast
import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.mutants.__main__ import tests_of
from tests.test_architecture import PACKAGES, ROOT

ALWAYS = ["tests/test_architecture.py", "tests/test_adrs.py", "tests/test_docs.py", "tests/test_language.py"]
"""Tests that read files of every kind."""

NEVER = "tests/e2e"
"""The folder of tests that start the whole product. Each takes longer than all others that a change affects."""

STARTS_PROCESSES = re.compile(r"from tests\.(product|serving) import|\bsubprocess\b|\bmultiprocessing\b")
"""Matches the source of tests that start processes. The functions that these processes execute are not recorded."""


def changed_files(since: str) -> list[str]:
    """Returns the files that differ from a commit, with new and removed ones, unless only comments differ."""
    listed = git("diff", "--name-only", "-z", "--no-renames", since) + git("ls-files", "-oz", "--exclude-standard")
    return [name for name in sorted(set(listed.split("\0")) - {""}) if not is_same_code(*versions(name, since))]


def git(*arguments: str) -> str:
    """Returns the output of a git command in the repository."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def versions(name: str, since: str) -> tuple[str, str]:
    """Returns the source of a Python file at a commit and now. Of other files, and where there is none: a name."""
    if not name.endswith(".py") or not (ROOT / name).exists() or not git("ls-tree", "--name-only", since, name):
        return "old", "new"
    return git("show", f"{since}:{name}"), (ROOT / name).read_text(encoding="utf-8")


def is_same_code(before: str, after: str) -> bool:
    """Returns whether two sources differ in nothing but comments and layout."""
    try:
        return ast.dump(ast.parse(before)) == ast.dump(ast.parse(after))
    except SyntaxError:
        return before == after


def is_same_interface(before: str, after: str) -> bool:
    """Returns whether two sources differ in nothing but the bodies of functions."""
    return is_same_code(without_bodies(before), without_bodies(after))


def without_bodies(source: str) -> str:
    """Returns the source with empty functions. A source with an error of syntax stays as it is."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [ast.Pass()]
    return ast.unparse(tree)


def own_tests(changed: list[str]) -> list[str]:
    """Returns changed test files, and the test files of changed modules."""
    modules = [name for name in changed if name.partition("/")[0] in PACKAGES]
    return existing([*filter(is_test, changed), *(test for name in modules for test in tests_of(name))])


def importing_tests(changed: list[str], since: str) -> list[str]:
    """Returns the test files of the modules that use a changed interface.

    The record has no tests for constants and types, which are executed once, by an import.
    """
    python = [name for name in changed if name.partition("/")[0] in {*PACKAGES, "tests"} and not is_test(name)]
    interfaces = [name for name in python if not is_same_interface(*versions(name, since))]
    found = [user for name in interfaces for user in users(name)]
    return existing(test for user in found for test in ([user] if is_test(user) else tests_of(user)))


def process_tests(changed: list[str]) -> list[str]:
    """Returns the tests that start processes, of the folders of the changed files and the folders above."""
    folders = {Path("tests", parent) for name in changed for parent in Path(name).parents if parent.parts}
    return existing(test for test in sources() if Path(test).parent in folders and starts_processes(test))


def existing(tests: Iterable[str]) -> list[str]:
    """Returns the test files that exist, each once, without those that never run."""
    return [test for test in dict.fromkeys(tests) if (ROOT / test).exists() and not test.startswith(NEVER)]


def is_test(name: str) -> bool:
    """Returns whether a file holds tests."""
    return re.fullmatch(r"tests/(.*/)?test_\w+\.py", name) is not None


def starts_processes(test: str) -> bool:
    """Returns whether the tests of a file start processes."""
    return is_test(test) and STARTS_PROCESSES.search(sources()[test]) is not None


@cache
def sources() -> dict[str, str]:
    """Returns the source of each Python file of the product and the tests."""
    paths = [path for folder in (*PACKAGES, "tests") for path in sorted((ROOT / folder).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def users(name: str) -> Iterator[str]:
    """Yields the files that import a module, directly or from its package, or that name a file of another kind."""
    path = Path(name)
    waiting, seen = [path], {name}
    while waiting:
        pattern = import_of(waiting.pop())
        for file, source in sources().items():
            if file not in seen and pattern.search(source):
                seen.add(file)
                if file.endswith("__init__.py"):
                    waiting.append(Path(file))
                else:
                    yield file


def import_of(path: Path) -> re.Pattern[str]:
    """Returns the pattern of imports of a module, or of the name of another file."""
    if path.suffix != ".py":
        return re.compile(re.escape(path.name))
    *parents, module = path.with_suffix("").parts if path.name != "__init__.py" else path.parent.parts
    package = re.escape(".".join(parents))
    return re.compile(
        rf"^\s*(from {package}\.{module} import|import {package}\.{module}\b"
        rf"|from {package} import (\([^)]*|[^(\n]*)\b{module}\b)",
        re.MULTILINE,
    )
