"""A test that leaves a socket to the garbage collector fails itself, and no later test fails for it."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.preloaded import PreloadedProcess

TESTS = """
import socket

class Cycle:
    def __init__(self):
        self.itself = self
        self.socket = socket.socket()

def test_closing():
    socket.socket().close()

def test_leaking():
    Cycle()

def test_later():
    pass
"""


def run_pytest(arguments: Sequence[str], output: Path) -> None:
    """Runs pytest in this process, which must be a new one, and writes its output to the file."""
    with output.open("wb") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
    sys.exit(pytest.main(list(arguments)))


def test_leaked_socket_fails_the_test_that_left_it(tmp_path: Path) -> None:
    module, output, settings = tmp_path / "test_sockets.py", tmp_path / "output", tmp_path / "pytest.ini"
    module.write_text(TESTS)
    settings.write_text("[pytest]\n")
    # The process has imported modules that pytest would rewrite.
    warnings = ("-W", "error", "-W", "ignore::pytest.PytestAssertRewriteWarning")
    options = ("-q", *warnings, "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "tests.conftest")
    process = PreloadedProcess(run_pytest, [*options, "-c", str(settings), str(module)], output)
    assert process.wait(120) == pytest.ExitCode.TESTS_FAILED
    text = output.read_text()
    assert "3 passed, 1 error" in text
    assert "ERROR" in text
    assert "test_leaking" in text.rpartition("ERROR ")[2]
