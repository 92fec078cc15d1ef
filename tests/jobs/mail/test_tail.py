"""Following a mail log loses no line and counts none twice, despite rotation, truncation, restarts and kills."""

import asyncio
import random
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

import jobs.mail.tail
from jobs.mail.tail import MailLogFollower
from storage.mail.ledger import Ledger
from storage.mail.records import DeliveryEvent, RecordDeliveriesResult
from storage.mongo import Mongo, connect
from storage.stores import Stores
from tests.keys import ADDRESS_KEYS
from tests.storage.faulty_proxy import FaultyProxy, faulty_proxy
from tests.waiting import until

pytestmark = pytest.mark.anyio


class ProcessKilled(Exception):
    """Simulates a kill of the process."""


@dataclass
class FakeLedger:
    """A ledger in memory. `kills` says whether the process dies before or after the next events are recorded."""

    events: dict[str, DeliveryEvent] = field(default_factory=dict)
    kills: list[str] = field(default_factory=list)

    async def record(self, events: list[DeliveryEvent]) -> RecordDeliveriesResult:
        if self.kills and self.kills.pop() == "before":
            raise ProcessKilled
        duplicates = sum(event.event_id in self.events for event in events)
        self.events |= {event.event_id: event for event in events}
        if self.kills and self.kills.pop() == "after":
            raise ProcessKilled
        return RecordDeliveriesResult(len(events) - duplicates, duplicates, [])


@dataclass
class LoggingMailServer:
    """A mail server that appends delivery lines to its log. Line n is of a mail to a<n>@example.org."""

    path: Path
    written_lines: int = 0

    def lines(self, count: int) -> str:
        """Returns the next `count` lines, which the caller must write."""
        first = self.written_lines
        self.written_lines += count
        at = datetime.now(UTC).isoformat()
        return "".join(
            f"{at} mx postfix/smtp[7]: 4Q{number:08d}: to=<a{number}@example.org>, relay=x, delay=1, dsn=2.0.0, "
            "status=sent (250 2.0.0 Ok)\n"
            for number in range(first, self.written_lines)
        )

    def write(self, count: int = 3) -> None:
        """Appends the next `count` lines to the log."""
        with self.path.open("a") as file:
            file.write(self.lines(count))


@pytest.fixture
def mta(tmp_path: Path) -> LoggingMailServer:
    return LoggingMailServer(tmp_path / "mail.log")


@pytest.fixture
def ledger() -> FakeLedger:
    return FakeLedger()


@pytest.fixture
def start_tail(
    mta: LoggingMailServer, ledger: FakeLedger, tmp_path: Path, stores: Stores
) -> Iterator[Callable[[], MailLogFollower]]:
    """A function that starts to follow the log, as a new process does, from the stored state."""
    tails: list[MailLogFollower] = []

    def start() -> MailLogFollower:
        tails.append(MailLogFollower(mta.path, tmp_path / "state.json", ledger.record, stores.mongo))
        tails[-1].restore()
        return tails[-1]

    yield start
    for tail in tails:
        tail.close()


async def drain(tail: MailLogFollower) -> None:
    """Reads the log to its end."""
    while await tail.read_new_lines():
        pass


def is_complete(mta: LoggingMailServer, ledger: FakeLedger) -> bool:
    """Returns whether the ledger has one event for each written line."""
    return sorted(event.address for event in ledger.events.values()) == sorted(
        f"a{number}@example.org" for number in range(mta.written_lines)
    )


async def test_tail_reads_existing_and_new_lines(
    mta: LoggingMailServer, ledger: FakeLedger, start_tail: Callable[[], MailLogFollower]
) -> None:
    tail = start_tail()
    # The file does not exist yet.
    await drain(tail)
    mta.write()
    await drain(tail)
    mta.write(2500)
    await drain(tail)
    assert is_complete(mta, ledger)


async def test_tail_status_gives_progress(mta: LoggingMailServer, start_tail: Callable[[], MailLogFollower]) -> None:
    tail = start_tail()
    progress = {"file": str(mta.path), "rejected": 0}
    assert tail.status() == progress | {"lines": 0, "events": 0, "behind_bytes": 0}
    mta.write(1500)
    await tail.read_new_lines()
    left_bytes = mta.path.stat().st_size - tail._files[0].offset
    assert left_bytes > 0
    assert tail.status() == progress | {"lines": 1000, "events": 1000, "behind_bytes": left_bytes}
    await drain(tail)
    assert tail.status() == progress | {"lines": 1500, "events": 1500, "behind_bytes": 0}


def sent_line(at: datetime, queue: str, to: str) -> str:
    delivery = "relay=x, delay=1, dsn=2.0.0, status=sent (250 2.0.0 <canary@example.org> Ok)"
    return f"{at.isoformat()} mx postfix/smtp[7]: {queue}: to=<{to}>, {delivery}\n"


INVALID_ADDRESSES = ["", "canary", "canary@", "@canary.example", "canary@c..example", "<canary@example.org", "c@n@ry"]


async def test_tail_logs_reasons_of_rejected_lines(mta: LoggingMailServer, tmp_path: Path, stores: Stores) -> None:
    now = datetime.now(UTC)
    lines = [sent_line(now, f"4Q{number:08d}", to) for number, to in enumerate(INVALID_ADDRESSES)]
    lines += [sent_line(now - timedelta(days=days), f"4QOLD{days}", "canary@example.org") for days in (15, 20)]
    lines += [sent_line(now, "4QFINE00", "canary@example.org")]
    mta.path.write_text("".join(lines))
    record = partial(Ledger(stores.mongo, ADDRESS_KEYS).record, "acme", "tail")
    tail = MailLogFollower(mta.path, tmp_path / "state.json", record, stores.mongo)
    with capture_logs() as logs:
        await drain(tail)
    tail.close()
    address, age = (each for each in logs if each["event"] == "mail_log_line_rejected")
    assert address["reason"] == "address: expected a mail address"
    assert (address["rejected"], address["queue_ids"]) == (7, [f"4Q{number:08d}" for number in range(5)])
    assert (address["first_at"], address["last_at"]) == (now.isoformat(), now.isoformat())
    assert age["reason"] == "at: expected at most 13 days ago"
    assert (age["rejected"], age["queue_ids"]) == (2, ["4QOLD15", "4QOLD20"])
    assert age["first_at"] == (now - timedelta(days=20)).isoformat()
    assert [(each["log_level"], each["file"]) for each in (address, age)] == [("warning", str(mta.path))] * 2
    assert "canary" not in str(logs)
    assert "@" not in str(logs)
    assert (tail.events, tail.rejected) == (1, 9)


async def test_tail_without_rejected_lines_logs_no_warning(
    mta: LoggingMailServer, start_tail: Callable[[], MailLogFollower]
) -> None:
    mta.write()
    with capture_logs() as logs:
        await drain(start_tail())
    assert [each["event"] for each in logs] == ["mail_log_read"]


async def test_tail_incomplete_line_waits_for_its_end(
    mta: LoggingMailServer, ledger: FakeLedger, start_tail: Callable[[], MailLogFollower]
) -> None:
    tail = start_tail()
    mta.write()
    line = mta.lines(1)
    with mta.path.open("a") as file:
        file.write(line[:40])
        file.flush()
        await drain(tail)
        assert len(ledger.events) == 3
        file.write(line[40:])
    await drain(tail)
    assert is_complete(mta, ledger)


async def test_tail_renamed_log_is_read_to_its_end(
    mta: LoggingMailServer, ledger: FakeLedger, start_tail: Callable[[], MailLogFollower]
) -> None:
    tail = start_tail()
    mta.write()
    await drain(tail)
    with mta.path.open("a") as open_log:
        mta.write()
        mta.path.rename(mta.path.with_name("mail.log.1"))
        open_log.write(mta.lines(2))
        open_log.flush()
        mta.write()
        await drain(tail)
        open_log.write(mta.lines(2))
    await drain(tail)
    assert is_complete(mta, ledger)


async def test_tail_copied_and_truncated_log_continues_in_copy(
    mta: LoggingMailServer, ledger: FakeLedger, start_tail: Callable[[], MailLogFollower]
) -> None:
    tail = start_tail()
    mta.write()
    await drain(tail)
    mta.write()
    shutil.copy(mta.path, mta.path.with_name("mail.log.1"))
    mta.path.write_text("")
    await drain(tail)
    mta.write(20)
    await drain(tail)
    assert is_complete(mta, ledger)


async def test_tail_truncated_log_starts_over(
    mta: LoggingMailServer, ledger: FakeLedger, start_tail: Callable[[], MailLogFollower]
) -> None:
    tail = start_tail()
    mta.write(10)
    await drain(tail)
    mta.path.write_text(mta.lines(2))
    await drain(tail)
    mta.write(30)
    await drain(tail)
    assert is_complete(mta, ledger)


async def test_tail_restart_reads_no_line_twice(
    mta: LoggingMailServer, ledger: FakeLedger, start_tail: Callable[[], MailLogFollower]
) -> None:
    mta.write(50)
    await drain(start_tail())
    mta.write(5)
    lines = 0
    tail = start_tail()
    while line_count := await tail.read_new_lines():
        lines += line_count
    assert lines == 5
    assert is_complete(mta, ledger)


async def test_tail_restart_reads_logs_rotated_meanwhile(
    mta: LoggingMailServer, ledger: FakeLedger, start_tail: Callable[[], MailLogFollower]
) -> None:
    mta.write()
    await drain(start_tail())
    for _ in range(3):
        mta.write()
        for number in (3, 2, 1):
            older = mta.path.with_name(f"mail.log.{number}")
            if older.exists():
                older.rename(mta.path.with_name(f"mail.log.{number + 1}"))
        mta.path.rename(mta.path.with_name("mail.log.1"))
    mta.write()
    await drain(start_tail())
    assert is_complete(mta, ledger)


async def test_tail_first_start_skips_rotated_logs(
    mta: LoggingMailServer, ledger: FakeLedger, start_tail: Callable[[], MailLogFollower]
) -> None:
    mta.write()
    mta.path.rename(mta.path.with_name("mail.log.1"))
    mta.written_lines = 0
    mta.write(2)
    tail = start_tail()
    await drain(tail)
    assert len(ledger.events) == 2


async def test_tail_restart_keeps_deferred_recipients_in_private_file(
    mta: LoggingMailServer, ledger: FakeLedger, start_tail: Callable[[], MailLogFollower], tmp_path: Path
) -> None:
    at = datetime.now(UTC).isoformat()
    deferred = "to=<ann@example.org>, relay=x, delay=1, dsn=4.2.2, status=deferred (said: 452 4.2.2 full)"
    mta.path.write_text(f"{at} mx postfix/smtp[7]: 4Q00000001: {deferred}\n")
    await drain(start_tail())
    with mta.path.open("a") as file:
        file.write(f"{at} mx postfix/qmgr[7]: 4Q00000001: from=<n@x.example>, status=expired, returned to sender\n")
    await drain(start_tail())
    assert sorted(str(event.enhanced_status) for event in ledger.events.values()) == ["4.2.2", "4.4.7"]
    assert (tmp_path / "state.json").stat().st_mode & 0o777 == 0o600


@asynccontextmanager
async def mongo_through_proxy(uri: str, database: str) -> AsyncIterator[tuple[FaultyProxy, Mongo]]:
    """Connects to MongoDB through a proxy. Yields the proxy and the connection."""
    async with faulty_proxy(uri) as proxy:
        mongo = connect(f"mongodb://127.0.0.1:{proxy.port}/?directConnection=true&heartbeatFrequencyMS=500", database)
        try:
            yield proxy, mongo
        finally:
            await mongo.close()


async def test_tail_mongodb_outage_is_logged_and_lines_count_once(
    mta: LoggingMailServer, tmp_path: Path, mongodb_uri: str, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.mongo.client.SERVER_SELECTION_S", 0.2)
    monkeypatch.setattr(jobs.mail.tail, "RETRY_S", 0.05)
    at, rows = datetime.now(UTC).isoformat(), stores.mongo["mail_ledger"]
    deferred = "to=<ann@example.org>, relay=x, delay=1, dsn=4.2.2, status=deferred (said: 452 4.2.2 full)"
    mta.path.write_text(f"{at} mx postfix/smtp[7]: 4Q00000001: {deferred}\n")

    async def has_events(count: int) -> bool:
        return await rows.count_documents({}) == count

    async with mongo_through_proxy(mongodb_uri, stores.mongo.database.name) as (proxy, mongo):
        record = partial(Ledger(mongo, ADDRESS_KEYS).record, "acme", "tail")
        following = asyncio.create_task(MailLogFollower(mta.path, tmp_path / "state.json", record, mongo).run())
        await until(lambda: has_events(1))
        with capture_logs() as logs:
            await proxy.refuse_connections()
            with mta.path.open("a") as file:
                file.write(
                    f"{at} mx postfix/qmgr[7]: 4Q00000001: from=<n@x.example>, status=expired, returned to sender\n"
                )
            mta.write()

            async def is_delay_logged_twice() -> bool:
                return sum(each["event"] == "mail_log_delayed" for each in logs) >= 2

            await until(is_delay_logged_twice)
        await proxy.restore()
        await until(lambda: has_events(5))
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    assert "@" not in str(logs)
    assert await rows.count_documents({"status": "4.4.7"}) == 1


@pytest.mark.parametrize("seed", range(4))
async def test_tail_random_rotations_and_kills_lose_no_line(
    seed: int,
    mta: LoggingMailServer,
    ledger: FakeLedger,
    start_tail: Callable[[], MailLogFollower],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs.mail.tail, "BATCH_LINES", 7)
    rng, tail = random.Random(seed), start_tail()
    mta.write()
    for round_ in range(60):
        mta.write(rng.randint(1, 9))
        match rng.choice(["rename", "copy", "restart", "kill", "step", "step"]):
            case "rename":
                mta.path.rename(mta.path.with_name(f"mail.log.{round_:03d}"))
            case "copy":
                shutil.copy(mta.path, mta.path.with_name(f"mail.log.{round_:03d}"))
                mta.path.write_text("")
            case "restart":
                tail = start_tail()
            case "kill":
                ledger.kills = [rng.choice(["before", "after", "no"]) for _ in range(2)]
        try:
            for _ in range(rng.randint(0, 3)):
                await tail.read_new_lines()
        except ProcessKilled:
            tail = start_tail()
        ledger.kills = []
    mta.write()
    await drain(tail)
    assert is_complete(mta, ledger)
