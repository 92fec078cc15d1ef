"""The data folder: permissions, lock, secrets and free space."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from server.embedded import (
    StartupError,
    embedded_servers,
    lock_data_dir,
    prepare_data_dir,
    stored_secret,
)
from server.embedded.running import running_mongodb

pytestmark = pytest.mark.anyio


async def refusal(data_dir: Path, **options: Any) -> str:
    """Returns the error of a failed start, which must be one line."""
    with pytest.raises(StartupError) as error:
        async with embedded_servers(data_dir, **options):
            pass
    message = str(error.value)
    assert "\n" not in message
    return message


async def test_low_free_space_is_refused_with_folder_and_size(data_dir: Path) -> None:
    message = await refusal(data_dir, min_free_bytes=shutil.disk_usage("/").total * 1000)
    assert str(data_dir) in message
    assert "MB free" in message
    assert not (data_dir / "mongodb").exists()


async def test_data_dir_is_locked_while_servers_run(data_dir: Path) -> None:
    async with embedded_servers(data_dir, need_mongodb=False):
        message = await refusal(data_dir, need_mongodb=False)
    assert f"in use by another `noroshi`, process {os.getpid()}" in message
    async with embedded_servers(data_dir, need_mongodb=False):
        pass


async def test_file_as_data_dir_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        assert "can't be used" in await refusal(path)


async def test_foreign_folder_is_refused_and_left_unchanged(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "thesis.txt").touch()
    assert "not Noroshi's" in await refusal(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


async def test_folder_with_only_uploaded_files_is_accepted(tmp_path: Path) -> None:
    """`noroshi web` with servers of its own creates this folder before the first `noroshi up`."""
    (tmp_path / "files").mkdir()
    assert prepare_data_dir(tmp_path) == tmp_path


async def test_data_dir_and_secrets_are_readable_by_owner_only(data_dir: Path) -> None:
    folder = prepare_data_dir(data_dir)
    first = stored_secret(folder, "auth_secret")
    assert len(first) >= 43
    assert stored_secret(folder, "auth_secret") == first
    assert stored_secret(folder, "another") != first
    assert stored_secret(folder, "auth_secret") == first
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "secrets.json").stat().st_mode) == 0o600


async def test_concurrent_processes_get_same_secret(data_dir: Path) -> None:
    prepare_data_dir(data_dir)
    code = (
        "import sys; from pathlib import Path; from server.embedded import stored_secret\n"
        "print(stored_secret(Path(sys.argv[1]), 'a'))"
    )
    command = [sys.executable, "-c", code, str(data_dir)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(6)]
    assert len({process.communicate()[0] for process in processes}) == 1


async def test_unreadable_secrets_file_is_refused(data_dir: Path) -> None:
    folder = prepare_data_dir(data_dir)
    (folder / "secrets.json").write_text("{")
    with pytest.raises(StartupError, match=r"secrets\.json can't be read"):
        stored_secret(folder, "auth_secret")


async def test_folder_in_use_without_embedded_mongodb_is_refused(tmp_path: Path) -> None:
    """The process that uses the folder works with a MongoDB server elsewhere."""
    folder = prepare_data_dir(tmp_path)
    (folder / "mongodb" / "data").mkdir(parents=True)
    (folder / "mongodb" / "data" / "WiredTiger").touch()
    with lock_data_dir(folder), pytest.raises(StartupError, match="is in use by another"):
        async with running_mongodb(None, folder):
            pass
