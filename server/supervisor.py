"""`noroshi up`: starts embedded servers, web and worker processes, and restarts any of them that ends.

A standby process takes the place of a worker that ends, because importing the modules of a worker takes seconds.
The processes stop in the order web, workers, Redis, MongoDB. They also end when the supervisor is killed.
"""

import asyncio
import contextlib
import functools
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import NoReturn, Protocol

import structlog

from server.auth.key_check import check_keys
from server.auth.sign_in import (
    require_no_identity_provider,
    sign_user_token,
    with_address_keys,
    with_auth_secret,
    with_credential_keys,
)
from server.embedded import EmbeddedServers, check_servers, embedded_servers
from server.first_admin import first_admin_link
from server.migration import migrate_data
from server.processes import ChildProcess, StartupError
from server.settings import Settings
from server.web import listen

STOP_DEADLINE_S = 20.0
READY_DEADLINE_S = 60.0
READY_POLL_S = 0.05
PROBE_TIMEOUT_S = 5.0
FIRST_DELAY_S = 0.2
MAX_DELAY_S = 5.0
STABLE_AFTER_S = 5.0
STANDBY_DELAY_S = 2.0
MAX_STARTS = 3

log = structlog.get_logger(__name__)
PrintText = Callable[[str], None]


class RestartableProcess(Protocol):
    """A process that the supervisor restarts: a web or worker process, or an embedded server."""

    @property
    def name(self) -> str: ...
    async def wait(self) -> int: ...
    async def restart(self) -> None: ...


def _command(name: str) -> list[str]:
    """Returns the command of a process that ends with this one."""
    # -P: modules in the current folder must not shadow Noroshi's packages.
    return [sys.executable, "-P", "-m", "server.commands.cli", name, f"--parent={os.getpid()}"]


class SupervisedProcess:
    """A web or worker process, restarted with the same command."""

    def __init__(self, name: str, settings: Settings, listener: socket.socket | None = None) -> None:
        self.name = f"noroshi {name}"
        self.starts = 0
        self._fds = [listener.fileno()] if listener else []
        inherited = [f"--fd={fd}" for fd in self._fds]
        self._command = [*_command(name), *inherited]
        self._environment = settings.environment()
        self._process: ChildProcess | None = None

    async def restart(self) -> None:
        self.starts += 1
        self._process = self._start()

    def _start(self) -> ChildProcess:
        return ChildProcess(self._command, environment=self._environment, pass_fds=self._fds)

    async def wait(self) -> int:
        assert self._process, "not started"
        return await self._process.wait()

    async def stop(self) -> None:
        if self._process:
            await self._process.stop(STOP_DEADLINE_S)


class StandbyWorker:
    """A process that has imported the modules of a worker, and waits for the name of the worker that it becomes."""

    def __init__(self, settings: Settings) -> None:
        self._environment = settings.environment()
        self._process: ChildProcess | None = None
        self._pipe: int | None = None

    def prepare(self) -> None:
        """Starts the process, unless it is running."""
        if self._is_running:
            return
        self._close_pipe()
        read_end, self._pipe = os.pipe()
        command = [*_command("worker"), f"--name-fd={read_end}"]
        try:
            self._process = ChildProcess(command, environment=self._environment, pass_fds=[read_end])
        finally:
            os.close(read_end)

    def become(self, name: str) -> ChildProcess:
        """Lets the process run as the worker of this name, and returns the process."""
        self.prepare()
        process, pipe = self._process, self._pipe
        assert process is not None
        assert pipe is not None
        self._process = None
        with contextlib.suppress(BrokenPipeError):  # The process has just ended, which its supervision notices.
            os.write(pipe, f"{name}\n".encode())
        self._close_pipe()
        return process

    async def keep_ready(self) -> None:
        """Prepares the next process within 2 s after the last one was used. Runs until it is cancelled."""
        while True:
            await asyncio.sleep(STANDBY_DELAY_S)
            if self._process is None:
                self._try_to_prepare()

    def _try_to_prepare(self) -> None:
        try:
            self.prepare()
        except OSError as error:
            log.warning("standby_not_started", reason=str(error))

    async def stop(self) -> None:
        """Ends the process."""
        self._close_pipe()
        if self._process is not None:
            await self._process.stop(STOP_DEADLINE_S)

    @property
    def _is_running(self) -> bool:
        return self._process is not None and self._process.exit_code is None

    def _close_pipe(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None


class SupervisedWorker(SupervisedProcess):
    """A worker. Its name stays the same, so that each of its processes releases the leases of the one before."""

    def __init__(self, settings: Settings, standby: StandbyWorker) -> None:
        super().__init__("worker", settings)
        self._lease_name = secrets.token_hex(8)
        self._standby = standby

    def _start(self) -> ChildProcess:
        assert self._process is None or self._process.exit_code is not None, "The last process must have ended."
        return self._standby.become(self._lease_name)


@dataclass(frozen=True)
class SupervisedProcesses:
    """All supervised processes, and their settings."""

    settings: Settings
    servers: EmbeddedServers
    web: list[SupervisedProcess]
    workers: list[SupervisedWorker]
    standby: StandbyWorker

    @property
    def all(self) -> list[RestartableProcess]:
        return [*self.servers.all, *self.workers, *self.web]


def run_up(settings: Settings, *, web: int, workers: int, say: PrintText, started_at: float) -> int:
    """Runs the product until a signal arrives, and returns the exit code. `started_at` is a monotonic time.

    Raises: StartupError.
    """
    return asyncio.run(_run_until_signal(_up(settings, web, workers, say, started_at)))


async def _run_until_signal(work: Coroutine[None, None, None]) -> int:
    """Cancels `work` on the first signal and ignores further ones, so that shutdown is not interrupted."""
    task = asyncio.ensure_future(work)
    received: list[int] = []

    def cancel(number: int) -> None:
        if not received:
            task.cancel()
        received.append(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
            continue  # started by `nohup`
        asyncio.get_running_loop().add_signal_handler(number, cancel, number)
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return 128 + signal.SIGINT if received[:1] == [signal.SIGINT] else 0


async def _up(settings: Settings, web: int, workers: int, say: PrintText, started_at: float) -> None:
    if settings.demo:
        require_no_identity_provider(settings)
    has_generated_secret = not (settings.auth_secret or settings.auth_jwks_url)
    with listen(settings.host, settings.port) as listener:
        settings = with_auth_secret(settings.with_values(port=listener.getsockname()[1]))
        settings = with_address_keys(with_credential_keys(settings))
        async with _processes(settings, listener, web, workers, has_generated_secret) as processes:
            try:
                await _serve(processes, say, started_at)
            except* StartupError as failures:
                raise failures.exceptions[0] from None


@contextlib.asynccontextmanager
async def _processes(
    settings: Settings, listener: socket.socket, web: int, workers: int, has_generated_secret: bool
) -> AsyncIterator[SupervisedProcesses]:
    """Starts the servers, the web processes and the workers. At the end, stops web processes, workers, then servers."""
    await check_servers(settings.mongodb_uri, settings.redis_url)
    async with embedded_servers(
        settings.data_dir,
        need_mongodb=not settings.mongodb_uri,
        need_redis=not settings.redis_url,
        mongod_program=settings.embedded_mongod,
        redis_program=settings.embedded_redis,
    ) as servers:
        settings = settings.with_values(
            mongodb_uri=settings.mongodb_uri or servers.mongodb_uri,
            redis_url=settings.redis_url or servers.redis_url,
            data_dir=settings.data_dir.absolute(),
        )
        await check_keys(settings, has_generated_secret=has_generated_secret)
        await migrate_data(settings, lambda progress: log.info("migration", doing=progress.title))
        standby = StandbyWorker(settings)
        processes = SupervisedProcesses(
            settings,
            servers,
            [SupervisedProcess("web", settings, listener) for _ in range(web)],
            [SupervisedWorker(settings, standby) for _ in range(workers)],
            standby,
        )
        try:
            for program in (*processes.web, *processes.workers):
                await program.restart()
            yield processes
        finally:
            # The listener is closed before the processes stop, so that no connection is accepted that nobody serves.
            listener.close()
            await asyncio.gather(*(program.stop() for program in processes.web))
            await asyncio.gather(standby.stop(), *(program.stop() for program in processes.workers))


async def _serve(processes: SupervisedProcesses, say: PrintText, started_at: float) -> None:
    """Supervises the processes until cancelled, and prints where the product serves."""
    async with asyncio.TaskGroup() as group:
        for process in processes.all:
            group.create_task(keep_running(process))
        await _wait_until_ready(processes)
        if processes.workers:
            group.create_task(processes.standby.keep_ready())
        url = f"http://{_local_host(processes.settings)}:{processes.settings.port}"
        say(f"Noroshi is ready in {time.monotonic() - started_at:.1f} s. Ctrl-C ends it.")
        say(f"  product   {url}/")
        say(f"  GraphiQL  {url}/graphiql")
        await _say_first_admin_link(processes.settings, url, say)
        if processes.settings.demo:
            group.create_task(_fill_with_demo_data(processes.settings, url, say))


async def keep_running(process: RestartableProcess) -> NoReturn:
    """Restarts the process whenever it ends.

    The pause before a restart is 0.2 s, and doubles with each restart up to 5 s. After a run of 5 s it is 0.2 s again.
    """
    delay_s = FIRST_DELAY_S
    while True:
        since = time.monotonic()
        exit_code = await process.wait()
        if time.monotonic() - since > STABLE_AFTER_S:
            delay_s = FIRST_DELAY_S
        log.warning("process_ended", process=process.name, exit_code=exit_code, restart_after_s=delay_s)
        await asyncio.sleep(delay_s)
        delay_s = min(2 * delay_s, MAX_DELAY_S)
        try:
            await process.restart()
        except StartupError as error:
            log.error("process_not_restarted", process=process.name, reason=str(error))


def _local_host(settings: Settings) -> str:
    """Returns the host by which this machine reaches the product, in brackets for IPv6."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104
    return f"[{host}]" if ":" in host else host


async def _wait_until_ready(processes: SupervisedProcesses) -> None:
    ends_at = time.monotonic() + READY_DEADLINE_S
    while " 200 " not in (status := await _readiness(processes.settings)):
        for program in (*processes.web, *processes.workers):
            if program.starts > MAX_STARTS:
                raise StartupError(f"`{program.name}` ends as soon as it starts; see the log lines above.")
        if time.monotonic() > ends_at:
            raise StartupError(
                f"Not ready after {READY_DEADLINE_S:g} s: /readyz answers {status.strip() or 'nothing'}."
            )
        await asyncio.sleep(READY_POLL_S)


async def _readiness(settings: Settings) -> str:
    """Returns the status line of /readyz; empty without an answer."""
    host = _local_host(settings)
    request = f"GET /readyz HTTP/1.1\r\nHost: {host}:{settings.port}\r\nConnection: close\r\n\r\n"
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(host.strip("[]"), settings.port)
            with contextlib.closing(writer):
                writer.write(request.encode())
                return (await reader.readline()).decode(errors="replace")
    return ""


async def _say_first_admin_link(settings: Settings, url: str, say: PrintText) -> None:
    """Prints the link that creates the first ADMIN, if there is no user yet and no demo users will be added."""
    link = None if settings.demo else await first_admin_link(settings, settings.public_url or url)
    if link is not None:
        say("There is no user yet. Open this link within 24 hours to become the first administrator:")
        say(f"  {link}")


async def _fill_with_demo_data(settings: Settings, url: str, say: PrintText) -> None:
    """Prints sign-in links and adds demo data. The product serves requests meanwhile, even if this fails."""
    from server.demo import DEMO_USERS, fill

    say("Sign in as")
    for user in DEMO_USERS:
        label = f"{user.name} (@{user.handle}, {user.organization_id}, {' '.join(user.roles)})"
        say(f"  {label}  {url}/#token={sign_user_token(settings, user)}")
    say(f"GraphiQL as {DEMO_USERS[0].name}")
    say(f"  {url}/graphiql#token={sign_user_token(settings, DEMO_USERS[0])}")
    try:
        await fill(url, functools.partial(sign_user_token, settings))
    except Exception:
        log.exception("demo_data_failed")
