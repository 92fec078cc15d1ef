"""Reads and writes the tables of access rights in docs/access.md."""

import re
from collections.abc import Mapping
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/access.md"
OUTCOMES = {None: "yes", "UNAUTHENTICATED": "sign in", "FORBIDDEN": "no", "NOT_FOUND": "hidden"}
"""Words of the tables for the outcome of a call, by the code of its error."""

EMPTY = "empty"
"""Word of the tables for a nested field that is null or an empty list."""

ROOTS = ("Query", "Mutation", "Subscription")
NESTED = "Nested fields"

_HEADER = re.compile(r"^\| field \|(.+)\|$", re.MULTILINE)
_ROW = re.compile(r"^\| `(\w+\.\w+)` \|(.+)\|$", re.MULTILINE)

AccessOutcomes = Mapping[str, str]
"""The outcome of a field for each kind of viewer."""


def read_tables() -> dict[str, AccessOutcomes]:
    """Returns the outcomes of each field, such as "Query.user"."""
    page = PAGE.read_text(encoding="utf-8")
    header = _HEADER.search(page)
    assert header is not None, "docs/access.md has no table."
    viewers = _cells(header[1])
    return {row[1]: dict(zip(viewers, _cells(row[2]), strict=True)) for row in _ROW.finditer(page)}


def write_tables(outcomes: Mapping[str, AccessOutcomes]) -> None:
    """Replaces the tables of the page. Each table follows the heading of its root type, or of nested fields."""
    page = PAGE.read_text(encoding="utf-8")
    for section_name in (*ROOTS, NESTED):
        fields = {field: each for field, each in sorted(outcomes.items()) if _section(field) == section_name}
        section = re.compile(rf"(## {section_name}\n).*?(?=\n## |\Z)", re.DOTALL)
        page = section.sub(lambda match, fields=fields: f"{match[1]}\n{_table(fields)}", page)  # type: ignore[misc]
    PAGE.write_text(page, encoding="utf-8")


def _section(field: str) -> str:
    type_name = field.partition(".")[0]
    return type_name if type_name in ROOTS else NESTED


def _table(outcomes: Mapping[str, AccessOutcomes]) -> str:
    viewers = list(next(iter(outcomes.values())))
    rows = [["field", *viewers], ["---"] * (len(viewers) + 1)]
    rows += [[f"`{field}`", *each.values()] for field, each in outcomes.items()]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cells(text: str) -> list[str]:
    return [cell.strip() for cell in text.split("|")]
