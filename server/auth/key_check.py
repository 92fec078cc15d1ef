"""Checks at start that this process has the keys that its database is used with.

A data folder generates its own keys. With other keys credentials can't be decrypted, and blocked addresses of the
bounce address book look unknown, so that mail is sent to them.
"""

from collections.abc import Mapping

from pymongo.errors import PyMongoError

from server.processes import StartupError
from server.settings import Settings, variable
from storage.mongo import connect
from storage.secrets.key_fingerprints import KeysDiffer, agree_on_keys
from storage.secrets.versioned_keys import versioned_keys

GENERATED = "generated"
"""Version of a token secret that a data folder generated. One that the operator sets may change at any time."""


async def check_keys(settings: Settings, *, has_generated_secret: bool = False) -> None:
    """Compares the keys with those that other processes used; the first process decides.

    Raises: StartupError.
    """
    mongo = connect(settings.mongodb_uri or "", settings.database, settings.mongo_driver)
    try:
        for name, keys in _keys(settings, has_generated_secret).items():
            await agree_on_keys(mongo, name, keys)
    except KeysDiffer as error:
        raise StartupError(
            f"{variable(name)} differs from the keys in use with the database {settings.database} ({error}): set it "
            "for this process to the keys of the others; docs/operations.md, Keys, says where they are."
        ) from None
    except PyMongoError as error:
        raise StartupError(f"MongoDB can't compare the keys: {type(error).__name__}. Has it a primary?") from error
    finally:
        await mongo.close()


def _keys(settings: Settings, has_generated_secret: bool) -> dict[str, Mapping[str, bytes]]:
    """Returns the keys by version, of each setting."""
    keys: dict[str, Mapping[str, bytes]] = {
        name: versioned_keys(getattr(settings, name) or "") for name in ("credential_keys", "address_keys")
    }
    if has_generated_secret:
        keys["auth_secret"] = {GENERATED: (settings.auth_secret or "").encode()}
    return keys
