"""Benchmarks of pages, searches and lookups run to their end with tiny sizes."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks import (
    before_after,
    instructions,
    joined_reads,
    lookup,
    screens,
    search,
    timeline,
    timeline_data,
    timeline_sizes,
)
from benchmarks.peers import comparison
from benchmarks.peers.node_packages import NodePackagesMissing, install_node_packages
from benchmarks.peers.same_answers import DifferentAnswer, check_same_answers, check_same_body
from benchmarks.servers import DatabaseServers
from tests.benchmarks.conftest import RunBenchmark
from tests.product import NOROSHI
from tests.screens.data import ScreenSizes
from tests.screens.operations import SCREENS
from tests.test_architecture import ROOT

SHORT = "--seconds 0.2 --warm-up 0.1"


@pytest.fixture(autouse=True)
def small_timeline(set_sizes: Callable[..., None]) -> None:
    set_sizes(timeline_data, TOPICS=2, MESSAGES=120, READERS=4, AUTHORS=10)
    set_sizes(timeline, CONNECTIONS=2, MANY_CONNECTIONS=4, RANDOM_REQUESTS=20)
    set_sizes(timeline_sizes, CONNECTIONS=2, REQUESTS=20)


@pytest.fixture
def installed_peers() -> None:
    """Installs the packages of the Node peers. Skips the test when they can't be installed."""
    try:
        install_node_packages()
    except NodePackagesMissing as error:
        pytest.skip(str(error))


@pytest.mark.soak  # Three minutes for the packages and servers of Node.
@pytest.mark.usefixtures("installed_peers")
def test_comparison_prints_its_table(run_on_servers: RunBenchmark) -> None:
    output = run_on_servers(comparison, f"--rounds 1 {SHORT}")
    for variant in comparison.VARIANTS:
        rows = [line for line in output.splitlines() if f" {variant} " in line]
        assert len(rows) == 3
        assert all(row.endswith(" 0 │") for row in rows), f"Requests failed:\n{output}"


OTHER_SERVER = """
import socket, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def answer(self):
        body = b'{"data":{"messages":{}}}'
        self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
    do_GET = do_POST = answer

server = HTTPServer(("127.0.0.1", 0), Handler)
server.socket = socket.socket(fileno=int(sys.argv[-1].removeprefix("--fd=")))
server.serve_forever()
"""


@pytest.mark.anyio
async def test_server_with_other_answer_is_refused(servers: DatabaseServers) -> None:
    programs = {"Noroshi": NOROSHI, "other": [sys.executable, "-c", OTHER_SERVER]}
    async with timeline_data.timeline_data(servers) as data:
        with pytest.raises(DifferentAnswer, match=r"^other answers .*\nwith other bytes .* at byte 21\.") as raised:
            await check_same_answers(programs, servers, data)
    assert '\nExpected: {"data":{"messages":{"items":' in str(raised.value)
    assert str(raised.value).endswith('\nReceived: {"data":{"messages":{}}}')


def test_shorter_answer_is_refused() -> None:
    check_same_body("Noroshi", "request", b"page", b"page")
    with pytest.raises(DifferentAnswer, match="first at byte 3"):
        check_same_body("other", "request", b"page", b"pag")


def test_missing_node_names_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    result = CliRunner().invoke(comparison.app, [])
    assert result.exit_code == 1
    assert "not found: node, npm. Install them: `apt-get install nodejs npm`." in result.output


def test_timeline_sizes_prints_its_table(run_on_servers: RunBenchmark) -> None:
    output = run_on_servers(timeline_sizes, f"--pages 10 --topics 60 --sockets 2 {SHORT}")
    assert all(name in output for name in ("pages of 10", "a topic of 60", "2 open sockets"))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder that counts as a checkout, with the `noroshi` command of this one."""
    program = tmp_path / ".venv/bin/noroshi"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec env PYTHONPATH={ROOT} {sys.executable} -P -m server.commands.cli "$@"\n')
    program.chmod(0o755)
    return tmp_path


def test_before_after_prints_its_tables(run_on_servers: RunBenchmark, checkout: Path) -> None:
    output = run_on_servers(before_after, f"--before {checkout} --rounds 1 --clients 2 {SHORT}")
    assert all(output.count(row) == 4 for row in ("random page", "post, 2 clients", "reaction, 2 clients"))


def test_before_after_with_two_web_processes_measures_writes(run_on_servers: RunBenchmark, checkout: Path) -> None:
    output = run_on_servers(before_after, f"--before {checkout} --web 2 --rounds 1 --clients 2 {SHORT}")
    assert all(output.count(row) == 4 for row in ("post, 2 clients", "reaction, 2 clients"))
    assert "random page" not in output


def test_screens_prints_its_table(run_on_servers: RunBenchmark, checkout: Path, set_sizes: Callable[..., None]) -> None:
    set_sizes(screens, SIZES=ScreenSizes(1, 1, 1, 1, 10, 1, 1, 5))
    output = run_on_servers(screens, f"--before {checkout} --rounds 1 --requests 1")
    assert all(output.count(f"│ {name} ") == 2 for name in SCREENS), output


@pytest.fixture
def needs_valgrind() -> None:
    """Skips the test where valgrind is not installed."""
    if not shutil.which("valgrind"):
        pytest.skip("Instructions are counted with valgrind.")


ADDER = "import sys\nfor line in sys.stdin: print(sum(range(int(line))), flush=True)"


@pytest.mark.anyio
@pytest.mark.usefixtures("needs_valgrind")
async def test_instructions_grow_with_the_work(tmp_path: Path) -> None:
    program = instructions.in_callgrind([sys.executable, "-c", ADDER], tmp_path)
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        adder, answers = process.stdin, process.stdout

        async def add(numbers: int) -> int:
            print(numbers, file=adder, flush=True)
            return int(answers.readline())

        await add(1)
        callgrind = instructions.Callgrind(process.pid, tmp_path)
        few, _, _ = await callgrind.count(add(10_000), "few")
        many, result, seconds = await callgrind.count(add(110_000), "many")
        adder.close()
    assert result == sum(range(110_000))
    assert seconds > 0
    assert 10 < (many - few) / 100_000 < 1000, "An addition takes some dozens of instructions."
    assert instructions.instructions(tmp_path / "few") == few


@pytest.mark.soak
@pytest.mark.usefixtures("needs_valgrind")
def test_instructions_prints_its_table(run_on_servers: RunBenchmark, set_sizes: Callable[..., None]) -> None:
    set_sizes(instructions, SIZES=ScreenSizes(1, 1, 1, 1, 10, 1, 1, 5), POSTERS=2)
    output = run_on_servers(instructions, f"--before {ROOT} {SHORT} --idle 0.1 --only post")
    (row,) = [line.split("│")[1:-1] for line in output.splitlines() if "post, 2 clients" in line]
    before, after = (float(cell) for cell in row[1:3])
    assert 0.5 < before / after < 2


def test_refused_operations_are_not_compared() -> None:
    counts = instructions.Counts()
    for variant, millions in {"before": 2e6, "after": 3e6}.items():
        counts.add("page", variant, millions * 1000, 1000)
    counts.add("later query", "after", 1e6, 1)
    counts.refused.add("later query")
    assert [*counts.rows()] == [["page", "2.000", "3.000", "+50.0 %", "1,000", "1,000"]]


def test_missing_valgrind_names_the_installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "")
    result = CliRunner().invoke(instructions.app, ["--before", str(tmp_path)])
    assert result.exit_code == 1
    assert "not found: valgrind, callgrind_control. Install it: `apt-get install valgrind`." in result.output


def test_joined_reads_prints_its_table(run_on_servers: RunBenchmark, set_sizes: Callable[..., None]) -> None:
    set_sizes(joined_reads, SIZES=ScreenSizes(1, 1, 1, 1, 10, 1, 1, 5))
    output = run_on_servers(joined_reads, "--rounds 1 --queries 1")
    assert output.count("two finds") == output.count("one aggregate") == 2


def test_search_prints_its_table(run_on_servers: RunBenchmark, set_sizes: Callable[..., None]) -> None:
    set_sizes(search, COMMUNITIES=2, TOPICS=2, AUTHORS=2, JOINED=1, SEARCHERS=["ann"], CACHE_MIB=256)
    output = run_on_servers(search, f"--messages 100 --rate 20 {SHORT}")
    assert all(kind in output for kind in ("one word", "two words", "Japanese phrase"))


def test_lookup_prints_its_table(run_on_servers: RunBenchmark, set_sizes: Callable[..., None]) -> None:
    set_sizes(lookup, DOMAINS=20, REQUESTS=2)
    assert "requested/s" in run_on_servers(lookup, f"--addresses 500 --rates 10 {SHORT}")
