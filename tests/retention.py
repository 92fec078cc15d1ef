"""Reads the tables of docs/semantics.md about the lifetimes of collections and Redis keys."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SEMANTICS = Path(__file__).parents[1] / "docs/semantics.md"
SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "days": 86_400}
LIFETIME = re.compile(rf"(\d+) ({'|'.join(SECONDS)})\b")


@dataclass(frozen=True)
class DocumentedLifetime:
    """One row of a table. `seconds` is None unless the lifetime is a fixed time."""

    names: tuple[str, ...]
    seconds: float | None
    deleted_by: str


def collection_retentions() -> list[DocumentedLifetime]:
    """Returns the rows about collections."""
    return list(_rows("| collection | kept | deleted by |"))


def redis_retentions() -> list[DocumentedLifetime]:
    """Returns the rows about Redis keys. Their names have placeholders such as `<topic>`."""
    return list(_rows("| Redis key | kept |"))


def _rows(header: str) -> Iterator[DocumentedLifetime]:
    table = SEMANTICS.read_text().partition(header + "\n")[2].partition("\n\n")[0]
    for line in table.splitlines()[1:]:
        names, kept, *others = [cell.strip() for cell in line.strip("|").split("|")]
        lifetime = LIFETIME.match(kept)
        seconds = int(lifetime[1]) * SECONDS[lifetime[2]] if lifetime else None
        yield DocumentedLifetime(tuple(re.findall(r"`([^`]+)`", names)), seconds, "".join(others))
