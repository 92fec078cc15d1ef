"""Mutants are valid Python, differ from the source, and keep their names. The listed modules and tests exist."""

import ast
import tomllib
from pathlib import Path
from textwrap import indent

import pytest

from tests.mutants.operators import find_mutants

ROOT = Path(__file__).parents[2]


def bodies(body: str) -> list[str]:
    """Returns the bodies of a function's mutants."""
    head = "async def f(a, b):\n"
    source = head + indent(body, "    ")
    mutated = [each.apply(source) for each in find_mutants(source)]
    return [ast.unparse(ast.parse(each)).removeprefix(head).replace("\n    ", "\n").strip() for each in mutated]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = a < b", ["x = a <= b"]),
        ("x = (a + 1) * b", ["x = (a + 1) // b", "x = (a - 1) * b", "x = (a + 2) * b"]),
        ("x = a and b", ["x = b", "x = a"]),
        ("x = not a", ["x = a"]),
        ("x = {'org': a, 'user': b}", ["x = {**{}, 'user': b}", "x = {'org': a, **{}}"]),
        ("x = {'$gte': a}", ["x = {**{}}", "x = {'$gt': a}"]),
        ("x = a, b", ["x = (None, b)", "x = (a, None)"]),
        ("x = g(a, key=True)", ["x = g(a, **{})", "x = g(a, key=False)"]),
        ("x = a / 1000", ["x = a * 1000", "x = a / 2000"]),
        ("await g(a)", ["pass"]),
        ("return a", ["return None"]),
        (
            "if a:\n    raise E('text')",
            ["if False:\n    raise E('text')", "if True:\n    raise E('text')", "if a:\n    pass"],
        ),
        ("x = [y for y in a if y]", ["x = [y for y in a if False]", "x = [y for y in a if True]"]),
    ],
)
def test_statement_has_mutants(body: str, expected: list[str]) -> None:
    assert sorted(bodies(body)) == sorted(expected)


@pytest.mark.parametrize(
    "body",
    ["assert a", "log.info('text', a=a)", "x: Literal[1] = a", "'text'", "COUNTER.labels(a).inc()", "x = f'{1}'"],
)
def test_statement_without_behaviour_has_no_mutants(body: str) -> None:
    assert bodies(body) == []


def test_numbers_of_constants_are_not_mutated() -> None:
    source = "LIMIT = 5\nclass C:\n    limit: int = LIMIT\n    most: int = 7\ndef f(limit=6):\n    pass\n"
    assert [each.key for each in find_mutants(source)] == ["f: `6` -> `7`"]


def test_name_of_mutant_is_independent_of_its_line() -> None:
    source = "def f(a):\n    g(a)\n    g(a)\n"
    names = [each.key for each in find_mutants(source)]
    assert names == ["f: `g(a)` -> `pass`", "f: `g(a)` -> `pass` (2)"]
    assert [each.key for each in find_mutants(f"import g\n\n{source}")] == names


def test_mutants_differ_from_source_and_have_unique_names() -> None:
    source = (ROOT / "storage/locks.py").read_text(encoding="utf-8")
    mutants = find_mutants(source)
    assert len(mutants) > 50
    assert len({each.key for each in mutants}) == len(mutants)
    assert [
        each.key for each in mutants if ast.dump(ast.parse(each.apply(source))) == ast.dump(ast.parse(source))
    ] == []


def test_listed_equivalent_mutants_have_modules_and_reasons() -> None:
    """A name that no longer fits does no harm: `make mutants` then reports the mutant again."""
    listed = tomllib.loads((ROOT / "tests/mutants/equivalent.toml").read_text(encoding="utf-8"))
    assert [module for module in listed if not (ROOT / module).exists()] == []
    assert all(reason for reasons in listed.values() for reason in reasons.values())


def test_tests_listed_for_modules_exist() -> None:
    listed = tomllib.loads((ROOT / "tests/mutants/tests.toml").read_text(encoding="utf-8"))
    paths = [*listed, *(each for tests in listed.values() for each in tests)]
    assert [path for path in paths if not (ROOT / path).exists()] == []
