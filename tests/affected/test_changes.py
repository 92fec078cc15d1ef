"""Changes of the working tree, and the test files that they name."""

import subprocess
from pathlib import Path

import pytest

from tests.affected import changes
from tests.affected.changes import (
    changed_files,
    import_of,
    importing_tests,
    is_same_code,
    is_same_interface,
    own_tests,
    process_tests,
)

FUNCTION = "LIMIT = 3\n\ndef f(a):\n    return a\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two committed files, which the functions under test read instead of the project's."""
    (tmp_path / "changed.py").write_text(FUNCTION)
    (tmp_path / "kept.py").write_text(FUNCTION)
    identity = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(changes, "ROOT", tmp_path)
    return tmp_path


def test_changed_new_and_removed_files_are_listed(repository: Path) -> None:
    (repository / "changed.py").write_text(FUNCTION.replace("return a", "return 1"))
    (repository / "new name.txt").touch()
    (repository / "kept.py").unlink()
    assert changed_files("HEAD") == ["changed.py", "kept.py", "new name.txt"]


def test_changed_comment_is_no_change(repository: Path) -> None:
    (repository / "changed.py").write_text(f"# A comment.\n{FUNCTION}")
    assert changed_files("HEAD") == []


@pytest.mark.parametrize("text", ["a number", "x = 1  # text", "x = (\n    1\n)\n"])
def test_comments_and_layout_are_not_code(text: str) -> None:
    assert is_same_code(text, text.replace("  # text", ""))
    assert is_same_code("x = 1", "x = 2") is False


@pytest.mark.parametrize(
    ("new", "is_same"),
    [
        (FUNCTION.replace("return a", "return LIMIT"), True),
        (FUNCTION.replace("3", "4"), False),
        (FUNCTION.replace("(a)", "(a, b=1)"), False),
        (f"{FUNCTION}\n\nasync def g(): ...\n", False),
        ("def f(:", False),
    ],
)
def test_interface_is_all_but_bodies_of_functions(new: str, is_same: bool) -> None:
    assert is_same_interface(FUNCTION, new) is is_same


def test_module_names_its_test_files() -> None:
    assert own_tests(["storage/locks.py"]) == ["tests/storage/test_locks.py"]
    assert own_tests(["schema/search.py"]) == ["tests/resolvers/search/test_messages.py"]
    assert own_tests(["tests/test_docs.py", "tests/waiting.py", "tests/e2e/test_http.py"]) == ["tests/test_docs.py"]


def test_function_that_changes_names_no_importing_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "versions", lambda *_: (FUNCTION, FUNCTION.replace("return a", "return 1")))
    assert importing_tests(["storage/locks.py"], "HEAD") == []


def test_changed_interface_names_importing_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "versions", lambda *_: (FUNCTION, FUNCTION.replace("3", "4")))
    named = importing_tests(["storage/locks.py", "server/demo/scenes.txt"], "HEAD")
    assert {"tests/storage/test_locks.py", "tests/server/test_demo.py"} <= set(named)


@pytest.mark.parametrize(
    "line", ["from a.b.c import d", "    import a.b.c", "from a.b import d, c", "from a.b import (\n    d,\n    c,\n)"]
)
def test_import_of_module_is_found(line: str) -> None:
    assert import_of(Path("a/b/c.py")).search(f"x = 1\n{line}\n")


@pytest.mark.parametrize("line", ["from a.b.cd import c", "# from a.b.c import d", "from a.b import d\nc = 1"])
def test_other_import_is_not_found(line: str) -> None:
    assert import_of(Path("a/b/c.py")).search(f"{line}\n") is None


def test_tests_that_start_processes_run_by_folder() -> None:
    assert process_tests(["docs/architecture.md", "resolvers/search/messages.py"]) == ["tests/resolvers/test_access.py"]
    of_server = process_tests(["server/http/cookies.py"])
    assert {"tests/server/test_worker.py", "tests/server/http/test_sessions.py"} <= set(of_server)
    assert "tests/server/graphql/test_http.py" not in of_server
