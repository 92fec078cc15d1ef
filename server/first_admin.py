"""The link of the first start, which makes the first ADMIN of an organization that has no user yet."""

from server.settings import Settings
from storage.identity.accounts.registration import offer_first_admin
from storage.mongo import connect


async def first_admin_link(settings: Settings, url: str) -> str | None:
    """Returns a new link below `url`; None if the organization has a user, or has no local accounts.

    The link is valid for 24 hours and can be used once. Earlier links become invalid.
    """
    if not settings.has_local_accounts:
        return None
    mongo = connect(settings.mongodb_uri or "", settings.database, settings.mongo_driver)
    try:
        token = await offer_first_admin(mongo, settings.organization)
    finally:
        await mongo.close()
    return None if token is None else f"{url}/#first-admin={token}"
