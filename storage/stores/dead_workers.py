"""Releases the leases of a worker whose process has ended, so that its work continues at once."""

from storage.stores.stores import Stores


async def release_leases_of(stores: Stores, worker: str) -> int:
    """Ends the leases that the last process of this name held, and returns how many.

    That process must have ended. Its work is then continued as after the end of the leases, and fences refuse writes
    of it that are still on their way. Leases of areas that are not listed here end when their time is over.
    """
    return sum(
        [
            await stores.locks.release_of(worker),
            await stores.claims.release_of(worker),
            await stores.credential_renewals.release_of(worker),
            await stores.credential_verifications.release_of(worker),
            await stores.notification_channels.release_of(worker),
            await stores.webhook_claims.release_of(worker),
            await stores.call_recordings.release_of(worker),
        ]
    )
