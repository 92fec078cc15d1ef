"""Starts of the product's processes that must be refused, in a process that is forked from a preloaded one."""

from pathlib import Path

from tests.preloaded import preloaded_command
from tests.product import environment

DEADLINE_S = 120


def refusal(folder: Path, *command: str, **variables: str) -> str:
    """Runs a `noroshi` command that must exit with 1 and print one line. Returns the line."""
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / "refusal"
    process = preloaded_command(command, environment(**variables), output)
    exit_code, text = process.wait(DEADLINE_S), output.read_text()
    assert (exit_code, text.count("\n")) == (1, 1), text
    assert text.startswith("noroshi: "), text
    return text
