"""The command `noroshi`. Commands import their modules when they run, so that `--help` and the start are fast.

A failure is one line. The exit code is 2 for bad usage and 1 for other errors.
"""

import contextlib
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from server.commands.calls import calls_app
from server.commands.keys import key_app
from server.commands.mail import mail_app
from server.processes import StartupError, watch_parent, without_garbage_collection
from storage.identity.roles import Role

if TYPE_CHECKING:
    from server.settings import Settings

STARTED_AT = time.monotonic()
# How long a web or worker process may take to end after its supervisor is gone.
ORPHAN_DEADLINE_S = 15.0
INTERRUPTED_EXIT_CODE = 130
# Typer bundles a private copy of click. This is the base class of its usage errors.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]

app = typer.Typer(
    help="Noroshi: a GraphQL backend with realtime subscriptions for community applications.",
    epilog="Settings come from the environment (MONGODB_URI, REDIS_URL, NOROSHI_...); options take precedence.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"noroshi {version('noroshi')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


app.add_typer(key_app, name="key")
app.add_typer(mail_app, name="mail")
app.add_typer(calls_app, name="calls")

DataDir = Annotated[
    Path | None, typer.Option(help="Folder of embedded servers and secrets. Default: .noroshi", show_default=False)
]
Host = Annotated[str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1", show_default=False)]
Port = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free port. Default: 8000", show_default=False),
]
Parent = Annotated[int | None, typer.Option(hidden=True, help="End when this process, the parent, is gone.")]


def main() -> None:
    """Runs the command and exits with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs a command and returns its exit code."""
    try:
        return app(arguments, prog_name="noroshi", standalone_mode=False) or 0
    except UsageError as error:
        return _fail(f"{_message(error)} (see `noroshi --help`)", 2)
    except StartupError as error:
        return _fail(str(error), 1)
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT_CODE


def _message(error: Exception) -> str:
    format_message = getattr(error, "format_message", None)
    return " ".join(str(format_message() if format_message else error).split())


def _fail(message: str, exit_code: int) -> int:
    typer.echo(f"noroshi: {message}", err=True)
    return exit_code


@app.command()
def up(
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    demo: Annotated[bool, typer.Option("--demo", help="Add demo data and print sign-in links.")] = False,
    workers: Annotated[int, typer.Option(min=0, help="Number of worker processes.")] = 1,
    web: Annotated[int, typer.Option(min=1, help="Number of web processes, which share the port.")] = 1,
) -> None:
    """Run the whole product: web and worker processes, and databases unless their addresses are set."""
    settings = _settings("up", host=host, port=port, data_dir=data_dir, demo=demo or None)
    with without_garbage_collection():
        from server.supervisor import run_up

    raise typer.Exit(run_up(settings, web=web, workers=workers, say=_say, started_at=STARTED_AT))


@app.command()
def web(
    host: Host = None,
    port: Port = None,
    fd: Annotated[int | None, typer.Option(hidden=True, help="An inherited listening socket.")] = None,
    parent: Parent = None,
) -> None:
    """Run one web process against the servers that MONGODB_URI and REDIS_URL name."""
    settings = _settings("web", host=host, port=port)
    _prepare_process(settings, parent)
    if not (settings.auth_secret or settings.auth_jwks_url):
        raise StartupError("NOROSHI_AUTH_SECRET or NOROSHI_AUTH_JWKS_URL is needed to verify tokens.")
    with without_garbage_collection():
        from server.web import serve_web

    serve_web(settings, socket.socket(fileno=fd) if fd is not None else None)


def _queues(names: str) -> tuple[str, ...]:
    """Returns the names of the queues. Raises: BadParameter for an unknown queue."""
    with without_garbage_collection():
        from jobs import FUNCTIONS

    selected = tuple(name.strip() for name in names.split(",") if name.strip())
    if unknown := [name for name in selected if name not in FUNCTIONS]:
        known = ", ".join(sorted(FUNCTIONS))
        raise typer.BadParameter(f"There is no queue {', '.join(unknown)}; there are: {known}.", param_hint="--queues")
    return selected


@app.command()
def worker(
    queues: Annotated[
        str, typer.Option(help="Names of job queues, separated by commas. Default: all", show_default=False)
    ] = "",
    parent: Parent = None,
    name_fd: Annotated[
        int | None, typer.Option(hidden=True, help="A pipe from which the name is read once the worker may start.")
    ] = None,
) -> None:
    """Run one worker process against the servers that MONGODB_URI and REDIS_URL name."""
    selected = _queues(queues)
    settings = _settings("worker" if name_fd is None else "standby")
    _prepare_process(settings, parent)
    with without_garbage_collection():
        from server.worker import run_standby, run_worker

    if name_fd is None:
        run_worker(settings, selected)
    else:
        run_standby(settings, selected, name_fd)


@app.command()
def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="Only print what would be done; exit code 1 if there is something to do.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Bring the stored data to this release, before its processes start.

    Those of the last release may keep running, unless a step that --check prints says otherwise.
    """
    from server.commands.migrate import report_pending_migration, run_migration
    from server.settings import Settings

    settings = Settings.from_environment(data_dir=data_dir)
    if not check:
        run_migration(settings, _say)
    elif not report_pending_migration(settings, _say):
        raise typer.Exit(1)


@app.command()
def token(
    user: Annotated[str, typer.Option(help="The user's id.")],
    org: Annotated[str, typer.Option(help="The organization's id.")],
    role: Annotated[list[Role] | None, typer.Option(help="A role; may be repeated. Default: MEMBER")] = None,
    name: Annotated[str | None, typer.Option(help="The displayed name.")] = None,
    handle: Annotated[str | None, typer.Option(help="The handle for mentions, such as `mika` for @mika.")] = None,
    email: Annotated[str | None, typer.Option(help="The mail address for notices.")] = None,
    ttl_s: Annotated[int, typer.Option(min=1, help="Seconds until the token expires.")] = 86_400,
    data_dir: DataDir = None,
) -> None:
    """Print a bearer token, signed with NOROSHI_AUTH_SECRET or with the data folder's secret."""
    from server.auth.sign_in import sign_token, with_existing_auth_secret
    from server.settings import Settings

    settings = with_existing_auth_secret(Settings.from_environment(data_dir=data_dir))
    roles = [each.value for each in role or [Role.MEMBER]]
    claims = {"name": name, "handle": handle, "email": email}
    _say(sign_token(settings, user_id=user, organization_id=org, roles=roles, ttl_s=ttl_s, **claims))


@app.command()
def vapid_key() -> None:
    """Print a new value of NOROSHI_VAPID_KEY, the key for pushes to devices."""
    from storage.secrets.vapid_keys import new_vapid_key

    _say(new_vapid_key().private_text)


@app.command()
def first_admin(data_dir: DataDir = None) -> None:
    """Print a link that makes the first administrator, while the organization has no user."""
    import asyncio

    from server.commands.status import with_embedded_servers
    from server.first_admin import first_admin_link
    from server.settings import Settings

    settings = with_embedded_servers(Settings.from_environment(data_dir=data_dir))
    if not settings.mongodb_uri:
        raise StartupError(f"Nothing runs in {settings.data_dir}; set MONGODB_URI, or --data-dir.")
    if not settings.has_local_accounts:
        raise StartupError("This server has no local accounts: people sign in at the identity provider.")
    link = asyncio.run(first_admin_link(settings, settings.base_url))
    if link is None:
        raise StartupError(f"The organization {settings.organization} has users; an administrator invites others.")
    _say(link)


@app.command()
def demo(
    url: Annotated[str, typer.Option(help="Address of the running product.")] = "http://127.0.0.1:8000",
    data_dir: DataDir = None,
) -> None:
    """Add demo data to a running product through its public API. Existing data stay unchanged."""
    import asyncio
    from functools import partial

    import httpx2

    from server.auth.sign_in import require_no_identity_provider, sign_user_token, with_existing_auth_secret
    from server.demo import fill
    from server.settings import Settings

    settings = with_existing_auth_secret(Settings.from_environment(data_dir=data_dir))
    require_no_identity_provider(settings)
    try:
        with _progress("Demo data") as show:
            asyncio.run(fill(url.rstrip("/"), partial(sign_user_token, settings), show))
    except httpx2.HTTPError as error:
        raise StartupError(f"{url} does not answer ({error}): is the product running there?") from error


@app.command()
def schema() -> None:
    """Print the GraphQL schema in schema definition language."""
    from schema.root import schema as graphql_schema

    _say(graphql_schema.as_str())


@app.command(hidden=True)
def settings() -> None:
    """Print docs/settings.md, the page about all settings."""
    from server.commands.settings_page import settings_page

    typer.echo(settings_page(), nl=False)


@app.command()
def status(
    data_dir: DataDir = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
) -> None:
    """Show workers, sweeps, locks, call brokers, mail and job queues."""
    import asyncio

    from pymongo.errors import PyMongoError
    from rich.console import Console

    from server.commands.status import as_json, show, with_embedded_servers
    from server.commands.status import status as read_status
    from server.embedded import check_servers
    from server.settings import Settings

    settings = with_embedded_servers(Settings.from_environment(data_dir=data_dir))
    if not (settings.mongodb_uri and settings.redis_url):
        raise StartupError(f"Nothing runs in {settings.data_dir}; set MONGODB_URI and REDIS_URL, or --data-dir.")
    asyncio.run(check_servers(settings.mongodb_uri, None))
    try:
        tables = asyncio.run(read_status(settings))
    except PyMongoError as error:
        raise StartupError(f"MongoDB does not answer: {type(error).__name__}") from error
    if json:
        _say(as_json(tables))
    else:
        show(tables, Console(width=None if sys.stdout.isatty() else 160))


def _settings(title: str, **options: object) -> "Settings":
    """Sets the title and configures the logging of a long-running process. Returns its settings."""
    from setproctitle import setproctitle

    from server.logs import configure_logging
    from server.settings import Settings

    setproctitle(f"noroshi {title}")
    settings = Settings.from_environment(**options)
    configure_logging(settings.log_format, settings.log_level)
    return settings


def _prepare_process(settings: "Settings", parent: int | None) -> None:
    """Makes the process end with its supervisor. Without a supervisor, checks instead that the servers are usable."""
    if parent is not None:
        watch_parent(parent, ORPHAN_DEADLINE_S)
        return
    if not (settings.mongodb_uri and settings.redis_url):
        raise StartupError("MONGODB_URI and REDIS_URL must be set; `noroshi up` starts servers of its own.")
    import asyncio

    from server.auth.key_check import check_keys
    from server.embedded import check_servers
    from server.migration import check_data

    asyncio.run(check_servers(settings.mongodb_uri, settings.redis_url))
    asyncio.run(check_keys(settings))
    asyncio.run(check_data(settings))


@contextlib.contextmanager
def _progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """Yields a function that shows (done, total) as a progress bar on a terminal."""
    from rich.progress import Progress

    with Progress(disable=not sys.stdout.isatty()) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _say(line: str) -> None:
    typer.echo(line)


if __name__ == "__main__":
    main()
