"""A worker's folders: every partition is folded, and few at once."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import pytest

from jobs.mail_fold import AT_ONCE, Folders
from storage.ids import new_id
from storage.locks import Lock
from storage.mail.folding import Folder
from storage.mail.ledger import PARTITIONS, partition
from storage.stores import Stores
from tests.jobs.calling import until
from tests.storage.mail.events import ok
from tests.storage.mail.office import Office

pytestmark = pytest.mark.anyio


@dataclass
class Watched:
    """A folder that remembers how many of its folds ran at once."""

    folder: Folder
    running: int = 0
    most: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.folder, name)

    async def fold(self, lock: Lock, partition: int) -> int:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await self.folder.fold(lock, partition)
        finally:
            self.running -= 1


async def test_all_partitions_are_folded_and_few_at_once(stores: Stores) -> None:
    office = Office(stores, new_id())
    domains = [f"d{number}.example" for number in range(100)]
    assert {partition(each) for each in domains} == set(range(PARTITIONS))
    await office.record(*(ok(f"a{number}@{domain}") for number in range(10) for domain in domains))
    watched = Watched(stores.folder)
    folding = asyncio.create_task(Folders(replace(stores, folder=watched)).run())

    async def is_done() -> bool:
        return not await stores.folder.waiting()

    await until(is_done, 30)
    folding.cancel()
    await asyncio.gather(folding, return_exceptions=True)
    assert watched.most <= AT_ONCE
    assert (await office.domain("d7.example")).success == 10
