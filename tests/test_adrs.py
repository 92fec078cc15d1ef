"""Architecture decision records: their form, their index, and the citations of records."""

import re
from pathlib import Path

import pytest

from tests.test_architecture import ROOT, tracked

FOLDER = ROOT / "docs" / "adr"
RECORDS = {int(path.name[:4]): path for path in sorted(FOLDER.glob("[0-9]*.md"))}
HEADINGS = ["Context", "Decision", "Consequences"]
STATUS = re.compile(r"Accepted, 20\d\d-(?:0[1-9]|1[0-2])|Superseded by \[(\d+)\]\(0*\1-[a-z0-9-]+\.md\)")
CITATION = re.compile(r"\bADRs?\s+(\d+(?:(?:,| and|, and| or)\s+\d+)*)")
FILE_NAME = re.compile(r"\b\d{4}-[a-z][a-z0-9-]*\.md\b")
INDEX_ROW = re.compile(r"^\| \[(\d+)\]\(([\w.-]+)\) \| (.+?) \| (.+) \|$", re.MULTILINE)
MERGED_ROW = re.compile(r"^\| (\d+) \| .+ \| (\[\d+\].+) \|$", re.MULTILINE)


def form_errors(number: int, text: str) -> list[str]:
    """Returns how a record differs from the template."""
    lines = text.splitlines()
    errors = []
    if not lines[0].startswith(f"# {number}. "):
        errors.append(f"The first line must be '# {number}. Title'.")
    if not (lines[2].startswith("Status: ") and STATUS.fullmatch(lines[2].removeprefix("Status: "))):
        errors.append("The third line must be 'Status: Accepted, YYYY-MM' or 'Status: Superseded by [N](file)'.")
    if re.findall(r"^## (.+)$", text, re.MULTILINE) != HEADINGS:
        errors.append(f"The headings must be {', '.join(HEADINGS)}.")
    return errors


def unknown_citations(text: str) -> list[str]:
    """Returns the numbers and file names that the text cites and that do not exist."""
    numbers = [number for cited in CITATION.findall(text) for number in re.findall(r"\d+", cited)]
    files = [name for name in FILE_NAME.findall(text) if not (FOLDER / name).exists()]
    return [number for number in numbers if int(number) not in RECORDS] + files


def index_rows(text: str) -> dict[int, tuple[str, str]]:
    """Returns the file name and the title of each record that the index lists."""
    return {int(number): (name, title) for number, name, title, _ in INDEX_ROW.findall(text)}


@pytest.mark.parametrize("path", [*RECORDS.values(), FOLDER / "template.md"], ids=lambda path: path.name)
def test_adr_follows_the_template(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.name == "template.md":
        text = text.replace("# N.", "# 0.").replace("YYYY-MM", "2026-01")
    assert form_errors(int(path.name[:4]) if path.name[:4].isdigit() else 0, text) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# 7. ", "# 8. "),
        ("Status: ", ""),
        ("Accepted, 2026-11", "Accepted, November"),
        ("Accepted, 2026-11", "Superseded by ADR 8"),
        ("## Decision", "## What we did"),
        ("## Consequences\n", ""),
    ],
)
def test_adr_form_deviation_is_reported(before: str, after: str) -> None:
    text = "# 7. Title\n\nStatus: Accepted, 2026-11\n\n## Context\n\n## Decision\n\n## Consequences\n"
    assert form_errors(7, text) == []
    assert form_errors(7, text.replace("Accepted, 2026-11", "Superseded by [8](0008-other.md)")) == []
    assert len(form_errors(7, text.replace(before, after))) == 1


def test_adr_index_lists_exactly_the_records() -> None:
    index = index_rows((FOLDER / "README.md").read_text(encoding="utf-8"))
    titles = {number: path.read_text(encoding="utf-8").split("\n", 1)[0] for number, path in RECORDS.items()}
    assert {number: (name, f"# {number}. {title}") for number, (name, title) in index.items()} == {
        number: (path.name, titles[number]) for number, path in RECORDS.items()
    }
    assert len(RECORDS) == len(list(FOLDER.glob("[0-9]*.md"))), "Two records have the same number."


def test_adr_index_row_is_parsed_with_number_file_and_title() -> None:
    assert index_rows("| [3](0003-a-b.md) | A | B, C. |\n| 4 | Old | [3](0003-a-b.md) |") == {3: ("0003-a-b.md", "A")}


def test_merged_adr_numbers_point_to_existing_records() -> None:
    merged = MERGED_ROW.findall((FOLDER / "README.md").read_text(encoding="utf-8"))
    assert merged
    assert {int(number) for number, _ in merged} & RECORDS.keys() == set()
    targets = {int(target) for _, places in merged for target in re.findall(r"\[(\d+)\]", places)}
    assert targets <= RECORDS.keys()


def test_every_cited_adr_exists() -> None:
    texts = ((path, text) for path, text in tracked() if path != Path("tests/test_adrs.py"))
    assert {str(path): unknown for path, text in texts if (unknown := unknown_citations(text))} == {}


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("(ADR 3)", []),
        ("ADR 3 and 999", ["999"]),
        ("ADR\n998, 3 and 997", ["998", "997"]),
        ("[ADR 3](adr/0003-renamed.md)", ["0003-renamed.md"]),
    ],
)
def test_unknown_adr_citation_is_reported(text: str, unknown: list[str]) -> None:
    assert unknown_citations(text) == unknown
