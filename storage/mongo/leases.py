"""Names of workers in their leases, so that the leases of a dead worker can be released before they end.

A worker under a supervisor has a name. The supervisor starts the next process of that name after the last one has
ended, and the new process releases what the last one held. Other workers have no name, and their leases only expire.
"""

import re
import secrets

from storage.mongo import Document, seconds_from_now


def claim_token(worker: str) -> str:
    """Returns a random token of a claim, which begins with the worker's name if it has one."""
    token = secrets.token_hex(8)
    return f"{worker}:{token}" if worker else token


def lease_filter(worker: str, moment: str, max_s: float, token: str = "claim") -> Document:  # noqa: S107 - a field
    """Returns a filter for documents with a lease of the worker, which lasts until `moment`, at most `max_s` seconds.

    The limit lets MongoDB read a short range of the index of `moment`.
    """
    ends_later = {"$gt": [f"${moment}", "$$NOW"]}
    ends_soon = {"$lte": [f"${moment}", seconds_from_now(max_s)]}
    return {
        moment: {"$exists": True},
        "$expr": {"$and": [ends_later, ends_soon]},
        token: {"$regex": f"^{re.escape(worker)}:"},
    }
