"""Checks at start that this process has the same keys as the other processes of its database.

Each data folder generates keys of its own. With different keys, credentials can't be decrypted, and the bounce address
book does not find blocked addresses, so that mail is sent to them.
"""

from collections.abc import Mapping

from pymongo.errors import PyMongoError

from server.embedded import mongodb_failure
from server.processes import StartupError
from server.settings import Settings, variable
from storage.mongo import connect
from storage.secrets.key_fingerprints import KeyMismatch, agree_on_keys
from storage.secrets.versioned_keys import versioned_keys

GENERATED = "generated"
"""The version under which a generated token secret is compared. A secret that the operator sets is not compared."""


async def check_keys(settings: Settings, *, has_generated_secret: bool = False) -> None:
    """Compares the keys with the keys of the first process that used the database. Raises: StartupError."""
    mongo = connect(settings.mongodb_uri or "", settings.database, settings.mongo_driver)
    try:
        for name, keys in _keys(settings, has_generated_secret).items():
            await agree_on_keys(mongo, name, keys)
    except KeyMismatch as error:
        raise StartupError(
            f"{variable(name)} differs from the keys in use with the database {settings.database} ({error}): set it "
            "for this process to the keys of the other processes; docs/operations.md, Keys, says where they are."
        ) from None
    except PyMongoError as error:
        raise StartupError(f"The keys can't be compared: {mongodb_failure(error, settings.database)}.") from error
    finally:
        await mongo.close()


def _keys(settings: Settings, has_generated_secret: bool) -> dict[str, Mapping[str, bytes]]:
    """Returns the keys of each setting, by version."""
    keys: dict[str, Mapping[str, bytes]] = {
        name: versioned_keys(getattr(settings, name) or "") for name in ("credential_keys", "address_keys")
    }
    if has_generated_secret:
        keys["auth_secret"] = {GENERATED: (settings.auth_secret or "").encode()}
    return keys
