"""`noroshi mail ...`: records delivery events, and imports, verifies and rebuilds the bounce address book."""

import asyncio
import csv
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from server.processes import StartupError

if TYPE_CHECKING:
    from server.settings import Settings
    from storage.mail.addresses import Address
    from storage.mail.book import AddressBook
    from storage.mail.imports import BookImporter, LegacyBookRow
    from storage.mail.ledger import Ledger
    from storage.mail.rereading import ReadBounces
    from storage.mongo import Mongo

COLUMNS = ("address", "success", "soft_bounce", "hard_bounce")
REPORTS = "reports"
MAX_SOURCE = 200
MAX_REASON = 500
ROWS_PER_BATCH = 1000

mail_app = typer.Typer(help="The bounce address book.", no_args_is_help=True)

Org = Annotated[str, typer.Option("--org", help="The organization's id.", show_default=False)]
Csv = Annotated[Path, typer.Argument(metavar="FILE.csv", help=f"Rows of {','.join(COLUMNS)} with that header.")]
Addresses = Annotated[Path, typer.Argument(metavar="FILE|-", help="Addresses, one a line; - is the standard input.")]
Reason = Annotated[str, typer.Option(help="Why; stored for each address.", show_default=False)]
DataDir = Annotated[
    Path | None, typer.Option(help="Where secrets and embedded servers are kept. Default: .noroshi", show_default=False)
]


@dataclass(frozen=True)
class MailStores:
    """The stores of the mail commands."""

    mongo: "Mongo"
    ledger: "Ledger"
    book: "AddressBook"
    imports: "BookImporter"


@mail_app.command()
def tail(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The log, such as /var/log/mail.log.")],
    org: Org,
    state: Annotated[
        Path | None, typer.Option(help="File that stores the position in the log. Default: in the data folder")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Record Postfix log lines in the ledger until stopped; survives log rotation and restarts. Source: tail:FILE."""
    from server.logs import configure_logging
    from server.settings import Settings

    settings = Settings.from_environment(data_dir=data_dir)
    configure_logging(settings.log_format, settings.log_level)
    if state is None:
        from server.embedded import prepare_data_dir
        from server.embedded.running import require_database

        require_database(settings.mongodb_uri, settings.data_dir)
        state = prepare_data_dir(settings.data_dir) / f"tail-{file.name}.json"
    elif not state.absolute().parent.is_dir():
        raise typer.BadParameter(f"{state.parent} is no folder", param_hint="--state")
    _run(lambda stores: _tail(stores, org, file.absolute(), state.absolute()), data_dir)


async def _tail(stores: MailStores, org: str, file: Path, state: Path) -> None:
    from functools import partial

    from jobs.mail.tail import MailLogFollower
    from storage.heartbeats import Heartbeat, process_name

    tail = MailLogFollower(file, state, partial(stores.ledger.record, org, f"tail:{file.name}"), stores.mongo)
    heartbeat = Heartbeat(stores.mongo["mail_tails"], process_name(), lambda: {"org": org, **tail.status()})
    beating = asyncio.create_task(heartbeat.run())
    try:
        await tail.run()
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


@mail_app.command()
def report(
    org: Org,
    file: Annotated[Path, typer.Argument(metavar="[FILE|-]", help="The message; - is the standard input.")] = Path("-"),
    data_dir: DataDir = None,
) -> None:
    """Record one DSN or ARF message in the ledger. Source: reports."""
    content = sys.stdin.buffer.read() if str(file) == "-" else _read_file(file)
    _run(lambda stores: _report(stores, org, content), data_dir)


async def _report(stores: MailStores, org: str, content: bytes) -> None:
    from jobs.mail.reports import NotADeliveryReport, delivery_events

    try:
        events = delivery_events(content, await stores.mongo.now())
    except NotADeliveryReport as error:
        raise StartupError(str(error)) from None
    result = await stores.ledger.record(org, REPORTS, events)
    for each in result.rejected:
        typer.echo(f"noroshi: not recorded: {each.message}", err=True)
    typer.echo(f"{result.accepted} events recorded, {result.duplicates} duplicates.")
    if result.rejected:
        raise typer.Exit(1)


@mail_app.command("import")
def import_(
    file: Csv,
    org: Org,
    source: Annotated[str, typer.Option(help="A name for these rows, by which they can be removed again.")],
    data_dir: DataDir = None,
) -> None:
    """Import the rows of a legacy book; they replace an earlier import's counts for the same addresses."""
    if not 1 <= len(source) <= MAX_SOURCE:
        raise typer.BadParameter(f"1 to {MAX_SOURCE} characters", param_hint="--source")
    rows = _read_rows(file)
    _run(lambda stores: _import(stores, org, source, rows), data_dir)


async def _import(stores: MailStores, org: str, source: str, rows: "Sequence[LegacyBookRow]") -> None:
    with _progress("Import", len(rows)) as show_done:
        for start in range(0, len(rows), ROWS_PER_BATCH):
            await stores.imports.add(org, source, rows[start : start + ROWS_PER_BATCH])
            show_done(min(start + ROWS_PER_BATCH, len(rows)))
    typer.echo(f"{len(rows)} addresses imported.")


@mail_app.command()
def verify(file: Csv, org: Org, data_dir: DataDir = None) -> None:
    """Compare the rows with the book, list the differences, and exit with 1 when there are any."""
    rows = _read_rows(file)
    _run(lambda stores: _verify(stores, org, rows), data_dir)


async def _verify(stores: MailStores, org: str, rows: "Sequence[LegacyBookRow]") -> None:
    differences = lookup_differences = 0
    with _progress("Verify", len(rows)) as show_done:
        for start in range(0, len(rows), ROWS_PER_BATCH):
            chunk = rows[start : start + ROWS_PER_BATCH]
            standings = await stores.book.look_up(org, [row.address for row in chunk])
            for row, standing in zip(chunk, standings, strict=True):
                book = (standing.success, standing.soft_bounce, standing.hard_bounce)
                old = (row.success, row.soft_bounce, row.hard_bounce)
                if book != old:
                    differences += 1
                    _print_difference(row.address, old, book)
            by_address = await stores.book.differences(org, [row.address for row in chunk])
            lookup_differences += len(by_address)
            for address, is_blocked_here in by_address.items():
                blocker = "only this" if is_blocked_here else "only the legacy"
                typer.echo(f"{address}: in lookups, {blocker} book blocked it")
            show_done(min(start + ROWS_PER_BATCH, len(rows)))
    typer.echo(
        f"{len(rows)} addresses, {differences} differ; {lookup_differences} differed in lookups of the last 30 days."
    )
    if differences:
        raise typer.Exit(1)


def _print_difference(address: str, old: Sequence[int], book: Sequence[int]) -> None:
    parts = [f"{name} {was} (book: {now})" for name, was, now in zip(COLUMNS[1:], old, book, strict=True) if was != now]
    typer.echo(f"{address}: {', '.join(parts)}")


@mail_app.command()
def block(file: Addresses, org: Org, reason: Reason, data_dir: DataDir = None) -> None:
    """Block the addresses of a file by hand, until they are unblocked. May be repeated."""
    _decide(file, org, reason, True, data_dir)


@mail_app.command()
def unblock(file: Addresses, org: Org, reason: Reason, data_dir: DataDir = None) -> None:
    """Unblock the addresses of a file, and reset their counters."""
    _decide(file, org, reason, False, data_dir)


def _decide(file: Path, org: str, reason: str, blocked: bool, data_dir: Path | None) -> None:
    from storage.identity.audit import COMMAND_LINE, command_line_actor
    from storage.mail.decisions.address_decisions import AddressDecision

    if not 1 <= len(reason) <= MAX_REASON:
        raise typer.BadParameter(f"1 to {MAX_REASON} characters", param_hint="--reason")
    addresses = _read_addresses(file)
    decision = AddressDecision(org, blocked, COMMAND_LINE, reason, command_line_actor(org))

    async def work(stores: MailStores) -> None:
        changed = 0
        with _progress("Block" if blocked else "Unblock", len(addresses)) as show_done:
            for start in range(0, len(addresses), ROWS_PER_BATCH):
                changed += await stores.book.decisions.store(addresses[start : start + ROWS_PER_BATCH], decision)
                show_done(min(start + ROWS_PER_BATCH, len(addresses)))
        typer.echo(f"{changed} of {len(addresses)} addresses {'blocked' if blocked else 'unblocked'}.")

    _run(work, data_dir)


def _read_addresses(file: Path) -> "list[Address]":
    """Returns the addresses of a file, one a line. Raises: StartupError that names the line."""
    from storage.mail.addresses import normalize

    lines = sys.stdin.buffer.read() if str(file) == "-" else _read_file(file)
    addresses: list[Address] = []
    for number, line in enumerate(lines.decode("utf-8-sig", "replace").splitlines(), 1):
        address = normalize(line.strip())
        if address is None and line.strip():
            raise StartupError(f"{file}, line {number}: no mail address. Nothing was changed.")
        addresses += [] if address is None else [address]
    return addresses


@mail_app.command()
def blocked(org: Org, data_dir: DataDir = None) -> None:
    """Print the blocked addresses as CSV: keyed hash, address if it is kept readable, domain, rule and detail."""
    _run(lambda stores: _blocked(stores, org), data_dir)


async def _blocked(stores: MailStores, org: str) -> None:
    from storage.mail.decisions.blocked_addresses import blocked_addresses

    writer = csv.writer(sys.stdout)
    writer.writerow(("address_hash", "address", "domain", "rule", "detail"))
    after: str | None = ""
    while after is not None:
        page = await blocked_addresses(stores.mongo, stores.book, org, bytes.fromhex(after), ROWS_PER_BATCH)
        for each in page.items:
            rule, detail = each.verdict.rule.value, each.verdict.detail
            writer.writerow((each.address_hash, each.address or "", each.domain, rule, detail))
        after = page.next_after


@mail_app.command()
def rebuild(
    org: Org,
    without: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="Remove this source, as if it had never existed.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Rebuild the whole book from the records of its sources, and read their bounces again by today's rules."""
    _run(lambda stores: _rebuild(stores, org, without), data_dir)


async def _rebuild(stores: MailStores, org: str, without: str | None) -> None:
    sources = await stores.imports.sources(org)
    if without is not None and without not in sources:
        known = ", ".join(sources) or "none"
        raise StartupError(f"{org} has no source {without!r}; it has: {known}.")
    with _progress("Rebuild", None) as show_done:
        rebuilt = await stores.imports.rebuild(org, without, show_done)
    typer.echo(f"{rebuilt.addresses} addresses rebuilt.")
    _print_reread(rebuilt.bounces)


def _print_reread(bounces: "ReadBounces") -> None:
    if bounces.dropped_softs:
        typer.echo(f"{bounces.dropped_softs} soft bounces no longer count: their answers refused the sender.")
    if bounces.dropped_domain_blocks:
        typer.echo(f"{bounces.dropped_domain_blocks} domains are no longer blocked by an answer about one address.")
    if bounces.unread:
        typer.echo("Hard bounces that keep their outcome, because the texts of their answers are not stored:")
        for source, count in sorted(bounces.unread.items()):
            typer.echo(f"  {source}: {count}")
        typer.echo("To read a source with its texts, remove it with --without and record its logs or reports again.")


def _read_file(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise StartupError(f"{file} can't be read: {error.strerror}.") from error


def _read_rows(file: Path) -> "list[LegacyBookRow]":
    """Returns the last row of each address in a CSV file. Raises: StartupError that names the line."""
    from storage.mail.addresses import normalize
    from storage.mail.imports import LegacyBookRow

    rows: dict[str, LegacyBookRow] = {}
    for line, row in _read_csv(file):
        address = normalize((row.get("address") or "").strip())
        if address is None:
            raise StartupError(f"{file}, line {line}: no mail address.")
        try:
            counts = [int(row.get(name) or "") for name in COLUMNS[1:]]
        except ValueError:
            raise StartupError(f"{file}, line {line}: expected whole numbers.") from None
        if min(counts) < 0:
            raise StartupError(f"{file}, line {line}: expected numbers from 0 on.")
        rows[address.text] = LegacyBookRow(address.text, *counts)
    return list(rows.values())


def _read_csv(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            missing = set(COLUMNS) - set(reader.fieldnames or ())
            if missing:
                raise StartupError(f"{file}: its header lacks {', '.join(sorted(missing))}.")
            for row in reader:
                yield reader.line_num, row
    except OSError as error:
        raise StartupError(f"{file} can't be read: {error.strerror}.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise StartupError(f"{file} is no CSV in UTF-8: {error}.") from error


def _run(work: Callable[[MailStores], Awaitable[None]], data_dir: Path | None) -> None:
    async def run() -> None:
        async with _mail_stores(data_dir) as stores:
            await work(stores)

    asyncio.run(run())


@asynccontextmanager
async def _mail_stores(data_dir: Path | None) -> AsyncIterator[MailStores]:
    """Opens the book on the configured MongoDB, else on the data folder's embedded one, which is started if needed."""
    from pymongo.errors import PyMongoError

    from server.auth.key_check import check_keys
    from server.auth.sign_in import with_existing_address_keys
    from server.embedded import check_servers
    from server.embedded.running import running_mongodb
    from server.migration import check_data
    from server.settings import Settings
    from storage.errors import DomainError

    settings = Settings.from_environment(data_dir=data_dir)
    async with running_mongodb(settings.mongodb_uri, settings.data_dir, settings.embedded_mongod) as uri:
        await check_servers(uri, None)
        settings = with_existing_address_keys(settings.with_values(mongodb_uri=uri))
        await check_keys(settings)
        await check_data(settings)
        async with _open_mail_stores(uri, settings) as stores:
            try:
                yield stores
            except DomainError as error:
                raise StartupError(error.message) from error
            except PyMongoError as error:
                raise StartupError(f"MongoDB failed: {error}") from error


@asynccontextmanager
async def _open_mail_stores(uri: str, settings: "Settings") -> AsyncIterator[MailStores]:
    from storage.mail.book import AddressBook
    from storage.mail.imports import BookImporter
    from storage.mail.ledger import Ledger
    from storage.mongo import connect

    mongo, keys = connect(uri, settings.database, settings.mongo_driver), settings.keys_of_addresses
    try:
        yield MailStores(mongo, Ledger(mongo, keys), AddressBook(mongo, keys), BookImporter(mongo, keys))
    finally:
        await mongo.close()


@contextmanager
def _progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yields a function that shows the number of done rows as a progress bar on a terminal."""
    from rich.progress import Progress

    with Progress(disable=not sys.stdout.isatty()) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)
