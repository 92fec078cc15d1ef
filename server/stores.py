"""Opens the stores of a process from its settings."""

from contextlib import AbstractAsyncContextManager
from datetime import timedelta

from server.settings import Settings
from storage.files.uploads import MIB, FileLimits
from storage.identity.sessions import SessionLifetimes
from storage.secrets.versioned_keys import versioned_keys
from storage.stores import Stores, open_stores


def open_stores_for(settings: Settings, worker: str = "") -> AbstractAsyncContextManager[Stores]:
    """Returns a context manager that connects the stores. The settings must name MongoDB and Redis.

    `worker` is the name of this process in its leases.
    """
    assert settings.mongodb_uri is not None
    assert settings.redis_url is not None
    return open_stores(
        settings.mongodb_uri,
        settings.redis_url,
        settings.database,
        settings.mongo_driver,
        settings.fan_out_max_followers,
        versioned_keys(settings.credential_keys or ""),
        settings.keys_of_addresses,
        settings.roles_last_days,
        SessionLifetimes(timedelta(hours=settings.session_idle_hours), timedelta(hours=settings.session_max_hours)),
        settings.contacts_per_day,
        settings.files_address,
        file_limits(settings),
        settings.roles_from_tokens,
        worker=worker,
    )


def file_limits(settings: Settings) -> FileLimits:
    """Returns the limits of uploads."""
    return FileLimits(
        file_bytes=settings.file_max_mib * MIB,
        user_bytes=settings.user_files_mib * MIB,
        organization_bytes=settings.organization_files_mib * MIB,
        open_uploads=settings.open_uploads,
    )
