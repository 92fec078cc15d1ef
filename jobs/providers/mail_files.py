"""Mails that are stored as files because no mail server is set. Operators read and forward them.

All workers of a data folder share the folder, and may store and delete the same files at the same time.
"""

import secrets
import time
from collections.abc import Callable, Collection, Iterable
from email import policy
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from pathlib import Path
from urllib.parse import quote

import structlog

from storage.ids import UserKey
from storage.privacy.addresses import normalized_address

log = structlog.get_logger(__name__)

FILE_KEPT_S = 7 * 86_400
"""How long a mail that was stored as a file is kept."""

MAIL, UNFINISHED = ".eml", ".part"
"""Suffixes of stored mails."""

RECIPIENT = "Noroshi-Recipient"
"""Header of stored mails to users. It holds the user's organization and id, so that an erasure finds the mail."""


class MailFiles:
    """The mails `<id>.eml` of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def store(self, content: bytes, id_: str) -> None:
        """Stores a mail, and replaces an earlier one of the same id."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Written to a temporary file and renamed, so that no reader sees half a mail.
        temporary = self._folder / f".{id_}.{secrets.token_hex(4)}{UNFINISHED}"
        temporary.write_bytes(content)
        temporary.replace(self._folder / f"{id_}{MAIL}")

    def delete_old(self) -> int:
        """Deletes mails that were stored more than 7 days ago. Returns how many."""
        oldest = time.time() - FILE_KEPT_S
        stored = [*self._files(MAIL), *self._files(UNFINISHED)]
        return _delete(stored, lambda file: file.stat().st_mtime < oldest)

    def delete_to(self, person: UserKey, addresses: Collection[str]) -> int:
        """Deletes mails to a user, or to one of the normalized addresses in any spelling. Returns how many."""
        user = recipient_header(person)

        def is_to_person(file: Path) -> bool:
            headers = BytesHeaderParser(policy=policy.default).parsebytes(file.read_bytes())
            to = [] if headers["to"] is None else headers["to"].addresses
            return headers[RECIPIENT] == user or any(normalized_address(each.addr_spec) in addresses for each in to)

        return _delete(self._files(MAIL), is_to_person)

    def _files(self, suffix: str) -> list[Path]:
        """Returns the files with the suffix: of mails, or of unfinished ones, which a killed worker leaves."""
        if not self._folder.is_dir():
            return []
        return [file for file in self._folder.iterdir() if file.suffix == suffix and file.is_file()]


def _delete(files: Iterable[Path], is_deleted: Callable[[Path], bool]) -> int:
    """Deletes files. Passes over those that cannot be read, so that one of them holds up no erasure."""
    count = 0
    for file in files:
        try:
            if is_deleted(file):
                file.unlink()
                count += 1
        except FileNotFoundError:
            # Another worker has deleted it.
            continue
        except Exception as error:
            log.warning("mail_file_not_read", file=file.name, error=type(error).__name__)
    return count


def with_recipient(message: EmailMessage, person: UserKey | None) -> EmailMessage:
    """Adds the header by which an erasure finds a mail to a user."""
    if person is not None:
        message[RECIPIENT] = recipient_header(person)
    return message


def recipient_header(person: UserKey) -> str:
    """Returns the value of the header `Noroshi-Recipient`, in ASCII and without spaces."""
    return "/".join(quote(each, safe="") for each in person)
