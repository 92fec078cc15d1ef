"""Stored mails are deleted when they are old, and when their recipient is erased."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from jobs.providers.mail_files import FILE_KEPT_S, MailFiles
from jobs.providers.mailer import Mail, Mailer
from storage.ids import UserKey

pytestmark = pytest.mark.anyio

ANN = UserKey("acme", "ann")
NAMESAKES = (UserKey("globex", "ann"), UserKey("acme", "ann/2"), UserKey("acme/ann", ""))


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


async def store(folder: Path, id_: str, address: str | None, recipient: UserKey | None = None) -> None:
    mail = Mail("Ann: Lee", address, "Unread", "2 things", recipient=recipient)
    await Mailer(None, "Noroshi <noroshi@example.org>", folder).send(mail, id_)


async def test_old_mails_are_deleted(tmp_path: Path) -> None:
    for id_, age_s in (("old", FILE_KEPT_S + 1), ("recent", FILE_KEPT_S - 3600)):
        await store(tmp_path, id_, "ann@example.org")
        at = time.time() - age_s
        os.utime(tmp_path / f"{id_}.eml", (at, at))
    unfinished = tmp_path / ".killed.1234.part"
    unfinished.write_bytes(b"To: Ann")
    os.utime(unfinished, (0, 0))
    for other in ("notes.txt", ".hidden"):
        (tmp_path / other).write_text("of an operator")
        os.utime(tmp_path / other, (0, 0))
    (tmp_path / "folder.eml").mkdir()
    os.utime(tmp_path / "folder.eml", (0, 0))
    assert MailFiles(tmp_path).delete_old() == 2
    assert names(tmp_path) == [".hidden", "folder.eml", "notes.txt", "recent.eml"]


async def test_mails_to_a_user_and_own_addresses_are_deleted(tmp_path: Path) -> None:
    await store(tmp_path, "to-user", None, ANN)
    await store(tmp_path, "to-earlier-address", "then@example.org", ANN)
    await store(tmp_path, "invitation", "Ann@EXAMPLE.org")
    await store(tmp_path, "of-another", "ben@example.org", UserKey("acme", "ben"))
    await store(tmp_path, "to-nobody", None)
    for n, user in enumerate(NAMESAKES):
        await store(tmp_path, f"namesake-{n}", "other@example.org", user)
    assert MailFiles(tmp_path).delete_to(ANN, ["ann@example.org"]) == 3
    assert names(tmp_path) == ["namesake-0.eml", "namesake-1.eml", "namesake-2.eml", "of-another.eml", "to-nobody.eml"]


@pytest.mark.parametrize("content", [b"", b"To: \n\nx", b"To: ;;<<\xff>\nSubject: x\n\n", b"\x00\xff" * 99], ids=repr)
def test_file_that_is_no_mail_stays(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken.eml").write_bytes(content)
    assert MailFiles(tmp_path).delete_to(ANN, ["ann@example.org"]) == 0
    assert names(tmp_path) == ["broken.eml"]


async def test_unreadable_file_stops_no_deletion_of_others(tmp_path: Path) -> None:
    await store(tmp_path, "a", None, ANN)
    (tmp_path / "b.eml").symlink_to("/proc/self/mem")
    await store(tmp_path, "c", None, ANN)
    assert MailFiles(tmp_path).delete_to(ANN, []) == 2
    assert names(tmp_path) == ["b.eml"]


async def test_mail_that_is_being_stored_stays(tmp_path: Path) -> None:
    await store(tmp_path, "a", None, ANN)
    (tmp_path / "a.eml").rename(tmp_path / ".a.1234.part")
    assert MailFiles(tmp_path).delete_to(ANN, []) == 0


async def test_concurrent_deletions_do_not_fail(tmp_path: Path) -> None:
    for n in range(50):
        await store(tmp_path, f"mail-{n}", None, ANN)
    files = MailFiles(tmp_path)
    counts = await asyncio.gather(*(asyncio.to_thread(files.delete_to, ANN, []) for _ in range(4)))
    assert sum(counts) == 50
    assert names(tmp_path) == []


def test_missing_folder_has_no_mails(tmp_path: Path) -> None:
    files = MailFiles(tmp_path / "none")
    assert (files.delete_old(), files.delete_to(ANN, [])) == (0, 0)
