"""The language of the repository: retired words stay out; docstrings and test names follow CONTRIBUTING.md."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_architecture import ROOT, tracked

RETIRED = {
    r"crowds?": "coalesced query, audience",
    r"put apart|parted from": "excluded",
    r"told|foretold": "emitted, notified, reported, returned",
    r"hears? of|heard of": "observe, receive, be notified of",
    r"Gather": "BatchLoader",
    r"Sight": "Visibility",
    r"Desk|Office|Crew": "publisher, registry, worker pool",
    r"MoveRows|Movers?": "outbox relay",
    r"look-ups?": "lookup (noun), look up (verb)",
    r"general executor": "graphql-core's executor",
    r"past the driver": "without the driver's cursor or session layer",
    r"(?:call|calls|called|calling) off": "cancel",
    r"by turns": "interleaved",
    r"odd[ _]worlds?": "generated schema",
    r"whoever|whomever": "name the subject",
    r"so long as|as ever|from now on|ever so": "while; unchanged; afterwards; arbitrarily",
}
"""Whole words as case-sensitive regular expressions, each with the standard term."""

MIGRATION = {
    Path("storage/migrations/stored_names.py"),
    Path("tests/storage/test_stored_names.py"),
    Path("docs/adr/0085-rename-stored-fields-in-one-step.md"),
}
"""Files that name the stored fields of earlier code."""

EXEMPT = {Path("CHANGELOG.md"), Path("tests/test_language.py"), Path("tests/contract.graphql")} | MIGRATION
SUFFIXES = {".py", ".md", ".ts", ".tsx", ".graphql", ".css", ".html", ".toml", ".mjs"}
PATTERNS = {re.compile(rf"(?<![A-Za-z_])(?:{word})(?![A-Za-z_])"): word for word in RETIRED}
ANY_RETIRED = re.compile("|".join(RETIRED))
"""Finds the few texts in which each of PATTERNS is searched. It is much faster, because it starts with letters."""


FORBIDDEN_STARTS = re.compile(r"(?:What|Who|Whoever|Whom|Whose|Of|So long|As ever|From now on)\b")
TEXT_WITH_FORBIDDEN_START = re.compile(rf"[\"'](?:\\\n)?{FORBIDDEN_STARTS.pattern}")
"""Finds the few sources that are parsed."""

MAX_TEST_NAME = 60
TEST_NAME = re.compile(r"(?m)^\s*(?:async )?def (test_\w+)")


def retired_words(text: str) -> list[str]:
    """Returns the retired words in a text, each with the standard term."""
    if not ANY_RETIRED.search(text):
        return []
    return [f"{found[0]}: {RETIRED[word]}" for pattern, word in PATTERNS.items() for found in pattern.finditer(text)]


def docstrings(source: str) -> Iterator[str]:
    """Yields the docstrings of a module, its classes and functions, and of attributes."""
    for node in ast.walk(ast.parse(source)):
        for statement in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text = statement.value.value
                if isinstance(text, str):
                    yield text


def forbidden_starts(source: str) -> list[str]:
    """Returns the beginnings of docstrings that start with a forbidden word."""
    if not TEXT_WITH_FORBIDDEN_START.search(source):
        return []
    return [each[:60] for each in docstrings(source) if FORBIDDEN_STARTS.match(each)]


def python_files() -> Iterator[tuple[Path, str]]:
    return ((path, text) for path, text in tracked() if path.suffix == ".py")


def test_retired_words_stay_out() -> None:
    texts = ((path, text) for path, text in tracked() if path.suffix in SUFFIXES and path not in EXEMPT)
    assert {str(path): found for path, text in texts if (found := retired_words(text))} == {}


@pytest.mark.parametrize("text", ["a crowd of viewers", "is told", "Desk()", "two look-ups", 'row["told"]'])
def test_retired_word_is_found(text: str) -> None:
    assert retired_words(text)


@pytest.mark.parametrize("text", ["untold_events", "a desktop", "crowded"])
def test_longer_word_is_allowed(text: str) -> None:
    assert not retired_words(text)


def test_docstrings_start_with_verb_or_noun() -> None:
    assert {str(path): found for path, text in python_files() if (found := forbidden_starts(text))} == {}


@pytest.mark.parametrize("text", ['"""What runs."""', "'What runs.'", 'r"""What runs."""', '"""\\\nWhat runs."""'])
def test_forbidden_start_of_docstring_is_found(text: str) -> None:
    assert forbidden_starts(f"def run():\n    {text}\n") == ["What runs."]
    assert forbidden_starts(f"def run():\n    'Runs.'\n    return {text}\n") == []


def test_test_names_are_short() -> None:
    names = (
        f"{path}::{name}"
        for path, text in python_files()
        if path.parts[0] == "tests"
        for name in TEST_NAME.findall(text)
        if len(name) > MAX_TEST_NAME
    )
    assert list(names) == []


def test_contributing_guide_names_the_glossary() -> None:
    assert "docs/glossary.md" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
