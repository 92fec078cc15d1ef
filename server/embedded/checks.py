"""Checks at start that the servers named by the operator are usable. Errors are one line and hold no password."""

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from server.processes import StartupError

if TYPE_CHECKING:
    from pymongo.errors import PyMongoError

TIMEOUT_S = 3.0
REDIS_MIN_VERSION = (6, 2)
UNAUTHORIZED = 13
AUTHENTICATION_FAILED = 18


async def check_servers(mongodb_uri: str | None, redis_url: str | None) -> None:
    """Checks the servers that have an address. Raises: StartupError."""
    if mongodb_uri:
        await check_mongodb(mongodb_uri)
    if redis_url:
        await check_redis(redis_url)


async def check_mongodb(uri: str) -> None:
    """Raises: StartupError when MongoDB can't be reached within 3 s, or is no replica set."""
    from pymongo import AsyncMongoClient
    from pymongo.errors import ConfigurationError, InvalidURI, OperationFailure, PyMongoError

    from storage.mongo.deployments import UnsupportedServerListener, unsupported_reason

    listener = UnsupportedServerListener()
    where = f"MONGODB_URI ({_hosts(uri)})"
    options: dict[str, Any] = {"serverSelectionTimeoutMS": TIMEOUT_S * 1000, "connectTimeoutMS": TIMEOUT_S * 1000}
    options["event_listeners"] = [listener]
    try:
        async with AsyncMongoClient[dict[str, Any]](uri, **options) as client:
            hello = await client.admin.command("hello")
            await client.admin.command("ping")
    except (ConfigurationError, InvalidURI, ValueError):
        raise StartupError("MONGODB_URI can't be parsed: percent-encode user, password and options.") from None
    except OperationFailure as error:
        reason = (error.details or {}).get("codeName")
        refused = "the user or password" if error.code == AUTHENTICATION_FAILED else f"access ({reason})"
        raise StartupError(f"{where}: the server refuses {refused}.") from None
    except OSError as error:
        raise StartupError(f"{where}: a file of its TLS options can't be used ({error}).") from None
    except PyMongoError as error:
        # With a replica set in the address, the driver drops servers that are no members of it.
        if listener.fault:
            raise StartupError(f"{where}: {listener.fault}.") from None
        if fault := _tls_fault(str(error)):
            raise StartupError(f"{where}: {fault}") from None
        if not client.topology_description.server_descriptions():
            raise StartupError(
                f"{where}: the server is not a member of the replica set that the address names."
            ) from None
        raise StartupError(f"{where}: no answer within {TIMEOUT_S:g} s. Is it running and reachable?") from None
    if fault := unsupported_reason(hello):
        raise StartupError(f"{where}: {fault}.")


def mongodb_failure(error: "PyMongoError", database: str) -> str:
    """Returns a clause for the operator that says why MongoDB failed, in one line."""
    if getattr(error, "code", None) == UNAUTHORIZED:
        return f"The user of MONGODB_URI lacks a right: it needs the role readWrite on the database {database}"
    reason = str(error).partition(", full error:")[0]
    return f"MongoDB failed ({' '.join(reason.split())})"


def _tls_fault(error: str) -> str | None:
    """Returns why TLS with a server failed, with a remedy, by the driver's message; None for other failures."""
    if found := re.search(r"certificate verify failed: ([^(]+)", error):
        reason = found[1].strip(" .")
        return f"the server's certificate is not trusted ({reason}). tlsCAFile=... names the authority that signed it."
    if "SSL" in error:
        return "the TLS handshake failed. Does the server use TLS (tls=true)?"
    return "the server closes connections. Does it need TLS (tls=true)?" if "connection closed" in error else None


async def check_redis(url: str) -> None:
    """Raises: StartupError when Redis can't be reached within 3 s, or is too old."""
    from redis.asyncio import Redis
    from redis.exceptions import AuthenticationError, RedisError

    from storage.redis.connections import redis_client

    where = f"REDIS_URL ({_hosts(url)})"
    try:
        async with redis_client(url, Redis, TIMEOUT_S) as client:
            version = str((await client.info("server"))["redis_version"])
    except AuthenticationError:
        raise StartupError(f"{where}: the server refuses the user or password.") from None
    except ValueError:
        raise StartupError("REDIS_URL can't be parsed: expected redis://user:password@host:port/number.") from None
    except (RedisError, OSError):
        raise StartupError(f"{where}: no answer within {TIMEOUT_S:g} s. Is it running and reachable?") from None
    if tuple(int(part) for part in version.split(".")[:2]) < REDIS_MIN_VERSION:
        raise StartupError(f"{where}: Redis {version} is too old; expected 6.2 or later.")


def _hosts(address: str) -> str:
    """Returns the hosts and ports of an address without user and password."""
    parts = urlsplit(address)
    return parts.netloc.rpartition("@")[2] or parts.path
