"""The list of guards is current: each stands in its module, and docs/security.md names its test as proof."""

import pytest

from tests.mutants.guards import Guard, all_guards
from tests.test_architecture import ROOT

ROWS = [line for line in (ROOT / "docs/security.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]


@pytest.mark.parametrize("guard", all_guards(), ids=lambda guard: guard.name)
def test_guard_is_in_its_module_and_in_the_checklist(guard: Guard) -> None:
    source = (ROOT / guard.module).read_text(encoding="utf-8")
    compile(guard.removed_from(source), guard.module, "exec")
    file, _, name = guard.test.partition("::")
    assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8")
    rows = [row for row in ROWS if row.startswith((f"| {guard.requirement} ", f"| {guard.requirement},"))]
    assert len(rows) == 1, f"docs/security.md must have one row of {guard.requirement}"
    assert f"`{file}`" in rows[0], f"The row of {guard.requirement} must name {file}."
