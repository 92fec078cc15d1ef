"""Child processes end on request, on a deadline, and with their parent."""

import gc
import importlib
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from server.processes import ON_LINUX, ChildProcess, without_garbage_collection
from tests.product import eventually, processes

pytestmark = pytest.mark.anyio

IGNORES_SIGTERM = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
)


def python_command(code: str) -> list[str]:
    return [sys.executable, "-c", code]


async def test_garbage_is_collected_again_after_a_failed_import() -> None:
    with pytest.raises(ModuleNotFoundError), without_garbage_collection():
        importlib.import_module("a_module_that_does_not_exist" if not gc.isenabled() else "gc")
    assert gc.isenabled()


async def test_wait_returns_exit_code_and_output_is_kept(tmp_path: Path) -> None:
    child = ChildProcess(python_command("print('hello'); raise SystemExit(7)"), output=tmp_path / "out")
    assert await child.wait() == 7
    assert (tmp_path / "out").read_text() == "hello\n"


@pytest.mark.skipif(not ON_LINUX, reason="Only Linux starts children by the launcher.")
async def test_child_may_open_as_many_files_as_the_user(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    print_limit = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        child = ChildProcess(python_command(print_limit), output=tmp_path / "out")
        assert await child.wait() == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert int((tmp_path / "out").read_text()) == hard


async def test_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    child = ChildProcess(python_command(IGNORES_SIGTERM), output=tmp_path / "out")
    assert eventually((tmp_path / "out").read_text)
    started_at = time.monotonic()
    await child.stop(deadline_s=0.5)
    assert child.exit_code == -signal.SIGKILL
    assert 0.5 <= time.monotonic() - started_at < 30


async def test_child_that_exits_on_sigterm_is_not_killed(tmp_path: Path) -> None:
    exit_on_sigterm = (
        "import signal, time, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(5)); print('up', flush=True)"
    )
    child = ChildProcess(python_command(f"{exit_on_sigterm}; time.sleep(60)"), output=tmp_path / "out")
    assert eventually((tmp_path / "out").read_text)
    await child.stop(deadline_s=20)
    assert child.exit_code == 5


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can end a child when its parent dies")
@pytest.mark.parametrize("watches_parent", [False, True])
async def test_child_ends_with_parent(tmp_path: Path, watches_parent: bool) -> None:
    # The child that watches its parent ignores SIGTERM, so only the deadline of `watch_parent` can end it.
    child = f"import os; from server.processes import watch_parent; watch_parent(os.getppid(), 0.5); {IGNORES_SIGTERM}"
    code = (
        "import sys, time; from pathlib import Path; from server.processes import ChildProcess\n"
        "child = ChildProcess([sys.executable, '-c', sys.argv[1]], output=Path(sys.argv[2]))\n"
        "print(child.pid, flush=True); time.sleep(60)"
    )
    command = [
        *python_command(code),
        child if watches_parent else "print('up', flush=True); import time; time.sleep(60)",
    ]
    with subprocess.Popen([*command, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        assert eventually((tmp_path / "out").read_text)
        parent.kill()
    assert eventually(lambda: pid not in processes())
