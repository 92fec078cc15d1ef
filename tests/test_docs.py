"""Documents: the files, links, headings and names that they cite exist, and docs/limits.md has the code's numbers."""

import ast
import os
import pkgutil
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from functools import cache
from keyword import kwlist
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIMITS = ROOT / "docs/limits.md"
CITING_SUFFIXES = {".py", ".md", ".toml", ".ts", ".tsx", ".graphql", ".txt", ".mk", ""}

FILES_WITH_INVENTED_NAMES = {Path("tests/test_adrs.py"), Path("tests/test_docs.py")}
"""Files that may name documents that do not exist."""

CITATION = re.compile(r"(?<![\w/.:@*<{}-])((?:[\w.-]+/)*[\w-][\w.-]*\.md)(?![\w/])")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|<(?:a|img)\b[^>]*?\b(?:href|src)=\"([^\"]+)\"")
PATH_PART = re.compile(r'/ "[\w.-]+"')
"""A part of a path that code composes with the operator `/`."""

CODE_PATH = re.compile(
    r"(?<![\w./-])((?:server|schema|resolvers|jobs|storage|tests|benchmarks|web-client)/(?:[\w/.-]+\.[a-z]+\b|[\w/-]+/))"
)
CODE_BLOCK = re.compile(r"^ *(```|~~~).*?^ *\1", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"`([^`]+)`")
NAME = re.compile(r"[A-Za-z_]\w*")
NOT_NAMES = re.compile(r"\S*[/<]\S*|\"[^\"]*\"|'[^']*'")
"""Parts of code spans that name no code: paths, placeholders and texts."""

NAME_IN_MODULE = re.compile(r"`(?P<name>[\w.]+)(?:\(\))?`\s+(?:in|of)\s+`(?P<path>[\w/.-]+\.py)`")
MODULE_WITH_NAME = re.compile(r"^\| `(?P<path>[\w/.-]+\.py)` \| `(?P<name>[\w.]+)`", re.MULTILINE)
"""A row of a table about modules, whose second cell begins with a name."""
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
UNITS = {
    "bytes": 1,
    "kB": 1000,
    "KiB": 1024,
    "MB": 1000**2,
    "MiB": 1024**2,
    "ms": 0.001,
    "s": 1,
    "min": 60,
    "h": 3600,
    "days": 86_400,
}
QUANTITY = re.compile(rf"(?<![\w.,])(\d[\d,]*(?:\.\d+)?)(?: ({'|'.join(UNITS)})\b)?")


@cache
def tracked_paths() -> frozenset[Path]:
    """Returns the paths of the repository's files, relative to its root."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("Needs git and its repository, to tell which files belong to the project.")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return frozenset(Path(name) for name in names.split("\0") if name and (ROOT / name).is_file())


def documents() -> list[Path]:
    return sorted(path for path in tracked_paths() if path.suffix == ".md")


def text_of(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def unresolved_citations(path: Path, text: str) -> list[str]:
    """Returns cited documents that are not in the repository. Documents may omit their own folder and docs/."""
    folders = [Path(), path.parent, Path("docs")] if path.suffix == ".md" else [Path()]
    cited = CITATION.findall(PATH_PART.sub("", text) if path.suffix == ".py" else text)
    return [name for name in cited if not any(normalized(folder / name) in tracked_paths() for folder in folders)]


def normalized(path: Path) -> Path:
    """Returns the path with `..` resolved. A path out of the repository keeps its leading `..`."""
    return Path(os.path.normpath(path))


def test_cited_documents_exist() -> None:
    citing_files = sorted(
        path for path in tracked_paths() if path.suffix in CITING_SUFFIXES and path not in FILES_WITH_INVENTED_NAMES
    )
    assert {str(path): names for path in citing_files if (names := unresolved_citations(path, text_of(path)))} == {}


@pytest.mark.parametrize("name", ["rules{}", "docs/none{}", "(docs/adr/none{}, 3)"])
def test_citation_of_missing_document_is_found(name: str) -> None:
    assert unresolved_citations(Path("storage/mongo.py"), f"see {name.format('.md')}.")


def test_citation_without_folder_resolves_in_documents_only() -> None:
    name = "semantics" + ".md"
    assert unresolved_citations(Path("docs/limits.md"), name) == []
    assert unresolved_citations(Path("storage/mongo.py"), name) == [name]


def links(text: str) -> Iterator[str]:
    """Yields the targets of links and images inside the repository."""
    for target in (first or second for first, second in LINK.findall(CODE_BLOCK.sub("", text))):
        if not re.match(r"[a-z][a-z0-9+.-]*:|//", target):
            yield target


def anchors(text: str) -> set[str]:
    """Returns the anchors that GitHub creates for a document's headings."""
    found_anchors: set[str] = set()
    for heading in HEADING.findall(CODE_BLOCK.sub("", text)):
        visible_text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading)
        base = re.sub(r"[^\w\- ]", "", visible_text.lower()).replace(" ", "-")
        number, anchor = 0, base
        while anchor in found_anchors:
            number += 1
            anchor = f"{base}-{number}"
        found_anchors.add(anchor)
    return found_anchors


def broken_links(path: Path, text: str) -> list[str]:
    return [target for target in links(text) if not link_resolves(path, text, target)]


def link_resolves(path: Path, text: str, target: str) -> bool:
    name, _, anchor = target.partition("#")
    linked_path = normalized(path.parent / name) if name else path
    exists = linked_path in tracked_paths() or any(linked_path in each.parents for each in tracked_paths())
    if not exists or not anchor:
        return exists
    return anchor in anchors(text if linked_path == path else text_of(linked_path))


def test_links_and_anchors_resolve() -> None:
    assert {str(path): broken for path in documents() if (broken := broken_links(path, text_of(path)))} == {}


@pytest.mark.parametrize(
    "target", ["none.md", "../docs/none.md", "semantics.md#9-nothing", "#nothing", "../../../etc/passwd"]
)
def test_broken_link_is_found(target: str) -> None:
    assert broken_links(Path("docs/limits.md"), f"# Limits\n[a]({target})") == [target]


def test_anchors_follow_headings() -> None:
    text = "# What `a.b` means, 1/2\n```\n# no heading\n```\n## Mail\n## Mail\n"
    assert anchors(text) == {"what-ab-means-12", "mail", "mail-1"}


def missing_paths(text: str) -> list[str]:
    """Returns files and folders of the code that a document names and that do not exist."""
    return [name for name in CODE_PATH.findall(text) if not (ROOT / name).exists()]


def test_code_that_documents_name_exists() -> None:
    assert {str(path): names for path in documents() if (names := missing_paths(text_of(path)))} == {}
    assert missing_paths("see `tests/none.py`, storage/none/ and storage/locks.py") == [
        "tests/none.py",
        "storage/none/",
    ]


def guides() -> dict[str, str]:
    """Returns the texts of the documents that tell how to change the code, by path."""
    paths = {Path("CONTRIBUTING.md"), *map(Path("docs").joinpath, ("architecture.md", "first-change.md"))}
    paths |= {path for path in documents() if re.match(r"docs/(adding|writing)-a-", str(path))}
    return {str(path): text_of(path) for path in sorted(paths)}


def names_in_guide(guide: str) -> set[str]:
    """Returns the words of a guide's code spans that its own examples do not define."""
    examples = " ".join(match[0] for match in CODE_BLOCK.finditer(guide))
    spans = " ".join(NOT_NAMES.sub(" ", span) for span in CODE_SPAN.findall(CODE_BLOCK.sub("", guide)))
    return set(NAME.findall(spans)) - set(NAME.findall(examples)) - set(kwlist)


def names_in_source(path: Path, source: str) -> set[str]:
    """Returns the words of a source file outside comments and docstrings."""
    if path.suffix != ".py":
        return set(NAME.findall(re.sub(r"(?m)/\*(?s:.*?)\*/|^\s*(?://|#).*", "", source)))
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    values = (value for node in nodes if id(node) not in docstrings for _, value in ast.iter_fields(node))
    return {name for value in values if isinstance(value, str) for name in NAME.findall(value)}


def names_without_code(names: set[str]) -> set[str]:
    """Returns the names that no source file has."""
    missing = set(names)
    for path in sorted(tracked_paths() - FILES_WITH_INVENTED_NAMES, key=lambda each: (each.parts[0] == "tests", each)):
        if missing and (path.suffix in {".py", ".graphql", ".ts", ".tsx"} or path.name == "Makefile"):
            source = text_of(path)
            if missing.intersection(NAME.findall(source)):
                missing -= names_in_source(path, source)
    return missing


def misplaced_names(guide: str) -> list[str]:
    """Returns names that, as a guide says, are in a module that does not have them."""
    found = [match for pattern in (NAME_IN_MODULE, MODULE_WITH_NAME) for match in pattern.finditer(guide)]
    placed = [(match["name"], Path(match["path"])) for match in found]
    return [
        f"{name} in {path}" for name, path in placed if not set(name.split(".")) <= names_in_source(path, text_of(path))
    ]


def test_names_in_guides_exist() -> None:
    names = {path: names_in_guide(text) for path, text in guides().items()}
    missing = names_without_code(set().union(*names.values()))
    assert {path: sorted(own & missing) for path, own in names.items() if own & missing} == {}
    assert {path: found for path, text in guides().items() if (found := misplaced_names(text))} == {}
    assert len(names) > 8
    assert sum(map(len, names.values())) > 200


def test_missing_name_in_guide_is_found() -> None:
    guide = "Call `Sequencer.begin_commit(own)`, `own()` or `locks.py`.\n\n   ```python\n   own = 1\n   ```\n"
    assert names_without_code(names_in_guide(guide)) == {"begin_commit"}
    placed = "`Locks.held` in `storage/locks.py`, `Outbox` of\n`storage/locks.py`\n| `storage/ids.py` | `Locks`: text |"
    assert misplaced_names(placed) == ["Outbox in storage/locks.py", "Locks in storage/ids.py"]
    source = '"""A docstring."""\nCONSTANT = "a text"  # a comment\n'
    assert names_in_source(Path("a.py"), source) == {"CONSTANT", "a", "text"}
    assert names_in_source(Path("a.ts"), "/* one\ntwo */ const three = 3;\n// four\n") == {"const", "three"}


def test_upstream_document_has_the_locked_versions() -> None:
    locked_versions = dict(re.findall(r"^([a-z0-9-]+)==([\w.]+)", text_of(Path("requirements.lock")), re.MULTILINE))
    documented_versions = re.findall(r"\b([a-z][a-z0-9-]+) (\d+(?:\.\w+)+)", text_of(Path("docs/upstream.md")))
    compared_versions = {name: version for name, version in documented_versions if name in locked_versions}
    assert compared_versions == {name: locked_versions[name] for name in compared_versions}
    assert len(compared_versions) > 10


def test_documents_cite_nothing_outside_the_repository() -> None:
    outside = re.compile(r"(?<![\w-])(?:\.\./)*shared/|\bseeds/")
    assert {str(path): found for path in documents() if (found := outside.findall(text_of(path)))} == {}


def limit_rows(text: str) -> Iterator[tuple[str, list[str], list[float]]]:
    """Yields each row of a limits table, the constants that it names, and the numbers of its second column."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) >= 3:
            constants = re.findall(r"`([a-z_]+(?:\.\w+)+)`", cells[-1])
            yield line, constants, [quantity(*match) for match in QUANTITY.findall(cells[1])]


def quantity(number: str, unit: str) -> float:
    """Returns a number with its unit as bytes, seconds or a plain number."""
    return float(number.replace(",", "")) * UNITS.get(unit, 1)


def constant(name: str) -> float:
    """Returns the constant's value in bytes, seconds or as a plain number. Raises: AttributeError, ImportError."""
    owner, _, attribute = name.rpartition(".")
    holder = pkgutil.resolve_name(owner)
    value = default_of(holder, attribute) if is_dataclass(holder) else getattr(holder, attribute)
    if isinstance(value, timedelta):
        return value.total_seconds()
    assert isinstance(value, int | float), name
    if name.endswith("_DAYS"):
        return value * 86_400.0
    return value / 1000 if name.endswith("_MS") else float(value)


def default_of(type_: object, name: str) -> object:
    defaults = {each.name: each.default for each in fields(type_)}  # type: ignore[arg-type]
    assert defaults.get(name, MISSING) is not MISSING, f"{type_} has no default for {name}."
    return defaults[name]


def wrong_limits(text: str) -> list[str]:
    """Returns rows that name a constant whose value is not among the row's numbers."""
    return [row for row, names, numbers in limit_rows(text) if not all(constant(name) in numbers for name in names)]


@pytest.mark.usefixtures("throttled_activity")
def test_limits_have_the_numbers_of_the_code() -> None:
    assert wrong_limits(LIMITS.read_text(encoding="utf-8")) == []
    assert sum(len(names) for _, names, _ in limit_rows(LIMITS.read_text(encoding="utf-8"))) > 100


def test_wrong_limit_is_found() -> None:
    depth, retention = "server.graphql.limits.DocumentLimits.depth", "storage.streams.log.KEPT_S"
    assert len(wrong_limits(f"| depth | 13 levels | error | `{depth}` |")) == 1
    assert len(wrong_limits(f"| events | 24 min | `{retention}` |")) == 1
    assert wrong_limits(f"| depth | 12 levels | error | `{depth}` |\n| events | 24 h | `{retention}` |") == []
    with pytest.raises(AttributeError):
        wrong_limits("| depth | 12 | error | `server.graphql.limits.NO_SUCH_LIMIT` |")


def limits_of_inputs() -> set[str]:
    """Returns the names of constants that limit input: MAX_… in resolvers/, and the limits of GraphQL documents."""
    documents = "server.graphql.limits.DocumentLimits"
    numbers = [each for each in fields(pkgutil.resolve_name(documents)) if not isinstance(each.default, bool)]
    limits = {f"{documents}.{each.name}" for each in numbers}
    for path in (ROOT / "resolvers").rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        names = re.findall(r"^(MAX_\w+)\b", path.read_text(encoding="utf-8"), re.MULTILINE)
        limits |= {f"{module}.{name}" for name in names}
    return limits


def test_every_limit_of_inputs_is_documented() -> None:
    documented = {name for _, names, _ in limit_rows(LIMITS.read_text(encoding="utf-8")) for name in names}
    assert limits_of_inputs() - documented == set(), "Add a row to docs/limits.md."


def test_glossary_is_alphabetical_and_defines_each_term_once() -> None:
    rows = [
        line.split("|")[1].strip().lower()
        for line in text_of(Path("docs/glossary.md")).splitlines()
        if line[:2] == "| "
    ]
    terms = [row for row in rows if row != "term" and not row.startswith("---")]
    assert terms == sorted(set(terms))
