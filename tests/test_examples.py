"""The pages of `docs/clients` quote the files of `examples/clients` and name their versions; examples stay short."""

import re
from pathlib import Path

import pytest

from tests.client_table import table
from tests.e2e.client_checks import pinned_versions

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs/clients").glob("*.md"))
CLIENTS = ROOT / "examples/clients"
BLOCK = re.compile(r"^```(js|ts|python|json|toml|graphql)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VERSION = re.compile(r"^\| ([@\w/-]+) \| (\d[\w.]*) \|", re.MULTILINE)
LINK = re.compile(r"\]\(([^)]+)\)")
MAX_LINES = 59


def example_files() -> list[Path]:
    """Returns the files of the example clients, without installed and generated ones."""
    skipped = {"node_modules", "generated", "__generated__", "noroshi_client", "noroshi_http", "build"}
    return [path for path in CLIENTS.rglob("*.*") if not skipped.intersection(path.parts) and path.is_file()]


def foreign_blocks(page: str, sources: list[str]) -> list[str]:
    """Returns the first line of each code block of a page that is in no source."""
    blocks = [text for _, text in BLOCK.findall(page)]
    return [text.splitlines()[0] for text in blocks if not any(text in source for source in sources)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_of_page_is_in_an_example(page: Path) -> None:
    sources = [path.read_text(encoding="utf-8") for path in example_files() if path.name != "package-lock.json"]
    assert foreign_blocks(page.read_text(encoding="utf-8"), sources) == [], "Copy the code from examples/clients."


def test_changed_code_of_page_is_found() -> None:
    assert foreign_blocks("```js\na();\nb();\n```\n", ["a();\nc();\n"]) == ["a();"]
    assert foreign_blocks("```js\na();\n```\n```sh\nmake\n```\n", ["a();\nc();\n"]) == []


def test_table_of_clients_has_the_pinned_versions() -> None:
    named = dict(VERSION.findall((ROOT / "docs/clients/README.md").read_text(encoding="utf-8")))
    assert named == pinned_versions()


def test_printed_table_has_version_and_result_of_each_client() -> None:
    rows = table({"gql": "4.4.0", "urql": "6.0.3"}, {"urql": "works", "gql": "AssertionError: 1"})
    assert rows[-2:] == ["| urql | 6.0.3 | works |", "| gql | 4.4.0 | AssertionError: 1 |"]


def test_index_links_every_page() -> None:
    links = set(LINK.findall((ROOT / "docs/clients/README.md").read_text(encoding="utf-8")))
    assert {page.name for page in PAGES} - links == {"README.md"}


def test_programs_have_fewer_than_60_lines() -> None:
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in ROOT.glob("examples/*.*")}
    assert {name for name, length in lengths.items() if length > MAX_LINES} == set()
    assert len(lengths) == 4


def test_codegen_maps_every_scalar_of_the_schema() -> None:
    schema = (ROOT / "schema/schema.graphql").read_text(encoding="utf-8")
    scalars = set(re.findall(r"^scalar (\w+)", schema, re.MULTILINE))
    config = (CLIENTS / "graphql-codegen/codegen.ts").read_text(encoding="utf-8")
    assert set(re.findall(r"^ +(\w+): \"string\",$", config, re.MULTILINE)) == scalars
