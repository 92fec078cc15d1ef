"""The sweeper deletes old mails from the worker's data folder."""

import os
from pathlib import Path

import pytest

from jobs.mail_files import delete_old_mails
from jobs.providers.mailer import Mail, Mailer
from storage.stores import Stores
from tests.jobs.contexts import job_context

pytestmark = pytest.mark.anyio


async def test_sweeper_deletes_old_mails_only(stores: Stores, tmp_path: Path) -> None:
    jobs = job_context(stores, mailer=Mailer(None, "noroshi@example.org", tmp_path))
    for id_ in ("old", "new"):
        await jobs.mailer.send(Mail("Ann", None, "s", "t"), id_)
    os.utime(tmp_path / "old.eml", (0, 0))
    assert [await delete_old_mails(jobs) for _ in range(2)] == [1, 0]
    assert [file.name for file in tmp_path.iterdir()] == ["new.eml"]
