"""`noroshi status`: the state of a running product, read from the databases.

Shows workers, locks, open calls, the mail backlog, mail logs, bounce rates, mail summaries and queues.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError
from rich.console import Console
from rich.table import Table

from server.embedded.private_server import stored_port
from server.settings import Settings
from storage.heartbeats import recent_mail_tails, recent_workers
from storage.mail.epoch_time import midnight
from storage.mail.ledger import PARTITIONS, backlog
from storage.mail.rates import BounceRates, day_of
from storage.mail.reports import MailReportClaims
from storage.mongo import Document, Mongo, connect
from storage.redis.connections import redis_client
from storage.redis.keys import RedisKeys
from storage.redis.queue import QUEUES

REDIS_TIMEOUT_S = 2.0
MAX_ROWS = 200
SHOWN_DOMAINS = 20


@dataclass(frozen=True, slots=True)
class StatusColumn:
    """A column: its key in JSON, its title, how a value is shown, and what is shown for None."""

    key: str
    title: str
    shown: Callable[[Any], str] = str
    without_value: str = ""

    def cell(self, value: object) -> str:
        """Returns the value as text for people."""
        return self.without_value if value is None else self.shown(value)


@dataclass(frozen=True, slots=True)
class StatusTable:
    """One table of the output: its key in JSON, its title, its columns and its values by row."""

    key: str
    title: str
    columns: Sequence[StatusColumn]
    rows: Sequence[Sequence[object]]

    def as_json(self) -> list[dict[str, object]]:
        """Returns the rows by the keys of the columns."""
        keys = [column.key for column in self.columns]
        return [dict(zip(keys, row, strict=True)) for row in self.rows]


async def status(settings: Settings) -> list[StatusTable]:
    """Returns all tables. `settings` must name MongoDB and Redis."""
    mongo = connect(settings.mongodb_uri or "", settings.database, settings.mongo_driver)
    try:
        readers = (_workers, _locks, _brokers, _mail_backlog, _mail_tails, _mail_rates, _mail_reports)
        return [*[await read(mongo) for read in readers], await _queues(settings)]
    finally:
        await mongo.close()


def with_embedded_servers(settings: Settings) -> Settings:
    """Returns the settings with the addresses of the data folder's embedded servers, where none are set."""
    mongodb, redis = (stored_port(settings.data_dir / name) for name in ("mongodb", "redis"))
    return settings.with_values(
        mongodb_uri=settings.mongodb_uri or (mongodb and f"mongodb://127.0.0.1:{mongodb}/?directConnection=true"),
        redis_url=settings.redis_url or (redis and f"redis://127.0.0.1:{redis}/0"),
    )


def show(tables: Iterable[StatusTable], console: Console) -> None:
    """Prints the tables."""
    for table in tables:
        rich_table = Table(title=table.title, title_justify="left")
        for column in table.columns:
            rich_table.add_column(column.title)
        for row in table.rows:
            cells = zip(table.columns, row, strict=True)
            rich_table.add_row(*(column.cell(value) for column, value in cells))
        console.print(rich_table)


def as_json(tables: Iterable[StatusTable]) -> str:
    """Returns the tables as one JSON object: a list of rows by the key of each table. Times are in ISO 8601."""
    return orjson.dumps({table.key: table.as_json() for table in tables}, option=orjson.OPT_INDENT_2).decode()


def _ago(seconds: float) -> str:
    return f"{seconds:.0f} s ago"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s"


def _number(count: int) -> str:
    return f"{count:,}"


def _sweeps(sweeps: dict[str, Document]) -> str:
    return ", ".join(f"{name} {sweep['runs']} ({sweep['found']} found)" for name, sweep in sweeps.items())


async def _workers(mongo: Mongo) -> StatusTable:
    columns = (
        StatusColumn("worker", "worker"),
        StatusColumn("metricsLabel", "in metrics"),
        StatusColumn("silentSeconds", "last sign", _ago),
        StatusColumn("sweeps", "sweeps", _sweeps),
    )
    rows = [
        [worker["_id"], worker.get("label", ""), worker["silent_s"], dict(sorted(worker["sweeps"].items()))]
        for worker in await recent_workers(mongo)
    ]
    return StatusTable("workers", "Workers", columns, rows)


async def _locks(mongo: Mongo) -> StatusTable:
    left_s = {"$divide": [{"$subtract": ["$expires_at", "$$NOW"]}, 1000]}
    pipeline: list[Document] = [{"$set": {"left_s": left_s}}, {"$sort": {"left_s": -1, "_id": 1}}, {"$limit": MAX_ROWS}]
    columns = (
        StatusColumn("lock", "lock"),
        StatusColumn("fence", "fence"),
        StatusColumn("holder", "holder"),
        StatusColumn("leaseEndsInSeconds", "lease ends in", _seconds),
    )
    rows: list[list[object]] = []
    for lock in await mongo.aggregate("process_locks", pipeline):
        is_held = lock["unlock_key"] is not None and lock["left_s"] > 0
        state = [lock.get("holder", ""), lock["left_s"]] if is_held else [None, None]
        rows.append([lock["_id"], lock["fence"], *state])
    return StatusTable("locks", "Locks", columns, rows)


async def _brokers(mongo: Mongo) -> StatusTable:
    totals = {"jobs": {"$sum": 1}, "queued": {"$sum": "$counts.QUEUED"}}
    pipeline: list[Document] = [{"$match": {"open": True}}, {"$group": {"_id": "$org", **totals}}, {"$limit": MAX_ROWS}]
    work = {row["_id"]: row for row in await mongo.aggregate("call_jobs", pipeline)}
    limits = {row["_id"]: row async for row in mongo["call_limits"].find({"_id": {"$in": list(work)}})}
    columns = (
        StatusColumn("organization", "organization"),
        StatusColumn("openJobs", "open jobs"),
        StatusColumn("queued", "queued"),
        StatusColumn("active", "active"),
        StatusColumn("concurrentCalls", "at most"),
        StatusColumn("callsPerSecond", "starts a second", "{:g}".format),
    )
    rows = []
    for org, row in sorted(work.items()):
        limit = limits.get(org, {"slots": [], "concurrent": 1, "per_second": 1.0})
        rows.append(
            [org, row["jobs"], row["queued"], len(limit["slots"]), limit["concurrent"], float(limit["per_second"])]
        )
    return StatusTable("calls", "Calls", columns, rows)


async def _mail_backlog(mongo: Mongo) -> StatusTable:
    names = [f"mail:{number}" for number in range(PARTITIONS)]
    is_held = {"unlock_key": {"$ne": None}, "$expr": {"$gt": ["$expires_at", "$$NOW"]}}
    locks = mongo["process_locks"].find({"_id": {"$in": names}, **is_held})
    holders = {lock["_id"]: lock.get("holder", "") async for lock in locks}
    columns = (
        StatusColumn("partition", "partition"),
        StatusColumn("events", "events", _number),
        StatusColumn("oldestSeconds", "oldest", _seconds),
        StatusColumn("worker", "worker"),
    )
    waiting, rows = await backlog(mongo), []
    for number, name in enumerate(names):
        count, oldest_s = waiting.get(number, (0, 0.0))
        holder = holders.get(name)
        if count or holder:
            rows.append([number, count, oldest_s if count else None, holder])
    return StatusTable("mailBacklog", "Mail: events waiting for aggregation", columns, rows)


async def _mail_tails(mongo: Mongo) -> StatusTable:
    columns = (
        StatusColumn("reader", "reader"),
        StatusColumn("organization", "organization"),
        StatusColumn("file", "file"),
        StatusColumn("silentSeconds", "last sign", _ago),
        StatusColumn("lines", "lines", _number),
        StatusColumn("newEvents", "new events", _number),
        StatusColumn("rejected", "rejected", _number),
        StatusColumn("bytesBehind", "behind", lambda count: f"{count:,} bytes"),
    )
    names = ("_id", "org", "file", "silent_s", "lines", "events", "rejected", "behind_bytes")
    rows = [[each.get(name) for name in names] for each in await recent_mail_tails(mongo)]
    return StatusTable("mailLogs", "Mail: logs that are read", columns, rows)


async def _mail_rates(mongo: Mongo) -> StatusTable:
    rates, today = BounceRates(mongo), day_of(await mongo.now())
    organizations = sorted((await rates.of_day(today)).items(), key=lambda each: -each[1].rate)[:MAX_ROWS]
    domains = (await rates.highest(today))[:SHOWN_DOMAINS]
    columns = (
        StatusColumn("organization", "organization"),
        StatusColumn("domain", "domain", without_value="all"),
        StatusColumn("sent", "sent", _number),
        StatusColumn("bounced", "bounced", _number),
        StatusColumn("rate", "rate", "{:.1%}".format),
    )
    rows = [[org, rate.domain, rate.sent, rate.bounced, rate.rate] for org, rate in [*organizations, *domains]]
    return StatusTable("mailRates", "Mail: bounce rates of today", columns, rows)


async def _mail_reports(mongo: Mongo) -> StatusTable:
    yesterday = day_of(await mongo.now()) - 1
    columns = (
        StatusColumn("organization", "organization"),
        StatusColumn("day", "day"),
        StatusColumn("kind", "what"),
        StatusColumn("sentAt", "sent", "{:%Y-%m-%d %H:%M} UTC".format, without_value="not yet"),
    )
    rows = []
    for each in await MailReportClaims(mongo).since(yesterday, MAX_ROWS):
        report = each["_id"]
        rows.append([report["org"], f"{midnight(report['day']):%Y-%m-%d}", report["kind"], each.get("sent_at")])
    return StatusTable("mailReports", "Mail: summaries and alarms since yesterday", columns, rows)


async def _queues(settings: Settings) -> StatusTable:
    columns = (StatusColumn("queue", "queue"), StatusColumn("waiting", "waiting"))
    keys = RedisKeys(settings.database)
    try:
        async with redis_client(settings.redis_url or "", Redis, REDIS_TIMEOUT_S) as redis:
            counts = [await redis.zcard(keys.queue(name)) for name in QUEUES]
    except (RedisError, OSError, TimeoutError) as error:
        return StatusTable("queues", f"Queues: Redis does not answer ({type(error).__name__})", columns, [])
    return StatusTable("queues", "Queues", columns, list(zip(QUEUES, counts, strict=True)))
