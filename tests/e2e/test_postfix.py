"""A real Postfix delivers to a scripted mail server. The address book holds exactly the outcome of each delivery."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from jobs.mail.reports import NotADeliveryReport, delivery_events
from jobs.mail.tail import MailLogFollower
from storage.stores import Stores, open_stores
from tests.e2e.postfix import postfix, scripted_mail_server
from tests.keys import ADDRESS_KEYS
from tests.programs import require_postfix
from tests.storage.mail.model import outcome
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

NAMES = ("fine", "other", "grey", "unknown", "old", "full", "quota", "spam", "slow")
BOUNCED = ("unknown", "old", "full", "quota", "spam", "slow", "dead")


@pytest.fixture
async def stores(mongodb_uri: str, redis_url: str, database: str) -> AsyncIterator[Stores]:
    async with open_stores(mongodb_uri, redis_url, database, address_keys=ADDRESS_KEYS) as stores:
        yield stores


async def test_address_book_matches_real_postfix(stores: Stores, tmp_path: Path) -> None:
    require_postfix()
    mail = MailScenario(stores, "acme")
    record = partial(stores.ledger.record, "acme", "postfix")
    async with scripted_mail_server() as server:
        # Postfix's users cannot enter tmp_path.
        with TemporaryDirectory(prefix="noroshi-postfix-") as folder, postfix(Path(folder), server) as mta:
            tail = MailLogFollower(mta.log, tmp_path / "state", record, stores.mongo)
            tail.restore()
            addresses = [f"{name}@reader.example" for name in NAMES] + ["x@dead.example"]
            await asyncio.to_thread(mta.send, *addresses)
            message_count = len(addresses) + len(BOUNCED)
            async with asyncio.timeout(150):
                while not mta.has_removed(message_count):
                    await tail.read_new_lines()
                    await asyncio.sleep(0.1)
            while await tail.read_new_lines():
                pass
            tail.close()
    await mail.aggregate()
    summary = {
        each.address.partition("@")[0]: (each.success, each.soft_bounce, each.hard_bounce, each.blocked)
        for each in await mail.standings(addresses)
    }
    assert summary == {
        "fine": (1, 0, 0, False),
        "other": (1, 0, 0, False),
        "grey": (1, 0, 0, False),
        "unknown": (0, 0, 1, True),
        "old": (0, 0, 1, True),
        "full": (0, 1, 0, False),
        "quota": (0, 1, 0, False),
        "spam": (0, 0, 0, False),
        "slow": (0, 1, 0, False),
        "x": (0, 1, 0, False),
    }
    assert server.replies["grey@reader.example", 450] == 1
    assert server.replies["full@reader.example", 452] > 1
    reader, dead = await mail.domain_standing("reader.example"), await mail.domain_standing("dead.example")
    assert (reader.success, reader.soft_bounce, reader.hard_bounce) == (3, 3, 2)
    assert (dead.success, dead.soft_bounce, dead.hard_bounce, dead.blocked) == (0, 1, 0, False)
    assert (await mail.domain_standing("sender.example")).success == len(BOUNCED)
    await _assert_bounce_messages_match(stores, server.accepted_messages)


async def _assert_bounce_messages_match(stores: Stores, messages: list[bytes]) -> None:
    """Asserts that the bounce messages of Postfix, read as delivery reports, have the same outcomes."""
    outcomes: dict[str, str] = {}
    for message in messages:
        try:
            events = delivery_events(message, await stores.mongo.now())
        except NotADeliveryReport:
            continue  # A delivered message that is no report.
        outcomes |= {event.address.partition("@")[0]: outcome(event).value for event in events}
    assert outcomes == {
        "unknown": "hard",
        "old": "hard",
        "full": "soft",
        "quota": "soft",
        "spam": "nothing",
        "slow": "domain",
        "x": "domain",
    }
