"""Functions of an imported module get the code of a changed source, unless the module must be imported again."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutants.functions import ImportedFunctions

SOURCE = """
def decorate(function):
    return lambda: function() + 1

LIMIT = 1

class Counter:
    def count(self, start=0):
        return start + LIMIT

@decorate
def number():
    return 10
"""


@pytest.fixture
def imported(tmp_path: Path) -> tuple[ModuleType, ImportedFunctions]:
    file = tmp_path / "changed_module.py"
    file.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("changed_module", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, ImportedFunctions(file, SOURCE)


def test_change_of_functions_applies_to_existing_objects(imported: tuple[ModuleType, ImportedFunctions]) -> None:
    module, functions = imported
    counter = module.Counter()
    assert (counter.count(), module.number()) == (1, 11)
    change = functions.change_to(SOURCE.replace("start + LIMIT", "start - LIMIT").replace("return 10", "return 20"))
    assert change is not None
    change()
    assert (counter.count(), module.number()) == (-1, 21)


@pytest.mark.parametrize(
    ("text", "replacement"),
    [
        ("LIMIT = 1", "LIMIT = 2"),
        ("start=0", "start=1"),
        ("function() + 1", "function() - 1"),
        ("return 10", "return (10)"),
    ],
    ids=["constant", "default", "decorator", "no change"],
)
def test_change_that_needs_import_or_no_change_returns_none(
    imported: tuple[ModuleType, ImportedFunctions], text: str, replacement: str
) -> None:
    _, functions = imported
    assert functions.change_to(SOURCE.replace(text, replacement)) is None
