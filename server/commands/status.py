"""`noroshi status`: the state of a running product, read from the databases.

Shows workers, locks, open calls, the mail backlog, mail logs, bounce rates, mail summaries and queues.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
class StatusTable:
    """One titled table of the output."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


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
            rich_table.add_column(column)
        for row in table.rows:
            rich_table.add_row(*row)
        console.print(rich_table)


async def _workers(mongo: Mongo) -> StatusTable:
    rows = []
    for worker in await recent_workers(mongo):
        sweeps = ", ".join(f"{name} {s['runs']} ({s['found']} found)" for name, s in sorted(worker["sweeps"].items()))
        rows.append([worker["_id"], worker.get("label", ""), f"{worker['silent_s']:.0f} s ago", sweeps])
    return StatusTable("Workers", ("worker", "in metrics", "last sign", "sweeps"), rows)


async def _locks(mongo: Mongo) -> StatusTable:
    left_s = {"$divide": [{"$subtract": ["$expires_at", "$$NOW"]}, 1000]}
    pipeline: list[Document] = [{"$set": {"left_s": left_s}}, {"$sort": {"left_s": -1, "_id": 1}}, {"$limit": MAX_ROWS}]
    rows = []
    for lock in await mongo.aggregate("process_locks", pipeline):
        is_held = lock["unlock_key"] is not None and lock["left_s"] > 0
        state = [lock.get("holder", ""), f"{lock['left_s']:.1f} s"] if is_held else ["free", ""]
        rows.append([lock["_id"], str(lock["fence"]), *state])
    return StatusTable("Locks", ("lock", "fence", "holder", "lease ends in"), rows)


async def _brokers(mongo: Mongo) -> StatusTable:
    totals = {"jobs": {"$sum": 1}, "queued": {"$sum": "$counts.QUEUED"}}
    pipeline: list[Document] = [{"$match": {"open": True}}, {"$group": {"_id": "$org", **totals}}, {"$limit": MAX_ROWS}]
    work = {row["_id"]: row for row in await mongo.aggregate("call_jobs", pipeline)}
    limits = {row["_id"]: row async for row in mongo["call_limits"].find({"_id": {"$in": list(work)}})}
    rows = []
    for org, row in sorted(work.items()):
        limit = limits.get(org, {"slots": [], "concurrent": 1, "per_second": 1.0})
        active = f"{len(limit['slots'])} of {limit['concurrent']}"
        rows.append([org, str(row["jobs"]), str(row["queued"]), active, f"{limit['per_second']:g}"])
    return StatusTable("Calls", ("organization", "open jobs", "queued", "active", "starts a second"), rows)


async def _mail_backlog(mongo: Mongo) -> StatusTable:
    names = [f"mail:{number}" for number in range(PARTITIONS)]
    is_held = {"unlock_key": {"$ne": None}, "$expr": {"$gt": ["$expires_at", "$$NOW"]}}
    locks = mongo["process_locks"].find({"_id": {"$in": names}, **is_held})
    holders = {lock["_id"]: lock.get("holder", "") async for lock in locks}
    waiting, rows = await backlog(mongo), []
    for number, name in enumerate(names):
        count, oldest_s = waiting.get(number, (0, 0.0))
        holder = holders.get(name, "")
        if count or holder:
            rows.append([str(number), f"{count:,}", f"{oldest_s:.1f} s" if count else "", holder])
    return StatusTable("Mail: events waiting for aggregation", ("partition", "events", "oldest", "worker"), rows)


async def _mail_tails(mongo: Mongo) -> StatusTable:
    columns = ("reader", "organization", "file", "last sign", "lines", "new events", "rejected", "behind")
    rows = [
        [
            *(each["_id"], each["org"], each["file"], f"{each['silent_s']:.0f} s ago"),
            *(f"{each['lines']:,}", f"{each['events']:,}", f"{each.get('rejected', 0):,}"),
            f"{each['behind_bytes']:,} bytes",
        ]
        for each in await recent_mail_tails(mongo)
    ]
    return StatusTable("Mail: logs that are read", columns, rows)


async def _mail_rates(mongo: Mongo) -> StatusTable:
    rates, today = BounceRates(mongo), day_of(await mongo.now())
    organizations = sorted((await rates.of_day(today)).items(), key=lambda each: -each[1].rate)[:MAX_ROWS]
    domains = (await rates.highest(today))[:SHOWN_DOMAINS]
    rows = [
        [org, rate.domain or "all", f"{rate.sent:,}", f"{rate.bounced:,}", f"{rate.rate:.1%}"]
        for org, rate in [*organizations, *domains]
    ]
    return StatusTable("Mail: bounce rates of today", ("organization", "domain", "sent", "bounced", "rate"), rows)


async def _mail_reports(mongo: Mongo) -> StatusTable:
    yesterday = day_of(await mongo.now()) - 1
    rows = []
    for each in await MailReportClaims(mongo).since(yesterday, MAX_ROWS):
        report, sent_at = each["_id"], each.get("sent_at")
        state = f"{sent_at:%Y-%m-%d %H:%M} UTC" if sent_at else "not yet"
        rows.append([report["org"], f"{midnight(report['day']):%Y-%m-%d}", report["kind"], state])
    return StatusTable("Mail: summaries and alarms since yesterday", ("organization", "day", "what", "sent"), rows)


async def _queues(settings: Settings) -> StatusTable:
    columns = ("queue", "waiting")
    keys = RedisKeys(settings.database)
    try:
        async with redis_client(settings.redis_url or "", Redis, REDIS_TIMEOUT_S) as redis:
            counts = [str(await redis.zcard(keys.queue(name))) for name in QUEUES]
    except (RedisError, OSError, TimeoutError) as error:
        return StatusTable(f"Queues: Redis does not answer ({type(error).__name__})", columns, [])
    return StatusTable("Queues", columns, list(zip(QUEUES, counts, strict=True)))
