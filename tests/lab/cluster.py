"""The deployment: the programs of each host, their configuration, and whether they serve."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from pymongo import AsyncMongoClient
from pymongo.errors import OperationFailure, PyMongoError

from server.embedded import find_mongod, find_valkey
from tests.databases import CREDENTIAL_KEYS
from tests.jobs.providers.telephony.twin import SECRET as TELEPHONY_SECRET
from tests.keys import ADDRESS_KEYS_SETTING
from tests.lab.hosts import SUBNET, LaboratoryHost
from tests.lab.programs import LaboratoryProgram
from tests.product import NO_WRITE_LIMITS, NOROSHI
from tests.waiting import poll_until_true

MONGO_PORT, REDIS_PORT, SENTINEL_PORT, WEB_PORT = 27017, 6379, 26379, 8000
AUTH_SECRET = "the secret of the laboratory's tokens"
ELECTION_TIMEOUT_MS = 3000
START_DEADLINE_S = 300.0
SUPERVISION_INTERVAL_S = 2.0
ALREADY_INITIATED = 23
CREDENTIAL_KEYS_SETTING = ",".join(f"{n}:{base64.b64encode(key).decode()}" for n, key in CREDENTIAL_KEYS.items())


@dataclass
class LaboratoryCluster:
    """The programs by name, on three hosts."""

    hosts: list[LaboratoryHost]
    programs: dict[str, LaboratoryProgram]
    kept_away: set[str] = field(default_factory=set)
    """Names of programs that must not be started, because an outage keeps them away."""

    @property
    def web_urls(self) -> list[str]:
        return [f"http://{program.host.address}:{WEB_PORT}" for program in self.of_kind("web")]

    def of_kind(self, *kinds: str) -> list[LaboratoryProgram]:
        """Returns the programs of these kinds."""
        return [program for program in self.programs.values() if program.kind in kinds]

    async def start(self) -> None:
        """Starts all programs, the databases first, and waits until the product serves."""
        for program in self.of_kind("mongod", "redis", "sentinel"):
            program.start()
        await self._initiate()
        await _wait_until(self._migrate, "The data can't be migrated.")
        await self.wait_until_ready()

    async def wait_until_ready(self, deadline_s: float = START_DEADLINE_S) -> None:
        """Waits until all members and both web processes serve. Starts ended programs again. Raises: TimeoutError."""
        await _wait_until(self._are_members_healthy, "The members of the replica set are not healthy.", deadline_s)
        for url in self.web_urls:
            await _wait_until(partial(self._is_ready, url), f"{url} is not ready.", deadline_s)

    async def primary(self) -> LaboratoryProgram:
        """Returns the primary that the members agree on. Raises: PyMongoError; LookupError if there is none."""
        async with AsyncMongoClient[dict[str, Any]](self.mongodb_uri, serverSelectionTimeoutMS=10_000) as client:
            await client.admin.command("ping")
            address, _ = await client.primary or ("", 0)
        return {each.host.address: each for each in self.of_kind("mongod")}[address]

    async def step_down(self) -> str:
        """Makes the primary step down, and returns its name. Raises: PyMongoError; LookupError if there is none."""
        primary = await self.primary()
        uri = f"mongodb://{primary.host.address}:{MONGO_PORT}/?directConnection=true"
        async with AsyncMongoClient[dict[str, Any]](uri, serverSelectionTimeoutMS=5_000) as client:
            await client.admin.command("replSetStepDown", 5, force=True)
        return primary.name

    @property
    def mongodb_uri(self) -> str:
        return mongodb_uri(self.hosts)

    async def _initiate(self) -> None:
        members = [{"_id": n, "host": f"{host.address}:{MONGO_PORT}"} for n, host in enumerate(self.hosts)]
        settings = {"electionTimeoutMillis": ELECTION_TIMEOUT_MS, "heartbeatIntervalMillis": 500}
        config = {"_id": "rs0", "members": members, "settings": settings}
        uri = f"mongodb://{members[0]['host']}/?directConnection=true"

        async def initiate() -> bool:
            async with AsyncMongoClient[dict[str, Any]](uri, serverSelectionTimeoutMS=2_000) as client:
                try:
                    await client.admin.command("replSetInitiate", config)
                except OperationFailure as error:
                    return error.code == ALREADY_INITIATED
            return True

        await _wait_until(initiate, "The replica set can't be initiated.")

    def start_stopped(self) -> None:
        """Starts every program that does not run and is not kept away, as a supervisor does."""
        for program in self.programs.values():
            if program.name not in self.kept_away:
                program.start()

    async def _migrate(self) -> bool:
        """Runs `noroshi migrate`, which creates the collections. Returns whether it succeeded."""
        web = self.programs["web1"]
        migration = replace(web, command=[*NOROSHI, "migrate"], log=web.log.with_name("migrate.log"), process=None)
        migration.start()
        assert migration.process is not None
        return await asyncio.to_thread(migration.process.wait) == 0

    async def supervise(self) -> None:
        """Restarts programs that have ended, until it is cancelled."""
        while True:
            self.start_stopped()
            await asyncio.sleep(SUPERVISION_INTERVAL_S)

    async def _is_ready(self, url: str) -> bool:
        self.start_stopped()
        async with httpx2.AsyncClient(timeout=10, trust_env=False) as http:
            return (await http.get(f"{url}/readyz")).status_code == 200

    async def _are_members_healthy(self) -> bool:
        self.start_stopped()
        async with AsyncMongoClient[dict[str, Any]](self.mongodb_uri, serverSelectionTimeoutMS=2_000) as client:
            status = await client.admin.command("replSetGetStatus")
        states = sorted(member["stateStr"] for member in status["members"])
        return states == ["PRIMARY"] + ["SECONDARY"] * (len(self.hosts) - 1)


def plan_cluster(hosts: list[LaboratoryHost], logs: Path, telephony_url: str, with_clocks: bool) -> LaboratoryCluster:
    """Returns the programs of a deployment, none of which runs yet."""
    programs = [_mongod(number, host, logs) for number, host in enumerate(hosts, start=1)]
    programs += [_redis(number, host, hosts[0], logs) for number, host in enumerate(hosts[:2], start=1)]
    programs += [_sentinel(number, host, hosts[0], logs) for number, host in enumerate(hosts, start=1)]
    variables = _variables(hosts, telephony_url)
    for number, host in enumerate(hosts[:2], start=1):
        command = [*NOROSHI, "web", "--host", host.address, "--port", str(WEB_PORT)]
        programs.append(LaboratoryProgram(f"web{number}", host, command, logs / f"web{number}.log", variables))
    for number, host in enumerate(hosts[1:], start=1):
        programs.append(
            LaboratoryProgram(f"worker{number}", host, [*NOROSHI, "worker"], logs / f"worker{number}.log", variables)
        )
    if with_clocks:
        _give_clocks([each for each in programs if each.kind in ("web", "worker")], logs)
    return LaboratoryCluster(hosts, {program.name: program for program in programs})


def mongodb_uri(hosts: list[LaboratoryHost]) -> str:
    """Returns the address of the replica set."""
    return f"mongodb://{','.join(f'{host.address}:{MONGO_PORT}' for host in hosts)}/?replicaSet=rs0"


def _variables(hosts: list[LaboratoryHost], telephony_url: str) -> dict[str, str]:
    sentinels = ",".join(f"{host.address}:{SENTINEL_PORT}" for host in hosts)
    return {
        "MONGODB_URI": mongodb_uri(hosts),
        "REDIS_URL": f"redis+sentinel://{sentinels}/main/0",
        "NOROSHI_DATABASE": "lab",
        "NOROSHI_AUTH_SECRET": AUTH_SECRET,
        "NOROSHI_ADDRESS_KEYS": ADDRESS_KEYS_SETTING,
        "NOROSHI_CREDENTIAL_KEYS": CREDENTIAL_KEYS_SETTING,
        "NOROSHI_EGRESS_ALLOW": SUBNET,
        "NOROSHI_TELEPHONY": "webhook",
        "NOROSHI_TELEPHONY_URL": telephony_url,
        "NOROSHI_TELEPHONY_SECRET": TELEPHONY_SECRET,
        "NOROSHI_PUBLIC_URL": f"http://{hosts[0].address}:{WEB_PORT}",
        "NOROSHI_VIEWER_COST_PER_MINUTE": "1000000000",
        "NOROSHI_SERVICE_COST_PER_MINUTE": "1000000000",
        "NOROSHI_ORGANIZATION_COST_PER_MINUTE": "1000000000",
        "NOROSHI_CONTACTS_PER_DAY": "1000000000",
        "NOROSHI_LOG_FORMAT": "json",
        **NO_WRITE_LIMITS,
    }


def _mongod(number: int, host: LaboratoryHost, logs: Path) -> LaboratoryProgram:
    data = host.disk / "mongodb"
    data.mkdir()
    command = [
        *(str(find_mongod()), "--dbpath", str(data), "--replSet", "rs0", "--bind_ip", f"127.0.0.1,{host.address}"),
        *("--port", str(MONGO_PORT), "--nounixsocket", "--oplogSize", "64", "--wiredTigerCacheSizeGB", "0.25"),
        *("--setParameter", "diagnosticDataCollectionEnabled=false"),
    ]
    return LaboratoryProgram(f"mongod{number}", host, command, logs / f"mongod{number}.log")


def _redis(number: int, host: LaboratoryHost, first_master: LaboratoryHost, logs: Path) -> LaboratoryProgram:
    data = host.disk / "redis"
    data.mkdir()
    command = [
        *(str(find_valkey()), "--port", str(REDIS_PORT), "--bind", host.address, "--dir", str(data)),
        *("--protected-mode", "no", "--appendonly", "yes", "--save", ""),
    ]
    if host is not first_master:
        command += ["--replicaof", first_master.address, str(REDIS_PORT)]
    return LaboratoryProgram(f"redis{number}", host, command, logs / f"redis{number}.log")


def _sentinel(number: int, host: LaboratoryHost, first_master: LaboratoryHost, logs: Path) -> LaboratoryProgram:
    file = host.disk / "sentinel.conf"
    file.write_text(
        f"port {SENTINEL_PORT}\nbind {host.address}\ndir {host.disk}\nprotected-mode no\n"
        f"sentinel monitor main {first_master.address} {REDIS_PORT} 2\n"
        "sentinel down-after-milliseconds main 6000\nsentinel failover-timeout main 6000\n"
    )
    command = [str(find_valkey()), str(file), "--sentinel"]
    return LaboratoryProgram(f"sentinel{number}", host, command, logs / f"sentinel{number}.log")


def _give_clocks(programs: list[LaboratoryProgram], folder: Path) -> None:
    for program in programs:
        program.clock = folder / f"{program.name}.clock"
        program.set_clock(0)


async def _wait_until(
    condition: Callable[[], Awaitable[bool]], failure: str, deadline_s: float = START_DEADLINE_S
) -> None:
    """Waits until the condition is true. Exceptions of a program that is not reachable yet count as false.

    Raises: TimeoutError with the text `failure`.
    """

    async def is_true() -> bool:
        try:
            return await condition()
        except (PyMongoError, httpx2.HTTPError):
            return False

    if not await poll_until_true(is_true, deadline_s, interval_s=0.3):
        raise TimeoutError(failure)
