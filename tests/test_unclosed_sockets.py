"""A test that leaves a socket to the garbage collector fails itself, and no later test fails for it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
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


def test_leaked_socket_fails_the_test_that_left_it(tmp_path: Path) -> None:
    module = tmp_path / "test_sockets.py"
    module.write_text(TESTS)
    options = ("-q", "-W", "error", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "tests.conftest")
    command = [sys.executable, "-m", "pytest", *options, "-c", str(tmp_path / "pytest.ini"), str(module)]
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "3 passed, 1 error" in done.stdout
    assert "ERROR" in done.stdout
    assert "test_leaking" in done.stdout.rpartition("ERROR ")[2]
